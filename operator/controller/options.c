/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/gpu_list.h"
#include "common/job/string_format.h"

#define PERIOD_MAX_S (365 * 24 * 3600)

const char *const options_usage =
    "coxswain-operator: creates and replaces the pods of TrainingJobs\n"
    "\n"
    "  --kubeconfig FILE        credentials; default: $KUBECONFIG, the pod's service account, ~/.kube/config\n"
    "  --namespace NAME         control the jobs of this namespace only; default: all\n"
    "  --controller-name NAME   control the jobs and sweeps whose spec.managedBy is NAME only; default:\n"
    "                           " MANAGED_BY_OPERATOR ", which controls those without managedBy, too\n"
    "  --worker-image IMAGE     for jobs with section coxswain that name no image\n"
    "  --coscheduling-scheduler NAME  schedulerName of pods with gang scheduler Coscheduling;\n"
    "                           default: scheduler-plugins-scheduler\n"
    "  --certificate-period SECONDS   how long a crew with encryption TLS presents one certificate; default: 86400\n"
    "  --metrics-address A:P    where /metrics, /healthz and /readyz are served; default: 127.0.0.1:0 (any free port)\n"
    "  --progress-address A:P   takes the progress that scripts send (progress.push); default: it takes none\n"
    "  --progress-service NAME  the Service through which pods reach that port, without a selector, in the namespace "
    "of\n"
    "                           the Lease; a Secret there has the same name; default: pods reach the address itself\n"
    "  --notification-sink URL  gets a CloudEvent when a job has succeeded, has failed or restarts; default: none\n"
    "  --taint-sick-nodes SECONDS   taints a node (coxswain.dev/sick, NoSchedule) for this time if failures of "
    "several\n"
    "                           jobs within this time are blamed on it; default: taints no node\n"
    "  --machine-gpus N         for the embedded control plane: its machine has N GPUs, which jobs with devices.type "
    "Auto\n"
    "                           request if they are enough; default: such jobs request none\n"
    "  --leader-elect           acts only while it holds a Lease, so that one of several operators acts at a time\n"
    "  --lease-namespace NAME   where the Lease is; default: the operator's own namespace\n"
    "  --lease-name NAME        of the Lease; default: coxswain-operator\n"
    "  --log-format text|json\n"
    "  --log-level debug|info|warning|error\n"
    "  --help\n"
    "  --version\n"
    "\n"
    "Exit codes: 0 ended by a signal; 1 the Lease was lost, start it again; 64 an option is wrong;\n"
    "69 there are no credentials, or a port cannot be opened\n";

enum option_id {
    OPTION_KUBECONFIG = 1,
    OPTION_NAMESPACE,
    OPTION_CONTROLLER_NAME,
    OPTION_IMAGE,
    OPTION_COSCHEDULING,
    OPTION_CERTIFICATES,
    OPTION_METRICS,
    OPTION_PROGRESS,
    OPTION_PROGRESS_SERVICE,
    OPTION_SINK,
    OPTION_SICK_NODES,
    OPTION_MACHINE_GPUS,
    OPTION_ELECT,
    OPTION_LEASE_NAMESPACE,
    OPTION_LEASE_NAME,
    OPTION_FORMAT,
    OPTION_LEVEL,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"kubeconfig", required_argument, NULL, OPTION_KUBECONFIG},
    {"namespace", required_argument, NULL, OPTION_NAMESPACE},
    {"controller-name", required_argument, NULL, OPTION_CONTROLLER_NAME},
    {"worker-image", required_argument, NULL, OPTION_IMAGE},
    {"coscheduling-scheduler", required_argument, NULL, OPTION_COSCHEDULING},
    {"certificate-period", required_argument, NULL, OPTION_CERTIFICATES},
    {"metrics-address", required_argument, NULL, OPTION_METRICS},
    {"progress-address", required_argument, NULL, OPTION_PROGRESS},
    {"progress-service", required_argument, NULL, OPTION_PROGRESS_SERVICE},
    {"notification-sink", required_argument, NULL, OPTION_SINK},
    {"taint-sick-nodes", required_argument, NULL, OPTION_SICK_NODES},
    {"machine-gpus", required_argument, NULL, OPTION_MACHINE_GPUS},
    {"leader-elect", no_argument, NULL, OPTION_ELECT},
    {"lease-namespace", required_argument, NULL, OPTION_LEASE_NAMESPACE},
    {"lease-name", required_argument, NULL, OPTION_LEASE_NAME},
    {"log-format", required_argument, NULL, OPTION_FORMAT},
    {"log-level", required_argument, NULL, OPTION_LEVEL},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};

