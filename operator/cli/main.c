/* SPDX-License-Identifier: Apache-2.0
 *
 * cox: the command line.
 */
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "operator/cli/command.h"

static const struct {
    const char *name, *arguments, *summary;
    int (*run)(int count, char **words);
} commands[] = {
#define X(name, arguments, summary) {#name, arguments, summary, command_##name},
    COMMANDS(X)
#undef X
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_help(void)
{
    puts("cox - run training jobs\n\nusage: cox COMMAND [arguments]\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  cox %-5s %-15s %s\n", commands[i].name, commands[i].arguments, commands[i].summary);
    puts(
        "\n"
        "A job is a Kubernetes object, a TrainingJob: how many workers, which model, which data, how to train. `cox "
        "run`\n"
        "takes one from a file and needs no cluster: it brings a control plane and an operator of its own, and its "
        "pods\n"
        "are processes of this machine. With --kubeconfig the same file runs in a cluster.\n"
        "\n"
        "Examples:\n"
        "  cox demo\n"
        "  cox demo --preempt\n"
        "  cox run deploy/examples/digits.yaml --volume digits=/data\n"
        "  cox run deploy/examples/digits.yaml --kubeconfig ~/.kube/config\n"
        "\n"
        "`cox COMMAND --help` says more. Output on a terminal is one block that is drawn anew, elsewhere plain lines.");
}

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "";
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help();
        return 0;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        /* getopt begins its messages with it. */
        SCOPED_FREE char *title = memory_format("cox %s", name);
        words[1] = title;
        return commands[i].run(count - 1, words + 1);
    }
    if (*name)
        fprintf(stderr, "cox: there is no command \"%s\"\n", name);
    fputs("usage: cox COMMAND [arguments]; `cox help` lists the commands\n", stderr);
    return EXIT_USAGE;
}
