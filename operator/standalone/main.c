/* SPDX-License-Identifier: Apache-2.0
 *
 * coxswain-standalone: an embedded control plane for one machine. Opens the
 * store, serves the Kubernetes API on loopback, runs pods as processes, and says
 * that it is ready by writing the kubeconfig last.
 */
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/contract/state_directory.h"
#include "common/event_loop.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/version.h"
#include "operator/standalone/api_server.h"
#include "operator/standalone/bootstrap.h"
#include "operator/standalone/credentials.h"
#include "operator/standalone/garbage_collector.h"
#include "operator/standalone/node.h"
#include "operator/standalone/private_file.h"

#define LISTED_MAX 64
#define EXIT_USAGE 2
#define STOP_GRACE_MS 10000
#define SWEEP_MS (10 * 60 * 1000)
#define SHARED_MS 100 /* whether other commands still use this control plane */

static const char usage[] =
    "usage: coxswain-standalone --state DIR [options]\n"
    "\n"
    "An embedded Kubernetes control plane for one machine: an API server on loopback and a node that runs pods as\n"
    "processes. It is ready once DIR/kubeconfig appears. For laptops and tests, not for production.\n"
    "\n"
    "  --state DIR           where objects, certificates, logs and volumes lie; created when missing\n"
    "  --port N              port on 127.0.0.1 (default: the one of the last start, else any free one)\n"
    "  --volume CLAIM=DIR    directory behind a PersistentVolumeClaim (default: DIR/volumes/NAMESPACE/CLAIM); "
    "repeatable\n"
    "  --crd FILE|DIR        CustomResourceDefinitions to serve (default: those of this installation); repeatable\n"
    "  --isolation WORD      auto, namespaces or rewrite: how pods get their names and paths (default: auto)\n"
    "  --no-node             serve the API and what is stored only; pods stay as they are\n"
    "  --log-format WORD     text or json (default: text)\n"
    "  --log-level WORD      debug, info, warning or error (default: info)\n"
    "  --help                this text\n"
    "  --version             the release\n";

struct options {
    const char *state;
    uint16_t port;
    struct node_volume volumes[LISTED_MAX];
    unsigned volume_count;
    const char *definitions[LISTED_MAX];
    unsigned definition_count;
    enum node_isolation isolation;
    bool no_node;
};

struct standalone {
    struct options options;
    struct event_loop *loop;
    struct registry *registry;
    struct api_server *server;
    struct node *node;
    struct node_options stored; /* for logs without a node */
    struct credentials credentials;
    int lock, end_lock; /* of the state directory; -1: not held */
    bool stopping;
};

/* ---- options ---- */

static int wrong(const char *option, const char *text, const char *needed)
{
    fprintf(stderr, "coxswain-standalone: %s \"%s\": %s; see --help\n", option, text, needed);
    return -1;
}

static int read_port(struct options *options, const char *text)
{
    char *end;
    long port = strtol(text, &end, 10);
    if (*text == '\0' || *end || port < 0 || port > UINT16_MAX)
        return wrong("--port", text, "give a number from 0 to 65535");
    options->port = (uint16_t)port;
    return 0;
}

/* Cuts the argument at '='. */
static int read_volume(struct options *options, char *text)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0' || options->volume_count == LISTED_MAX)
        return wrong("--volume", text, "give CLAIM=DIRECTORY, at most 64 times");
    *equals = '\0';
    options->volumes[options->volume_count++] = (struct node_volume){text, equals + 1};
    return 0;
}

static int read_definition(struct options *options, const char *text)
{
    if (options->definition_count == LISTED_MAX)
        return wrong("--crd", text, "at most 64 times");
    options->definitions[options->definition_count++] = text;
    return 0;
}

static int read_log(int option, const char *text)
{
    static enum log_level level = LOG_INFO;
    static enum log_format format = LOG_TEXT;
    if (option == 'f' ? !log_format_parse(text, &format) : !log_level_parse(text, &level))
        return wrong(option == 'f' ? "--log-format" : "--log-level", text, "no such word");
    log_configure(level, format);
    return 0;
}

static int read_option(struct options *options, int option, char *text)
{
    switch (option) {
    case 's':
        options->state = text;
        return 0;
    case 'p':
        return read_port(options, text);
    case 'v':
        return read_volume(options, text);
    case 'c':
        return read_definition(options, text);
    case 'i':
        return node_isolation_parse(text, &options->isolation) ? 0 : wrong("--isolation", text, "no such word");
    case 'n':
        options->no_node = true;
        return 0;
    case 'f':
    case 'l':
        return read_log(option, text);
    default:
        return -1;
    }
}