static int parse_port(const char *text, uint16_t *ret_port)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || port > UINT16_MAX)
        return -1;
    *ret_port = (uint16_t)port;
    return 0;
}

static int parse_seconds(const char *name, const char *text, int64_t *ret_ms, struct error *error)
{
    char *end;
    long seconds = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || seconds < 1 || seconds > PERIOD_MAX_S)
        return error_set(error, ERROR_INVALID, "%s %s: must be a number of seconds from 1 to %d, without a unit", name,
                         text, PERIOD_MAX_S);
    *ret_ms = 1000 * (int64_t)seconds;
    return 0;
}

static int parse_gpus(const char *text, int64_t *ret_count, struct error *error)
{
    char *end;
    long count = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || count > GPU_LIST_MAX)
        return error_set(error, ERROR_INVALID, "--machine-gpus %s: must be a number from 0 to %d", text, GPU_LIST_MAX);
    *ret_count = count;
    return 0;
}

/* "127.0.0.1:8080", "[::]:8080", ":8080" (all addresses), "localhost:0". */
static int parse_address(const char *text, char ret_address[OPTION_ADDRESS_MAX], uint16_t *ret_port,
                         struct error *error)
{
    const char *colon = strrchr(text, ':'), *first = text, *last = colon;
    if (colon && *first == '[' && colon > first && colon[-1] == ']') {
        first++;
        last--;
    }
    size_t length = colon ? (size_t)(last - first) : 0;
    if (!colon || length >= OPTION_ADDRESS_MAX || parse_port(colon + 1, ret_port) < 0)
        return error_set(error, ERROR_INVALID, "%s is not an address with a port; write it as 127.0.0.1:8080", text);
    if (length == 0)
        snprintf(ret_address, OPTION_ADDRESS_MAX, "0.0.0.0");
    else
        snprintf(ret_address, OPTION_ADDRESS_MAX, "%.*s", (int)length, first);
    return 0;
}

static int apply_log(int id, const char *value, struct options *options, struct error *error)
{
    if (id == OPTION_FORMAT && !log_format_parse(value, &options->log_format))
        return error_set(error, ERROR_INVALID, "--log-format %s: write text or json", value);
    if (id == OPTION_LEVEL && !log_level_parse(value, &options->log_level))
        return error_set(error, ERROR_INVALID, "--log-level %s: write debug, info, warning or error", value);
    return 0;
}

