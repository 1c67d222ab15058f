/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the commands of `cox`. main.c calls the command that the user names; the table COMMANDS also gives
 * the text of `cox --help` and the shell completions. Each command is a function that gets "cox <name>" as
 * its first word, then the words after it, and returns the program's exit code. Most commands that need a
 * cluster consist of a command_action, which command_in_cluster runs.
 */
#ifndef COXSWAIN_CLI_COMMAND_H
#define COXSWAIN_CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#define EXIT_USAGE 2
#define EXIT_TIMEOUT 3
#define EXIT_LEFT_OUT 4
#define EXIT_INTERRUPTED 130

/*  function, name, arguments, what it does */
#define COMMANDS(X)                                                                                                    \
    X(run, "run", "FILE [options]", "run a training job or a sweep and watch it")                                      \
    X(demo, "demo", "[--preempt]", "train an example on this machine; --preempt kills a worker half-way")              \
    X(generate, "generate", "NAME [options]", "print the manifest of a job for your own data, with comments")          \
    X(migrate, "migrate", "FILE", "translate jobs of v1alpha1 or of Kubeflow into TrainingJobs")                       \
    X(get, "get", "[NAME...]", "list jobs with their state, progress and results")                                     \
    X(describe, "describe", "NAME...", "show all that is known about a job")                                           \
    X(why, "why", "NAME", "say in one sentence what a job waits for")                                                  \
    X(runs, "runs", "[delete|prune]", "list, compare and delete the runs of this machine")                             \
    X(predict, "predict", "NAME [N|all]", "predict with the model that a run on this machine has trained")             \
    X(generate_text, "generate-text", "NAME PROMPT", "continue a text with the model that a run has trained")          \
    X(top, "top", "[NAME]", "watch training live: throughput, loss, time left")                                        \
    X(ui, "ui", "[options]", "show jobs and sweeps on a page in the browser")                                          \
    X(logs, "logs", "NAME", "print the logs of all pods of a job, ordered by time")                                    \
    X(wait, "wait", "NAME", "wait until a job or sweep is over, runs or is suspended")                                 \
    X(suspend, "suspend", "NAME...", "suspend jobs: remove their pods until they are resumed")                         \
    X(resume, "resume", "NAME...", "resume suspended jobs from their last checkpoints")                                \
    X(restart, "restart", "NAME", "restart all pods of a job, or one of them")                                         \
    X(scale, "scale", "NAME --workers N", "change the number of workers of an elastic job")                            \
    X(sweep, "sweep", "run|get|best|...", "run a sweep, show its trials, print the best as a job")                     \
    X(delete, "delete", "NAME...", "delete jobs; their checkpoints and weights are kept")                              \
    X(completion, "completion", "bash|zsh", "print a completion script")

/* Prints `text` to stdout and returns 0 if the user asked for help; otherwise prints its first line to stderr and returns EXIT_USAGE. */
int command_usage(bool asked, const char *text);
/* For getopt_long's '?' after its own message: names the option of `known` that was probably meant, and does what
 * command_usage(false, text) does. `words` are those that getopt_long has read. */
int command_refuse_option(char **words, const struct option *known, const char *text);
/* Prints that a command has no such subcommand, and the one that was probably meant. */
void command_refuse_word(const char *title, const char *word, const char *const *known, size_t count);

/* Carries out a command in a cluster. Returns an exit code, or -1 with an error, which is then printed. */
struct cluster;
struct command_line;
struct command_usage;
struct error;
typedef int command_action(struct cluster *cluster, const struct command_line *line, struct error *error);
/* Parses the words, connects to the cluster, runs `action` and prints its error. Returns the exit code. */
int command_in_cluster(int count, char **words, const struct command_usage *usage, command_action *action);
/* The two parts of command_in_cluster. command_parse returns -1 if the words are valid, otherwise the exit code. */
int command_parse(int count, char **words, const struct command_usage *usage, struct command_line *ret_line);
int command_run_in_cluster(const char *title, const struct command_line *line, command_action *action);
/* Runs a command for the run that --state names: `live` with the control plane of a run that still runs; otherwise `kept`, with a control
 * plane that is started only to show what the run has left. */
int command_run_in_state(const char *title, struct command_line *line, command_action *live, command_action *kept);

#define X(function, name, arguments, summary) int command_##function(int count, char **words);
COMMANDS(X)
#undef X
/* `cox sweep run`: does what command_run does, and refuses a file that holds a TrainingJob. */
int command_run_sweep(int count, char **words);

#endif
