/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_container.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/directory.h"
#include "common/memory.h"

#define REPORT "{\"metrics\":{\"loss\":1}}\n"

/* The termination log of a container `a`: as many dots, then REPORT. */
static void make_log(const char *directory, size_t dots)
{
    SCOPED_FREE char *folder = memory_format("%s/containers/a", directory);
    SCOPED_FREE char *path = memory_format("%s/termination-log", folder);
    cr_assert_eq(directory_make(folder, NULL), 0);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    for (size_t i = 0; i < dots; i++)
        fputc('.', file);
    fputs(REPORT, file);
    cr_assert_eq(fclose(file), 0);
}

static void expect_message(size_t dots, size_t length)
{
    char directory[] = "/tmp/node-container-XXXXXX";
    cr_assert(mkdtemp(directory));
    make_log(directory, dots);
    SCOPED_JSON *container = json_new_object();
    json_set_string(container, "name", "a");
    SCOPED_FREE char *message = container_termination_message(directory, container, 0);
    cr_expect_eq(strlen(message), length, "%zu of %zu bytes", strlen(message), dots + strlen(REPORT));
    cr_expect_str_eq(message + strlen(message) - strlen(REPORT), REPORT);
    directory_remove(directory);
}

Test(node_container, a_long_termination_message_keeps_its_end)
{
    expect_message(0, strlen(REPORT));
    expect_message(TERMINATION_MESSAGE_MAX - strlen(REPORT), TERMINATION_MESSAGE_MAX);
    expect_message(TERMINATION_MESSAGE_MAX, TERMINATION_MESSAGE_MAX);
}
