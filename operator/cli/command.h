/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of `cox`. Each gets "cox <name>" and what follows it, and
 * returns the program's exit code.
 */
#ifndef COXSWAIN_CLI_COMMAND_H
#define COXSWAIN_CLI_COMMAND_H

#include <stdbool.h>

#define EXIT_USAGE 2
#define EXIT_INTERRUPTED 130

/*  name, arguments, what it does */
#define COMMANDS(X)                                                                                                    \
    X(run, "FILE [options]", "run a training job and watch it")                                                        \
    X(demo, "[--preempt]", "train on handwritten digits; --preempt kills a worker half-way")

/* `text` to stdout (returns 0) because it was asked for, or a hint to stderr (returns EXIT_USAGE) because a word was
 * wrong. */
int command_usage(bool asked, const char *text);

#define X(name, arguments, summary) int command_##name(int count, char **words);
COMMANDS(X)
#undef X

#endif
