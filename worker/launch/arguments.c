/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/arguments.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

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
    "  --version, --help\n";

enum argument {
    OPTION_JOB = 256,
    OPTION_STORAGE,
    OPTION_CHECKPOINT,
    OPTION_THREADS,
    OPTION_PORT,
    OPTION_FORMAT,
    OPTION_VERSION,
    OPTION_HELP
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
        return parse_number("threads", value, 1, 1024, &arguments->threads, error);
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
    default:
        return error_set(error, ERROR_INVALID, "unknown option; see --help");
    }
}

int arguments_parse(int count, char **values, struct arguments *ret_arguments, struct error *error)
{
    struct arguments arguments = {.format = LOG_TEXT, .http_port = HTTP_PORT_UNSAID};
    int option;
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(count, values, "", options, NULL)) != -1)
        if (apply_option(&arguments, option, optarg, error) < 0)
            return -1;
    if (optind < count)
        return error_set(error, ERROR_INVALID, "\"%s\" is no option; see --help", values[optind]);
    *ret_arguments = arguments;
    return 0;
}
