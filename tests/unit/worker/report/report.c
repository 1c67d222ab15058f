/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/report.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/checkpoint/file.h"

static atomic_bool disk_hangs, has_hung;

static ssize_t write_or_hang(int descriptor, const void *bytes, size_t length)
{
    for (; atomic_load(&disk_hangs); usleep(1000))
        atomic_store(&has_hung, true);
    return write(descriptor, bytes, length);
}

static void restore_calls(void)
{
    atomic_store(&disk_hangs, false);
    file_calls.write = write;
}

static void expect_step_line(void)
{
    cr_redirect_stdout();
}

/* The file is opened, and from then on nothing can be written to it. */
Test(report, a_step_does_not_wait_for_the_disk_of_its_events, .init = expect_step_line, .fini = restore_calls,
     .timeout = 120)
{
    char directory[] = "/tmp/coxswain-report-XXXXXX", command[64];
    struct report *report;
    struct error error = ERROR_INIT;
    const struct report_options options = {.chief = true, .http_port = -1, .tensorboard_directory = directory};
    cr_assert_not_null(mkdtemp(directory));
    file_calls.write = write_or_hang;
    atomic_store(&disk_hangs, true);
    cr_assert_eq(report_open(&options, &report, &error), 0, "%s", error.message);
    for (int64_t step = 1; step <= 9 || !atomic_load(&has_hung); step++)
        report_step(report, (struct step_report){.step = step, .total_steps = 9, .loss = 1, .gradient_norm = NAN}, 8,
                    1000000);
    atomic_store(&disk_hangs, false);
    report_free(report);
    snprintf(command, sizeof command, "rm -r %s", directory);
    cr_expect_eq(system(command), 0);
}
