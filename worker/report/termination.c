/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/termination.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/environment.h"
#include "common/scope.h"

#define DEFAULT_PATH "/dev/termination-log"

/* Writes only a file that the kubelet or the node has created; a worker started by hand has
 * none. */
static void write_message(const char *line, size_t length)
{
    const char *path = getenv(ENV_TERMINATION_LOG);
    SCOPED_CLOSE int file = open(path && path[0] ? path : DEFAULT_PATH, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (file < 0)
        return;
    /* There is nobody left to report a failure to. */
    ssize_t written = write(file, line, length);
    (void)written;
}

void termination_leave_status(const char *text, size_t length)
{
    if (length <= TERMINATION_STATUS_MAX)
        write_message(text, length);
}

static void format_line(enum exit_code code, const struct error *error, char line[TERMINATION_MESSAGE_MAX])
{
    snprintf(line, TERMINATION_MESSAGE_MAX, "exit %d (%s)%s%s\n", (int)code, exit_code_meaning((int)code),
             error->message[0] ? ": " : "", error->message);
}

void termination_tell(enum exit_code code, const struct error *error)
{
    char line[TERMINATION_MESSAGE_MAX];
    format_line(code, error, line);
    fputs(line, stderr);
}

void termination_report(enum exit_code code, const struct error *error)
{
    char line[TERMINATION_MESSAGE_MAX];
    format_line(code, error, line);
    fputs(line, stderr);
    write_message(line, strlen(line));
}
