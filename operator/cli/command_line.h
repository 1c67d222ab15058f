/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the words after a command's name into options and names, for command_in_cluster (command.h). These
 * commands share one table of options; each command declares which of them it accepts, and every other option
 * is a usage error. number_parse and duration_parse serve other commands too.
 */
#ifndef COXSWAIN_CLI_COMMAND_LINE_H
#define COXSWAIN_CLI_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

enum output_form { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME, OUTPUT_CSV };

#define OUTPUT_FORMS "wide, json, yaml and name"

/* Strings point into the words. */
struct command_line {
    const char *kubeconfig, *context, *name_space; /* NULL: not given */
    const char *selector, *role, *container, *condition, *state;
    enum output_form output;
    bool kept;         /* set by command_run_in_state: nothing runs the jobs any more */
    const char *again; /* set by command_run_in_state: the command that continues the run; NULL: unknown */
    bool sweeps;       /* the names are of TrainingSweeps, not of jobs */
    bool lacks_name;   /* the command needs a name and got --state instead: it uses the name of the run's job */
    bool all_namespaces, follow, watch, timestamps, once, no_wait, all_attempts, runs;
    int64_t index, tail, workers, port; /* -1: not given */
    int64_t timeout_ms;                 /* -1: none */
    char **names;
    int name_count;
};

/* What a command does to runs of `cox run` on this machine, which it finds by their names if no cluster is configured. A run that has ended
 * is only shown. */
enum command_use { COMMAND_SHOWS, COMMAND_CONTROLS, COMMAND_DELETES };

struct command_usage {
    const char *text; /* what --help prints; its first line is the synopsis */
    const char *
        options; /* letters of the accepted options (command_line.c); all accept -n, --kubeconfig, --context and --help */
    int names_min, names_max;
    const char *forms; /* what --output takes, such as "csv and json"; NULL: OUTPUT_FORMS */
    bool sweeps;       /* the names are of TrainingSweeps, not of jobs */
    bool lists_runs;   /* without names, and without a cluster, it lists the runs of this machine */
    enum command_use use;
};

/* Returns -1 if the words are valid, otherwise the exit code, after printing the help or what is wrong. */
int command_line_parse(int count, char **words, const struct command_usage *usage, struct command_line *ret_line);

/* Parses an integer from 0 to INT32_MAX. False if the text is anything else. */
bool number_parse(const char *text, int64_t *ret_number);
/* Parses "90", "90s", "5m", "2h" or "1d" into milliseconds. False if the text is anything else. */
bool duration_parse(const char *text, int64_t *ret_ms);

#endif
