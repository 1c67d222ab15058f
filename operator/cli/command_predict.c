/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cli/command.h"
#include "operator/cli/trained_run.h"

static const char usage[] =
    "usage: cox predict NAME|MANIFEST [N|all] [options]\n"
    "\n"
    "Uses what a run of `cox run` on this machine has trained: its export, else the best weights that it keeps, else\n"
    "its newest checkpoint. `cox runs` lists the names. A trial of a sweep is named SWEEP-N.\n"
    "\n"
    "  N                the held-out example N, from 0: its picture, the most probable classes, and which it is;\n"
    "                   of a model of numbers the values, and the true ones\n"
    "  all              the metrics over all held-out examples (the default)\n"
    "  --data FILE.npy  new examples instead of the held-out ones: an array of uint8 (divided by 255), float32 or\n"
    "                   float64, one example for each element of its first dimension. With all, a line for each: the\n"
    "                   most probable classes, or the values\n"
    "  --data FILE.csv  new rows for a model of a table (also FILE.jsonl), with or without the labels; columns with\n"
    "                   names may be in any order. With all, a CSV file on standard output: class,probability, or\n"
    "                   value. If the rows have labels, the accuracy, or RMSE and MAE, on standard error. A folder\n"
    "                   with one such file stands for it\n"
    "  --data FOLDER    new images, or one image, for a model of images in folders. With all, a line for each file,\n"
    "                   and the accuracy if all are in folders that are named like classes\n"
    "  --outputs        the model's outputs instead, as an NPY file on standard output\n"
    "  --json           with all: the metrics as JSON; for a classifier also its confusion matrix and the examples\n"
    "                   that it gets most wrong\n"
    "  --weights PATH   a safetensors file, a directory of checkpoints or one of them\n"
    "  --threads N      default: this machine's processors\n"
    "\n"
    "Exit code: 0 done, 1 there is no such run, or no weights, or the data do not fit, 2 wrong usage, 130 "
    "interrupted.\n";

static const struct option known[] = {{"data", required_argument, NULL, 0},
                                      {"outputs", no_argument, NULL, 0},
                                      {"json", no_argument, NULL, 0},
                                      {"weights", required_argument, NULL, 0},
                                      {"threads", required_argument, NULL, 0},
                                      {"help", no_argument, NULL, 'h'},
                                      {NULL, 0, NULL, 0}};

int command_predict(int count, char **words)
{
    SCOPED(worker_call_release) struct worker_call options = {.count = 0};
    int code = worker_call_read(&options, count, words, known, usage), given = count - optind;
    if (code >= 0)
        return code;
    if (given < 1 || given > 2)
        return command_usage(false, usage);
    const char *which = given > 1 ? words[optind + 1] : "all";
    if (strcmp(which, "all") != 0 && (*which == '\0' || which[strspn(which, "0123456789")] != '\0')) {
        fprintf(stderr, "%s: \"%s\" is neither \"all\" nor the number of an example, from 0\n", words[0], which);
        return EXIT_USAGE;
    }
    return trained_run_use(words[0], words[optind], "--predict", which, &options);
}
