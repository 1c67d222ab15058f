/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/arguments.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "worker/model/program.h"
#include "worker/xla/client.h"

const char arguments_usage[] =
    "coxswain-worker: trains one job, as one process of its crew\n"
    "\n"
    "In a pod it needs no options: the operator's environment says everything. By hand:\n"
    "  coxswain-worker --job job.yaml --storage digits=/data --storage runs=/tmp/runs\n"
    "\n"
    "  --job FILE             a job document or a TrainingJob, YAML or JSON (default: $COXSWAIN_JOB)\n"
    "  --storage NAME=DIR     where a storage of the job is; may be repeated\n"
    "  --checkpoint-dir DIR   where checkpoints go (default: $COXSWAIN_CHECKPOINT_DIR, else storage and path of the "
    "job)\n"
    "  --threads N            compute threads (default: this machine's processors, shared among the crew's members on "
    "it)\n"
    "  --http-port N          /healthz, /status, /metrics (default 8080 in a pod, none by hand; 0: any free port)\n"
    "  --log-format FORMAT    text or json (default text)\n"
    "  --version, --help\n"
    "\n"
    "  --compile-program DIR  check that an exported program compiles, and say what it needs\n"
    "  --compile-model        the same for the job's preset or layers, in calls of one logical shard\n"
    "  --topology SLICE       with either: for TPUs that need not be here, such as v5e:2x2, by libtpu.so\n"
    "  --describe-model       print the layers of the job's model, their shapes and parameters, as JSON\n"
    "  --check-job            open the job's model, plans and data without training, and print their sizes as JSON\n"
    "\n"
    "To use what a job has learnt, with the same --job and --storage, on the CPU:\n"
    "  --generate PROMPT      continue this text (of a model over bytes), or these tokens (\"17 4 250\")\n"
    "  --prompt-file FILE     continue the contents of a file: other users see command lines, but not files\n"
    "  --tokens N             how far (default 256)\n"
    "  --temperature T        0: always the most probable token (default 0.8)\n"
    "  --top-k N              among the N most probable tokens (default 0: among all)\n"
    "  --seed N               equal seeds give equal texts (default 0)\n"
    "  --predict N            the classes of held-out example N, from 0; all: the metrics over all of them\n"
    "  --data PATH            with --predict: new examples instead of the held-out ones: an array (.npy); for data of\n"
    "                         format CSV also a table (.csv, .jsonl), for ImageFolder a folder of images or one image\n"
    "  --outputs              with --predict: the model's outputs instead, as an NPY file on standard output\n"
    "  --json                 with --predict all: the metrics as JSON; of a classifier also its confusion matrix and\n"
    "                         the held-out examples that it gets most wrong\n"
    "  --weights PATH         a safetensors file, a directory of checkpoints or one of them (default: the job's "
    "export, "
    "else its newest checkpoint)\n";

enum argument {
    OPTION_JOB = 256,
    OPTION_STORAGE,
    OPTION_CHECKPOINT,
    OPTION_THREADS,
    OPTION_PORT,
    OPTION_FORMAT,
    OPTION_VERSION,
    OPTION_HELP,
    OPTION_PROGRAM,
    OPTION_MODEL,
    OPTION_COMPILED,
    OPTION_COMPILED_BATCH,
    OPTION_COMPILED_FOR,
    OPTION_COMPILED_ON,
    OPTION_TOPOLOGY,
    OPTION_DESCRIBE,
    OPTION_CHECK,
    OPTION_GENERATE,
    OPTION_PROMPT_FILE,
    OPTION_PREDICT,
    OPTION_OUTPUTS,
    OPTION_JSON,
    OPTION_DATA,
    OPTION_WEIGHTS,
    OPTION_TOKENS,
    OPTION_TEMPERATURE,
    OPTION_TOP_K,
    OPTION_SEED
};

