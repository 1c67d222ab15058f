/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "operator/cli/command.h"
#include "operator/cli/trained_run.h"

static const char usage[] =
    "usage: cox predict NAME|MANIFEST [N|all] [options]\n"
    "\n"
    "Uses what a run of `cox run` on this machine has trained: its export, else its newest checkpoint. `cox runs` "
    "lists the\n"
    "names.\n"
    "\n"
    "  N                the held-out example N, from 0: its picture, the most probable classes, and which it is;\n"
    "                   of a model of numbers the values, and the true ones\n"
    "  all              the metrics over all held-out examples (the default)\n"
    "  --data FILE.npy  new examples instead of the held-out ones: an array of uint8 (divided by 255), float32 or\n"
    "                   float64, one example for each element of its first dimension. With all, a line for each: the\n"
    "                   most probable classes, or the values\n"
    "  --outputs        the model's outputs instead, as an NPY file on standard output\n"
    "  --weights PATH   a safetensors file, a directory of checkpoints or one of them\n"
    "  --threads N      default: this machine's processors\n"
    "\n"
    "Exit code: 0 done, 1 there is no such run, or no weights, or the data do not fit, 2 wrong usage, 130 "
    "interrupted.\n";

/* Returns an exit code when the command ends here, else -1. */
static int read_options(int count, char **words, struct worker_call *options, int *ret_first)
{
    static const struct option known[] = {
        {"data", required_argument, NULL, 'd'},    {"outputs", no_argument, NULL, 'o'},
        {"weights", required_argument, NULL, 'w'}, {"threads", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(count, words, "h", known, NULL)) != -1;) {
        if (option == 'h' || option == '?')
            return command_usage(option == 'h', usage);
        worker_call_add(options,
                        option == 'd'   ? "--data"
                        : option == 'o' ? "--outputs"
                        : option == 'w' ? "--weights"
                                        : "--threads",
                        optarg);
    }
    *ret_first = optind;
    return count - optind < 1 || count - optind > 2 ? command_usage(false, usage) : -1;
}

int command_predict(int count, char **words)
{
    SCOPED(worker_call_release) struct worker_call options = {.count = 0};
    int first = count, code = read_options(count, words, &options, &first);
    if (code >= 0)
        return code;
    return trained_run_use(words[0], words[first], "--predict", count - first > 1 ? words[first + 1] : "all", &options);
}