static int read_options(struct options *options, int count, char **arguments)
{
    static const struct option known[] = {
        {"state", required_argument, NULL, 's'},
        {"port", required_argument, NULL, 'p'},
        {"volume", required_argument, NULL, 'v'},
        {"crd", required_argument, NULL, 'c'},
        {"isolation", required_argument, NULL, 'i'},
        {"no-node", no_argument, NULL, 'n'},
        {"log-format", required_argument, NULL, 'f'},
        {"log-level", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(count, arguments, "", known, NULL)) != -1) {
        if (option == 'h' || option == 'V') {
            fputs(option == 'h' ? usage : "coxswain-standalone " COXSWAIN_VERSION "\n", stdout);
            exit(EXIT_SUCCESS);
        }
        if (read_option(options, option, optarg) < 0)
            return -1;
    }
    if (options->state == NULL || optind < count) {
        fputs(usage, stderr);
        return -1;
    }
    return 0;
}

/* ---- the state directory ---- */

static char *in_state(const struct standalone *standalone, const char *name)
{
    return memory_format("%s/%s", standalone->options.state, name);
}

/* The port of the last start, so that clients find the server again; 0 when there was none. */
static uint16_t last_port(const struct standalone *standalone)
{
    SCOPED_FREE char *path = in_state(standalone, STATE_PORT);
    SCOPED_BUFFER text = BUFFER_INIT(16);
    if (buffer_read_file(&text, path, NULL) < 0)
        return 0;
    long port = strtol(buffer_text(&text), NULL, 10);
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

static int remember_port(const struct standalone *standalone, struct error *error)
{
    char text[16];
    SCOPED_FREE char *path = in_state(standalone, STATE_PORT);
    int length = snprintf(text, sizeof text, "%u\n", api_server_port(standalone->server));
    return private_file_write(path, text, (size_t)length, error);
}

static void forget_kubeconfig(const struct standalone *standalone)
{
    SCOPED_FREE char *path = in_state(standalone, STATE_KUBECONFIG);
    unlink(path);
}

/* ---- definitions that come with the installation ---- */

static int load_installed(struct standalone *standalone, struct error *error)
{
    static const char *const places[] = {"/../deploy/crd", "/deploy/crd", "/../share/coxswain/crd"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return error_set_errno(error, "cannot find the path of this program");
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        SCOPED_FREE char *path = memory_format("%s%s", program, places[i]);
        if (access(path, R_OK) == 0)
            return bootstrap_definitions(standalone->registry, path, error);
    }
    return error_set(error, ERROR_NOT_FOUND,
                     "no CustomResourceDefinitions found beside %s; name them with --crd FILE|DIR", program);
}

static int load_definitions(struct standalone *standalone, struct error *error)
{
    const struct options *options = &standalone->options;
    if (options->definition_count == 0)
        return load_installed(standalone, error);
    for (unsigned i = 0; i < options->definition_count; i++)
        if (bootstrap_definitions(standalone->registry, options->definitions[i], error) < 0)
            return -1;
    return 0;
}

/* ---- start and stop ---- */

static void node_is_stopped(void *context)
{
    struct standalone *standalone = context;
    event_loop_stop(standalone->loop);
}

static void on_signal(void *context, int number)
{
    struct standalone *standalone = context;
    (void)number;
    if (standalone->stopping || standalone->node == NULL) {
        event_loop_stop(standalone->loop);
        return;
    }
    standalone->stopping = true;
    log_info("stopping: ending all pods", NULL);
    node_stop(standalone->node, STOP_GRACE_MS, node_is_stopped, standalone);
}

/* The command that has started this control plane to read from it has ended; others may still use it. */
static void end_unshared(void *context)
{
    struct standalone *standalone = context;
    if (state_directory_lock(standalone->options.state, STATE_TO_END, &standalone->end_lock, NULL) == 0)
        event_loop_stop(standalone->loop);
    else
        event_timer_start(standalone->loop, SHARED_MS, end_unshared, standalone);
}

static void on_end_signal(void *context, int number)
{
    struct standalone *standalone = context;
    (void)number;
    if (!standalone->stopping)
        end_unshared(standalone);
    standalone->stopping = true;
}

static void sweep(void *context)
{
    struct standalone *standalone = context;
    struct error error = ERROR_INIT;
    if (garbage_collector_sweep(standalone->registry, &error) < 0)
        log_warning("garbage collection failed", "error", error.message, NULL);
    event_timer_start(standalone->loop, SWEEP_MS, sweep, standalone);
}

static int start_store(struct standalone *standalone, struct error *error)
{
    if (private_directory_make(standalone->options.state, error) < 0 ||
        state_directory_lock(standalone->options.state, standalone->options.no_node ? STATE_TO_READ : STATE_TO_RUN,
                             &standalone->lock, error) < 0)
        return -1;
    forget_kubeconfig(standalone);
    if (registry_open(standalone->options.state, standalone->loop, &standalone->registry, error) < 0 ||
        bootstrap_cluster(standalone->registry, error) < 0 || load_definitions(standalone, error) < 0)
        return -1;
    sweep(standalone);
    return 0;
}

static int start_node(struct standalone *standalone, struct error *error)
{
    const struct options *options = &standalone->options;
    struct node_options node = {
        .loop = standalone->loop,
        .registry = standalone->registry,
        .state_directory = options->state,
        .isolation = options->isolation,
        .volumes = options->volumes,
        .volume_count = options->volume_count,
    };
    standalone->stored = node;
    if (options->no_node)
        return 0;
    if (node_start(&node, &standalone->node, error) < 0)
        return error_wrap(error, "node");
    log_info("node runs pods as processes", "isolation", node_isolation_word(node_isolation_used(standalone->node)),
             "why", node_isolation_reason(standalone->node)[0] ? node_isolation_reason(standalone->node) : NULL, NULL);
    return 0;
}

static int start_server(struct standalone *standalone, struct error *error)
{
    struct api_server_options server = {
        .loop = standalone->loop,
        .registry = standalone->registry,
        .port = standalone->options.port ? standalone->options.port : last_port(standalone),
        .cert_pem = standalone->credentials.cert_pem,
        .key_pem = standalone->credentials.key_pem,
        .token = standalone->credentials.token,
        .pod_log = standalone->node ? node_pod_log : node_stored_log,
        .pod_log_context = standalone->node ? (void *)standalone->node : &standalone->stored,
    };
    int started = api_server_start(&server, &standalone->server, error);
    if (started < 0 && standalone->options.port == 0 && server.port) {
        server.port = 0;
        started = api_server_start(&server, &standalone->server, error);
    }
    return started < 0 ? -1 : remember_port(standalone, error);
}

static int start(struct standalone *standalone, struct error *error)
{
    const char *state = standalone->options.state;
    if (event_loop_new(&standalone->loop, error) < 0 ||
        event_loop_on_signal(standalone->loop, SIGTERM, on_signal, standalone, error) < 0 ||
        event_loop_on_signal(standalone->loop, SIGINT, on_signal, standalone, error) < 0 ||
        (standalone->options.no_node &&
         event_loop_on_signal(standalone->loop, STATE_END_SIGNAL, on_end_signal, standalone, error) < 0))
        return -1;
    signal(SIGPIPE, SIG_IGN);
    if (start_store(standalone, error) < 0 || credentials_load(state, &standalone->credentials, error) < 0 ||
        start_node(standalone, error) < 0 || start_server(standalone, error) < 0)
        return -1;
    return credentials_write_kubeconfig(&standalone->credentials, state, api_server_port(standalone->server), error);
}

static void announce(const struct standalone *standalone)
{
    char port[8];
    SCOPED_FREE char *kubeconfig = in_state(standalone, STATE_KUBECONFIG);
    snprintf(port, sizeof port, "%u", api_server_port(standalone->server));
    log_info("serving the Kubernetes API on 127.0.0.1", "port", port, "kubeconfig", kubeconfig, NULL);
}

static void finish(struct standalone *standalone)
{
    if (standalone->server)
        forget_kubeconfig(standalone);
    node_free(standalone->node);
    api_server_free(standalone->server);
    registry_close(standalone->registry);
    event_loop_free(standalone->loop);
    credentials_release(&standalone->credentials);
    if (standalone->lock >= 0)
        close(standalone->lock);
    if (standalone->end_lock >= 0)
        close(standalone->end_lock);
}

int main(int count, char **arguments)
{
    struct standalone standalone = {.lock = -1, .end_lock = -1};
    struct error error = ERROR_INIT;
    if (read_options(&standalone.options, count, arguments) < 0)
        return EXIT_USAGE;
    int result = start(&standalone, &error);
    if (result == 0) {
        announce(&standalone);
        result = event_loop_run(standalone.loop, &error);
    }
    if (result < 0)
        log_error("stopping after an error", "error", error.message, NULL);
    finish(&standalone);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
