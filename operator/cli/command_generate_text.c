/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "operator/cli/command.h"
#include "operator/cli/trained_run.h"

static const char usage[] =
    "usage: cox generate-text NAME|MANIFEST PROMPT [options]\n"
    "\n"
    "Continues a text with the language model that a run of `cox run` on this machine has trained. `cox runs` lists "
    "the\n"
    "names. PROMPT is a text for a model over bytes, and token numbers (\"17 4 250\") for one over tokens.\n"
    "\n"
    "  --tokens N         how far (default 256)\n"
    "  --temperature T    0: always the most probable token (default 0.8)\n"
    "  --top-k N          among the N most probable tokens (default 0: among all)\n"
    "  --seed N           equal seeds give equal texts (default 0)\n"
    "  --weights PATH     a safetensors file, a directory of checkpoints or one of them\n"
    "  --threads N        default: this machine's processors\n"
    "\n"
    "Exit code: 0 done, 1 there is no such run, or no weights, 2 wrong usage, also a prompt that does not fit, 130\n"
    "interrupted.\n";

static const struct option known[] = {
    {"tokens", required_argument, NULL, 0},  {"temperature", required_argument, NULL, 0},
    {"top-k", required_argument, NULL, 0},   {"seed", required_argument, NULL, 0},
    {"weights", required_argument, NULL, 0}, {"threads", required_argument, NULL, 0},
    {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};

int command_generate_text(int count, char **words)
{
    SCOPED(worker_call_release) struct worker_call options = {.count = 0};
    int code = worker_call_read(&options, count, words, known, usage);
    if (code >= 0)
        return code;
    if (count - optind != 2)
        return command_usage(false, usage);
    return trained_run_use(words[0], words[optind], "--generate", words[optind + 1], &options);
}
