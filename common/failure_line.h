/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the line that says why a program failed in the termination message of its container. The operator puts this line into the job's
 * status, and `cox` prints it. The program wrote the message itself, or the kubelet took it from the end of the program's log (at most 2048
 * bytes). The text is untrusted: terminal escapes and other control characters are removed.
 */
#ifndef COXSWAIN_COMMON_FAILURE_LINE_H
#define COXSWAIN_COMMON_FAILURE_LINE_H

#include "common/buffer.h"

#define FAILURE_LINE_MAX 512

/* Appends the line of `message` that names the error ("ValueError: …", "error: …"; the last one if there are several), else the last
 * line; nothing if the message is empty or begins with "{", as a status or a report in JSON does. A line that has nothing after the error's
 * type ("KeyError") gives way to one that has. If the kubelet may have cut the first line, that line is not used. The line is written as by
 * failure_line_clean, with at most FAILURE_LINE_MAX bytes.
 *
 * After a signal (`exit_code` above 128) only a line that names an error is used, and after SIGKILL none, because the last lines of such
 * a program do not explain its end. From a message "exit 65 (meaning): cause" of Coxswain's worker, appends the cause. */
void failure_line_append(const char *message, int exit_code, struct buffer *out);

/* Appends the `length` bytes of `text` as one line: without terminal escapes, with a space for each other control character, and without
 * spaces at its ends. A line longer than `most` bytes is cut to that length, with "…" at its end. */
void failure_line_clean(const char *text, size_t length, size_t most, struct buffer *out);

#endif
