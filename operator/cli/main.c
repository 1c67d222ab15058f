/* SPDX-License-Identifier: Apache-2.0
 *
 * cox: the command line.
 */
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/nearest_word.h"
#include "common/scope.h"
#include "common/version.h"
#include "operator/cli/command.h"

static const struct {
    const char *name, *arguments, *summary;
    int (*run)(int count, char **words);
} commands[] = {
#define X(function, name, arguments, summary) {name, arguments, summary, command_##function},
    COMMANDS(X)
#undef X
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

/* "cox", or "kubectl cox" when kubectl calls it as its plugin. */
static const char *program_title(const char *called)
{
    const char *slash = strrchr(called, '/');
    return strcmp(slash ? slash + 1 : called, "kubectl-cox") == 0 ? "kubectl cox" : "cox";
}

static void print_help(const char *title)
{
    printf("%s - run training jobs\n\nusage: %s COMMAND [arguments]\n\n", title, title);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-13s %-16s %s\n", commands[i].name, commands[i].arguments, commands[i].summary);
    puts("\n"
         "A job is a Kubernetes object, a TrainingJob, which names the workers, the model, the data and how to train. "
         "A\n"
         "TrainingSweep runs many jobs that differ in some fields, and finds the best. `cox run` runs either from a "
         "file\n"
         "and needs no cluster: it starts a control plane and an operator of its own, and the pods are processes of "
         "this\n"
         "machine. With --kubeconfig the same file runs in a cluster. The other commands use the cluster of the\n"
         "kubeconfig, as kubectl does (--kubeconfig, --context, --namespace). For a run of `cox run` on this machine "
         "use\n"
         "--state, which may be left out if no cluster is configured, or the file kubeconfig in its state directory.\n"
         "\n"
         "Examples:\n"
         "  cox demo\n"
         "  cox generate mine --data /data >mine.yaml\n"
         "  cox run deploy/examples/digits.yaml --volume digits=/data\n"
         "  cox predict digits 17\n"
         "  cox get -A -o wide\n"
         "  cox logs digits --follow\n"
         "  cox why digits\n"
         "  cox wait digits --timeout 2h && cox delete digits\n"
         "  cox sweep best learning-rate | cox run -\n"
         "\n"
         "`cox COMMAND --help`, or `cox help COMMAND`, explains a command and its exit codes. On a terminal the output "
         "is\n"
         "redrawn in place, elsewhere it is plain lines.");
}

static void tell_unknown(const char *title, const char *name)
{
    const char *known[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        known[i] = commands[i].name;
    const char *meant = nearest_word(name, known, COMMAND_COUNT);
    fprintf(stderr, "%s: there is no command \"%s\"%s%s%s\n", title, name, meant ? "; did you mean " : "",
            meant ? meant : "", meant ? "?" : "");
}

int main(int count, char **words)
{
    static char asked[] = "--help";
    const char *title = program_title(words[0]), *name = count > 1 ? words[1] : "";
    if (count > 2 && strcmp(name, "help") == 0) {
        name = words[1] = words[2];
        words[2] = asked;
        count = 3;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(title);
        return 0;
    }
    if (strcmp(name, "--version") == 0) {
        puts("cox " COXSWAIN_VERSION);
        return 0;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        /* getopt begins its messages with it. */
        SCOPED_FREE char *whole = memory_format("%s %s", title, name);
        words[1] = whole;
        return commands[i].run(count - 1, words + 1);
    }
    if (*name)
        tell_unknown(title, name);
    fprintf(stderr, "usage: %s COMMAND [arguments]; `%s help` lists the commands\n", title, title);
    return EXIT_USAGE;
}
