/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/report.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
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

static struct report *open_chief(const char *directory)
{
    struct report *report;
    struct error error = ERROR_INIT;
    const struct report_options options = {.chief = true, .http_port = -1, .tensorboard_directory = directory};
    cr_assert_eq(report_open(&options, &report, &error), 0, "%s", error.message);
    return report;
}

static void take_step(struct report *report, int64_t step)
{
    report_step(report, (struct step_report){.step = step, .total_steps = 9, .loss = 1, .gradient_norm = NAN}, 8,
                1000000);
}

static void remove_directory(const char *directory)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    cr_expect_eq(system(command), 0);
}

/* The file is opened, and from then on nothing can be written to it. */
Test(report, a_step_does_not_wait_for_the_disk_of_its_events, .init = expect_step_line, .fini = restore_calls,
     .timeout = 120)
{
    char directory[] = "/tmp/coxswain-report-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    file_calls.write = write_or_hang;
    atomic_store(&disk_hangs, true);
    struct report *report = open_chief(directory);
    for (int64_t step = 1; step <= 9 || !atomic_load(&has_hung); step++)
        take_step(report, step);
    atomic_store(&disk_hangs, false);
    report_free(report);
    remove_directory(directory);
}

Test(report, a_leaver_says_that_the_disk_did_not_take_the_last_events, .init = expect_step_line, .timeout = 120)
{
    char directory[] = "/tmp/coxswain-report-XXXXXX", told[4096];
    cr_assert_not_null(mkdtemp(directory));
    file_calls.write = write_or_hang;
    atomic_store(&disk_hangs, true);
    struct report *report = open_chief(directory);
    take_step(report, 1);
    report_flush(report);
    atomic_store(&disk_hangs, false);
    fflush(stdout);
    size_t length = fread(told, 1, sizeof told - 1, cr_get_redirected_stdout());
    told[length] = '\0';
    cr_expect_not_null(strstr(told, "the last events of the TensorBoard log are not on the disk"), "%s", told);
    report_free(report);
    remove_directory(directory);
}

/* ---------------------------------------------------------------- checkpoints */

/* Returns what was printed since the start of the test, up to a page of it. */
static void read_told(char told[4096])
{
    fflush(stdout);
    size_t length = fread(told, 1, 4095, cr_get_redirected_stdout());
    told[length] = '\0';
}

Test(report, checkpoints_in_quick_succession_are_told_once_and_the_last_again, .init = expect_step_line)
{
    char told[4096];
    struct report *report = open_chief(NULL);
    take_step(report, 9); /* the last step is known then */
    for (int64_t step = 2; step <= 9; step++)
        report_saved(report, step, 12345678, 40000000);
    report_saved(report, 9, 500, 40000000);
    report_free(report);
    read_told(told);
    const char *first = strstr(told, "checkpoint of step");
    cr_assert_not_null(first, "%s", told);
    cr_expect_str_eq(first, "checkpoint of step 2: 12.3 MB in 0.04 s\ncheckpoint of step 9: 12.3 MB in 0.04 s\n");
}

Test(report, only_the_chief_tells_of_checkpoints, .init = expect_step_line)
{
    char told[4096];
    struct report *report;
    const struct report_options options = {.http_port = -1};
    cr_assert_eq(report_open(&options, &report, NULL), 0);
    report_saved(report, 2, 500, 40000000);
    puts("nothing else");
    report_free(report);
    read_told(told);
    cr_expect_str_eq(told, "nothing else\n");
}

/* Two steps of 8 examples and 1 ms each; a process that did no step says nothing of them. */
Test(report, the_summary_counts_the_examples_and_the_time_of_the_steps, .init = expect_step_line)
{
    char told[4096];
    struct report *report = open_chief(NULL), *idle = open_chief(NULL);
    report_summary(idle, NULL, NULL);
    take_step(report, 1);
    take_step(report, 2);
    report_summary(report, NULL, NULL);
    report_free(report);
    report_free(idle);
    read_told(told);
    const char *line = strstr(told, "trained ");
    cr_assert_not_null(line, "%s", told);
    cr_expect_null(strstr(line + 1, "trained "), "%s", told);
    cr_expect(strncmp(line, "trained 16 examples in 0.002 s of steps\n", 40) == 0, "%s", told);
}

/* ---------------------------------------------------------------- what is drawn */