static int apply_lease_name(const char *value, struct options *options, struct error *error)
{
    if (*value == '\0' || value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-.")] != '\0')
        return error_set(error, ERROR_INVALID, "--lease-name '%s': write lower-case letters, digits, - and .", value);
    options->lease_name = value;
    return 0;
}

static int apply_controller_name(const char *value, struct options *options, struct error *error)
{
    if (!string_format_matches(STRING_FORMAT_QUALIFIED_NAME, value) || !strchr(value, '/'))
        return error_set(error, ERROR_INVALID,
                         "--controller-name '%s': write a domain of yours, a slash and a name, such as "
                         "example.com/coxswain",
                         value);
    if (strcmp(value, MANAGED_BY_MULTIKUEUE) == 0)
        return error_set(error, ERROR_INVALID, "--controller-name: " MANAGED_BY_MULTIKUEUE " is the name of Kueue");
    options->controller_name = value;
    return 0;
}

/* Each request is one to this URL, which the program's arguments show to all who may see its pod. */
static int apply_sink(const char *value, struct options *options, struct error *error)
{
    const char *host = strstr(value, "://");
    bool known = strncmp(value, "https://", 8) == 0 || strncmp(value, "http://", 7) == 0;
    if (!known || host[3] == '\0' || host[3] == '/')
        return error_set(error, ERROR_INVALID,
                         "--notification-sink: write a URL that begins with https:// or http://, and a host");
    if (memchr(host, '@', 3 + strcspn(host + 3, "/?#")))
        return error_set(error, ERROR_INVALID,
                         "--notification-sink: leave the user name and the password out of the URL");
    options->notification_sink = value;
    return 0;
}

static int apply(int id, const char *value, struct options *options, struct error *error)
{
    switch (id) {
    case OPTION_KUBECONFIG:
        options->kubeconfig = value;
        return 0;
    case OPTION_NAMESPACE:
        options->name_space = value;
        return 0;
    case OPTION_IMAGE:
        options->worker_image = value;
        return 0;
    case OPTION_COSCHEDULING:
        options->coscheduling_scheduler = value;
        return 0;
    case OPTION_LEASE_NAMESPACE:
        options->lease_namespace = value;
        return 0;
    case OPTION_LEASE_NAME:
        return apply_lease_name(value, options, error);
    case OPTION_ELECT:
        options->leader_elect = true;
        return 0;
    case OPTION_HELP:
        options->help = true;
        return 0;
    case OPTION_VERSION:
        options->version = true;
        return 0;
    case OPTION_CONTROLLER_NAME:
        return apply_controller_name(value, options, error);
    case OPTION_CERTIFICATES:
        return parse_seconds("--certificate-period", value, &options->certificate_period_ms, error);
    case OPTION_METRICS:
        return parse_address(value, options->metrics_address, &options->metrics_port, error);
    case OPTION_PROGRESS:
        return parse_address(value, options->progress_address, &options->progress_port, error);
    case OPTION_PROGRESS_SERVICE:
        options->progress_service = value;
        return 0;
    case OPTION_SICK_NODES:
        return parse_seconds("--taint-sick-nodes", value, &options->sick_node_ms, error);
    case OPTION_MACHINE_GPUS:
        return parse_gpus(value, &options->machine_gpus, error);
    case OPTION_SINK:
        return apply_sink(value, options, error);
    default:
        return apply_log(id, value, options, error);
    }
}

/* Operators with one Lease would wait for each other for ever. */
static int check_lease(const struct options *options, struct error *error)
{
    if (options->leader_elect && strcmp(options->controller_name, MANAGED_BY_OPERATOR) != 0 &&
        strcmp(options->lease_name, OPERATOR_NAME) == 0)
        return error_set(error, ERROR_INVALID,
                         "--controller-name with --leader-elect needs a --lease-name of its own, since " OPERATOR_NAME
                         " is that of the operator without the option");
    return 0;
}

static int check_sick_nodes(const struct options *options, struct error *error)
{
    if (options->sick_node_ms > 0 && options->name_space)
        return error_set(
            error, ERROR_INVALID,
            "--taint-sick-nodes: leave --namespace out; an operator of one namespace may not change nodes, "
            "and sees too few jobs");
    return 0;
}

/* The URL that pods get must lead to the port. */
static int check_progress(const struct options *options, struct error *error)
{
    const char *address = options->progress_address;
    bool any = strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
    if (options->progress_service && *address == '\0')
        return error_set(error, ERROR_INVALID, "--progress-service needs --progress-address, such as :8443");
    if (options->progress_service && options->progress_port == 0)
        return error_set(error, ERROR_INVALID,
                         "--progress-address: with --progress-service give the port, such as :8443");
    if (any && !options->progress_service)
        return error_set(error, ERROR_INVALID,
                         "--progress-address %s: write an address at which pods reach the operator, or give "
                         "--progress-service",
                         address);
    return 0;
}

int options_parse(int count, char **arguments, struct options *ret_options, struct error *error)
{
    struct options options = {.controller_name = MANAGED_BY_OPERATOR,
                              .worker_image = "coxswain-worker",
                              .coscheduling_scheduler = "scheduler-plugins-scheduler",
                              .lease_name = OPERATOR_NAME,
                              .metrics_address = "127.0.0.1",
                              .log_level = LOG_INFO,
                              .log_format = LOG_TEXT};
    int id;
    optind = 0; /* a fresh start for each call */
    opterr = 0;
    while ((id = getopt_long(count, arguments, ":", long_options, NULL)) != -1) {
        if (id == ':')
            return error_set(error, ERROR_INVALID, "%s needs a value", arguments[optind - 1]);
        if (id == '?')
            return error_set(error, ERROR_INVALID, "%s is not known; see --help", arguments[optind - 1]);
        if (apply(id, optarg, &options, error) < 0)
            return -1;
    }
    if (optind < count)
        return error_set(error, ERROR_INVALID, "%s: the operator takes options only; see --help", arguments[optind]);
    if (check_lease(&options, error) < 0 || check_progress(&options, error) < 0 ||
        check_sick_nodes(&options, error) < 0)
        return -1;
    *ret_options = options;
    return 0;
}
