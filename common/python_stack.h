/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the stack that Python's faulthandler, py-spy or gdb has printed in the end of a log, or what the hook of hang_hook.h has found in
 * /proc, and writes it in one short line. The operator quotes it in the event about a crew that hung. The text is untrusted: control
 * characters are removed.
 */
#ifndef COXSWAIN_COMMON_PYTHON_STACK_H
#define COXSWAIN_COMMON_PYTHON_STACK_H

#include <stdbool.h>

#include "common/buffer.h"

/* The most frames that are written. */
#define PYTHON_STACK_FRAMES 6

/* Appends the frames of the main thread in `text`, from the innermost on: "wait (train.py:31) < main (train.py:60)"; that is the last
 * thread that faulthandler prints. gdb gives functions without files, /proc the kernel's functions, the state and the system call:
 * "do_signal_stop (T (stopped), system call 202)". Returns false, and appends nothing, if no thread with a frame is printed there. */
bool python_stack_append(const char *text, struct buffer *out);

/* Returns whether a line of python_stack_append has a function or file of a collective operation, such as an all-reduce. */
bool python_stack_is_collective(const char *line);

#endif