static const struct option options[] = {
    {"job", required_argument, NULL, OPTION_JOB},
    {"storage", required_argument, NULL, OPTION_STORAGE},
    {"checkpoint-dir", required_argument, NULL, OPTION_CHECKPOINT},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"http-port", required_argument, NULL, OPTION_PORT},
    {"log-format", required_argument, NULL, OPTION_FORMAT},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, OPTION_HELP},
    {"generate", required_argument, NULL, OPTION_GENERATE},
    {"prompt-file", required_argument, NULL, OPTION_PROMPT_FILE},
    {"predict", required_argument, NULL, OPTION_PREDICT},
    {"outputs", no_argument, NULL, OPTION_OUTPUTS},
    {"json", no_argument, NULL, OPTION_JSON},
    {"data", required_argument, NULL, OPTION_DATA},
    {"weights", required_argument, NULL, OPTION_WEIGHTS},
    {"tokens", required_argument, NULL, OPTION_TOKENS},
    {"temperature", required_argument, NULL, OPTION_TEMPERATURE},
    {"top-k", required_argument, NULL, OPTION_TOP_K},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"describe-model", no_argument, NULL, OPTION_DESCRIBE},
    {"check-job", no_argument, NULL, OPTION_CHECK},
    {"compile-program", required_argument, NULL, OPTION_PROGRAM},
    {"compile-model", no_argument, NULL, OPTION_MODEL},
    {"compiled-batch", required_argument, NULL, OPTION_COMPILED_BATCH}, /* compilation.h, as those below */
    {"compiled-to", required_argument, NULL, OPTION_COMPILED},
    {"compiled-for", required_argument, NULL, OPTION_COMPILED_FOR},
    {"compiled-on-tpus", required_argument, NULL, OPTION_COMPILED_ON},
    {"topology", required_argument, NULL, OPTION_TOPOLOGY},
    {NULL, 0, NULL, 0},
};

static int parse_number(const char *name, const char *text, long low, long high, int *ret_number, struct error *error)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || number < low || number > high)
        return error_set(error, ERROR_INVALID, "--%s: \"%s\" is not a number from %ld to %ld", name, text, low, high);
    *ret_number = (int)number;
    return 0;
}

static int add_storage(struct arguments *arguments, const char *text, struct error *error)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return error_set(error, ERROR_INVALID, "--storage: \"%s\" is not NAME=DIRECTORY", text);
    if (arguments->storage_count == ARGUMENT_STORAGES_MAX)
        return error_set(error, ERROR_INVALID, "--storage: more than %d", ARGUMENT_STORAGES_MAX);
    arguments->storages[arguments->storage_count++] = text;
    return 0;
}

static int parse_temperature(const char *text, double *ret_temperature, struct error *error)
{
    char *end;
    double temperature = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(temperature >= 0 && temperature <= 100))
        return error_set(error, ERROR_INVALID, "--temperature: \"%s\" is not a number from 0 to 100", text);
    *ret_temperature = temperature;
    return 0;
}

static int apply_inference_option(struct inference_arguments *inference, int option, const char *value,
                                  struct error *error)
{
    switch (option) {
    case OPTION_GENERATE:
        inference->prompt = value;
        return 0;
    case OPTION_PROMPT_FILE:
        inference->prompt_file = value;
        return 0;
    case OPTION_PREDICT:
        inference->example = value;
        return 0;
    case OPTION_OUTPUTS:
        inference->outputs = true;
        return 0;
    case OPTION_JSON:
        inference->json = true;
        return 0;
    case OPTION_DATA:
        inference->data = value;
        return 0;
    case OPTION_WEIGHTS:
        inference->weights = value;
        return 0;
    case OPTION_TOKENS:
        return parse_number("tokens", value, 1, 1000000000, &inference->tokens, error);
    case OPTION_TEMPERATURE:
        return parse_temperature(value, &inference->temperature, error);
    case OPTION_TOP_K:
        return parse_number("top-k", value, 0, 1000000, &inference->top_k, error);
    case OPTION_SEED:
        return parse_number("seed", value, 0, INT_MAX, &inference->seed, error);
    default:
        return error_set(error, ERROR_INVALID, "unknown option; see --help");
    }
}

static int apply_option(struct arguments *arguments, int option, const char *value, struct error *error)
{
    switch (option) {
    case OPTION_JOB:
        arguments->job_file = value;
        return 0;
    case OPTION_STORAGE:
        return add_storage(arguments, value, error);
    case OPTION_CHECKPOINT:
        arguments->checkpoint_directory = value;
        return 0;
    case OPTION_THREADS:
        return parse_number("threads", value, 1, COMPUTE_THREADS_MAX, &arguments->threads, error);
    case OPTION_PORT:
        return parse_number("http-port", value, 0, 65535, &arguments->http_port, error);
    case OPTION_FORMAT:
        if (!log_format_parse(value, &arguments->format))
            return error_set(error, ERROR_INVALID, "--log-format: \"%s\" is neither text nor json", value);
        return 0;
    case OPTION_VERSION:
        arguments->version = true;
        return 0;
    case OPTION_HELP:
        arguments->help = true;
        return 0;
    case OPTION_DESCRIBE:
        arguments->describe_model = true;
        return 0;
    case OPTION_CHECK:
        arguments->check_job = true;
        return 0;
    case OPTION_PROGRAM:
        arguments->program = value;
        return 0;
    case OPTION_MODEL:
        arguments->compile_model = true;
        return 0;
    case OPTION_COMPILED_BATCH:
        return parse_number("compiled-batch", value, 1, PROGRAM_BATCH_MAX, &arguments->compiled_batch, error);
    case OPTION_COMPILED:
        return parse_number("compiled-to", value, 3, INT_MAX, &arguments->compiled_to, error);
    case OPTION_TOPOLOGY:
        arguments->topology = value;
        return 0;
    case OPTION_COMPILED_ON:
        return parse_number("compiled-on-tpus", value, 0, XLA_DEVICES_MAX, &arguments->compiled_on_tpus, error);
    case OPTION_COMPILED_FOR:
        return parse_number("compiled-for", value, 0, PROGRAM_USES_MAX, &arguments->compiled_for, error);
    default:
        return apply_inference_option(&arguments->inference, option, value, error);
    }
}

