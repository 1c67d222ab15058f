/* SPDX-License-Identifier: Apache-2.0
 *
 * The words after a command's name: options from one table that all commands
 * share, and names. Each command says which of them it takes.
 */
#ifndef COXSWAIN_CLI_COMMAND_LINE_H
#define COXSWAIN_CLI_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

enum output_form { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME };

/* Strings are borrowed from the words. */
struct command_line {
    const char *kubeconfig, *context, *name_space; /* NULL: not given */
    const char *selector, *role, *container, *condition;
    enum output_form output;
    bool all_namespaces, follow, watch, timestamps, once, no_wait, all_attempts;
    int64_t index, tail, workers; /* -1: not given */
    int64_t timeout_ms;           /* -1: none */
    char **names;
    int name_count;
};

struct command_usage {
    const char *text;    /* the manual; its first line is the synopsis */
    const char *options; /* letters of the table in command_line.c, besides -n, --kubeconfig, --context and --help */
    int names_min, names_max;
};

/* -1: go on; else the exit code: help was printed, or what is wrong was said. */
int command_line_parse(int count, char **words, const struct command_usage *usage, struct command_line *ret_line);

/* A whole number from 0 on; false when it is none. */
bool number_parse(const char *text, int64_t *ret_number);
/* "90", "90s", "5m", "2h", "1d" in milliseconds; false when it is none. */
bool duration_parse(const char *text, int64_t *ret_ms);

#endif