/* Reads the tag's values, in order, from the single event file below the directory (tensorboard.c decodes the format). Returns how many. */
static unsigned drawn(const char *directory, const char *tag, float values[], unsigned most)
{
    char pattern[64];
    glob_t found;
    unsigned count = 0;
    SCOPED_BUFFER bytes = BUFFER_INIT(1 << 20);
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", directory);
    cr_assert(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    cr_assert_eq(buffer_read_file(&bytes, found.gl_pathv[0], NULL), 0);
    globfree(&found);
    const char *next = bytes.data, *end = bytes.data + bytes.length;
    while ((next = memmem(next, (size_t)(end - next), tag, strlen(tag))) != NULL) {
        next += strlen(tag) + 1; /* behind the tag stands the key of the value, which is a float */
        cr_assert(end - next >= (int)sizeof *values && count < most);
        memcpy(&values[count++], next, sizeof *values);
    }
    return count;
}

Test(report, where_losses_are_scaled_the_scale_and_the_steps_skipped_are_drawn, .init = expect_step_line)
{
    char directory[] = "/tmp/coxswain-report-XXXXXX";
    float scale[3], skipped[3];
    struct step_report step = {.step = 1, .total_steps = 3, .loss = 1, .gradient_norm = NAN};
    cr_assert_not_null(mkdtemp(directory));
    struct report *report = open_chief(directory);
    report_step(report, step, 8, 1000000); /* this one is not scaled */
    step.step = 2, step.loss_scale = 65536, step.skipped_steps = 4;
    report_step(report, step, 8, 1000000);
    step.step = 3, step.loss_scale = 32768, step.skipped_steps = 5, step.skipped = true;
    report_step(report, step, 8, 1000000);
    report_free(report);
    cr_assert_eq(drawn(directory, "train/loss_scale", scale, 3), 2);
    cr_assert_eq(drawn(directory, "train/skipped_steps", skipped, 3), 2);
    cr_expect(scale[0] == 65536 && scale[1] == 32768, "%g, %g", scale[0], scale[1]);
    cr_expect(skipped[0] == 4 && skipped[1] == 5, "%g, %g", skipped[0], skipped[1]);
    remove_directory(directory);
}

/* ---------------------------------------------------------------- a disk that fails while somebody flushes */

static atomic_bool ended;

static ssize_t fail_to_write(int descriptor, const void *bytes, size_t length)
{
    (void)descriptor, (void)bytes, (void)length;
    errno = EIO;
    return -1;
}

/* More lines than a pipe takes. */
static void drop_lines(void)
{
    cr_assert_not_null(freopen("/dev/null", "w", stdout));
}

static void *flush_on_and_on(void *report)
{
    while (!atomic_load(&ended))
        report_flush(report);
    return NULL;
}

/* The first step after the failure ends the log, in whose writer a flush may be. */
Test(report, a_log_that_ends_is_not_flushed, .init = drop_lines, .fini = restore_calls, .timeout = 120)
{
    char directory[] = "/tmp/coxswain-report-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    file_calls.write = fail_to_write;
    for (int round = 0; round < 300; round++) {
        pthread_t leaving;
        struct report *report = open_chief(directory);
        atomic_store(&ended, false);
        cr_assert_eq(pthread_create(&leaving, NULL, flush_on_and_on, report), 0);
        for (int64_t step = 1; step <= 9; step++)
            take_step(report, step);
        atomic_store(&ended, true);
        pthread_join(leaving, NULL);
        report_free(report);
    }
    remove_directory(directory);
}

/* The first best weights could not be written: nobody may compare by an evaluation whose weights do not exist. */
Test(report, best_weights_that_are_not_kept_are_not_reported)
{
    struct report *report;
    struct status_document status;
    const struct report_options options = {.job_uid = "job", .role = "worker", .http_port = -1};
    cr_assert_eq(report_open(&options, &report, NULL), 0);
    report_evaluation(report, 5, 0.75, NAN, NAN, 12.5);
    report_best(report, 5, 0.75, 0.5, 12.5);
    report_get_status(report, &status);
    cr_assert_not_null(status_document_metric(&status, "bestValidationLoss"));
    cr_assert_not_null(status_document_metric(&status, "bestValidationAccuracy"));
    cr_expect_eq(status_document_metric(&status, "validationRMSE")->value, 12.5);
    cr_expect_eq(status_document_metric(&status, "bestValidationRMSE")->value, 12.5);
    report_best(report, 0, INFINITY, NAN, NAN);
    report_get_status(report, &status);
    cr_expect_null(status_document_metric(&status, "bestValidationLoss"));
    cr_expect_null(status_document_metric(&status, "bestValidationAccuracy"));
    cr_expect_null(status_document_metric(&status, "bestValidationRMSE"));
    cr_expect_eq(status_document_metric(&status, "validationLoss")->value, 0.75);
    report_free(report);
}