bool arguments_generate(const struct inference_arguments *inference)
{
    return inference->prompt != NULL || inference->prompt_file != NULL;
}

/* They would be without effect. */
static int check_inference(const struct inference_arguments *inference, bool says_how, struct error *error)
{
    bool generates = arguments_generate(inference);
    if (inference->prompt && inference->prompt_file)
        return error_set(error, ERROR_INVALID, "--generate and --prompt-file: one at a time");
    if (generates && inference->example)
        return error_set(error, ERROR_INVALID, "--generate and --predict: one at a time");
    if (inference->weights && !generates && !inference->example)
        return error_set(error, ERROR_INVALID, "--weights: is for --generate and --predict; jobs begin with init.path");
    if (inference->outputs && !inference->example)
        return error_set(error, ERROR_INVALID, "--outputs: is for --predict");
    if (inference->json &&
        (!inference->example || strcmp(inference->example, "all") != 0 || inference->data || inference->outputs))
        return error_set(error, ERROR_INVALID,
                         "--json: needs --predict all, and cannot be combined with --data or --outputs");
    if (inference->data && !inference->example)
        return error_set(error, ERROR_INVALID, "--data: is for --predict");
    if (says_how && !generates)
        return error_set(error, ERROR_INVALID, "--tokens, --temperature, --top-k and --seed are for --generate");
    return 0;
}

int arguments_parse(int count, char **values, struct arguments *ret_arguments, struct error *error)
{
    struct arguments arguments = {.command_line = values,
                                  .format = LOG_TEXT,
                                  .http_port = HTTP_PORT_UNSAID,
                                  .compiled_to = -1,
                                  .inference = {.tokens = 256, .temperature = 0.8}};
    int option;
    bool says_how = false;
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(count, values, "", options, NULL)) != -1) {
        if (apply_option(&arguments, option, optarg, error) < 0)
            return -1;
        says_how |= option >= OPTION_TOKENS;
    }
    if ((arguments.describe_model || arguments.check_job) &&
        (arguments_generate(&arguments.inference) || arguments.inference.example))
        return error_set(error, ERROR_INVALID, "%s: cannot be combined with --generate or --predict",
                         arguments.describe_model ? "--describe-model" : "--check-job");
    if (arguments.topology != NULL && !arguments_compile(&arguments))
        return error_set(error, ERROR_INVALID, "--topology: is for --compile-program and --compile-model");
    if (arguments.program != NULL && arguments.compile_model)
        return error_set(error, ERROR_INVALID, "--compile-program and --compile-model: one at a time");
    if (arguments_compile(&arguments) && arguments_use_model(&arguments))
        return error_set(error, ERROR_INVALID,
                         "--compile-program and --compile-model cannot be combined with the use of a model");
    if (optind < count)
        return error_set(error, ERROR_INVALID, "\"%s\" is no option; see --help", values[optind]);
    if (check_inference(&arguments.inference, says_how, error) < 0)
        return -1;
    *ret_arguments = arguments;
    return 0;
}

bool arguments_compile(const struct arguments *arguments)
{
    return arguments->program != NULL || arguments->compile_model;
}

bool arguments_use_model(const struct arguments *arguments)
{
    return arguments->describe_model || arguments->check_job || arguments_generate(&arguments->inference) ||
           arguments->inference.example != NULL;
}

bool arguments_name_use(int count, char **values)
{
    static const char *const uses[] = {"--generate", "--prompt-file", "--predict", "--describe-model", "--check-job"};
    bool found = false;
    for (int i = 1; i < count; i++) {
        size_t length = strcspn(values[i], "="); /* names may be shortened */
        for (size_t j = 0; j < sizeof uses / sizeof *uses; j++)
            found |= length > 2 && strncmp(values[i], uses[j], length) == 0;
    }
    return found;
}
