/* SPDX-License-Identifier: Apache-2.0
 *
 * The Kubernetes client against an API server: creates, reads, an informer's first
 * state, deletes, each over a pool of HTTP/1.1 connections and over one HTTP/2
 * connection; and the anonymous memory it leaves.
 *
 * COXSWAIN_BENCH_KUBECONFIG names the server to measure (default: the embedded control plane, started for
 * it); ConfigMaps named bench-… in its namespace are made and removed. COXSWAIN_BENCH_OBJECTS: how many (2000).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/kube/client.h"
#include "operator/kube/informer.h"
#include "tests/bench/process_status.h"

struct bench {
    struct event_loop *loop;
    struct kube_client *client;
    const char *name_space;
    int objects;
    int left, failed;
    char first_failure[ERROR_MESSAGE_MAX];
    bool synced;
};

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct bench *bench = context;
    if (answer->error && bench->failed++ == 0)
        memcpy(bench->first_failure, answer->error->message, sizeof bench->first_failure);
    bench->left--;
}

static struct json *config_map(const char *name)
{
    struct json *object = json_new_object();
    char filler[600];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    json_set_string(json_set_object(object, "metadata"), "name", name);
    json_set_string(json_set_object(object, "data"), "filler", filler);
    return object;
}

#define LATENCY_WRITES 200

enum work { CREATE, GET, DELETE };

static void start_one(struct bench *bench, enum work work, int number)
{
    SCOPED_FREE char *name = memory_format("bench-%d", number);
    struct resource_path path = {.resource = KUBE_CONFIG_MAPS, .name_space = bench->name_space, .name = name};
    struct kube_call_options options = {.timeout_ms = 300000, .answered = on_answer, .context = bench};
    if (work == GET) {
        kube_client_get(bench->client, &path, &options);
    } else if (work == DELETE) {
        kube_client_delete(bench->client, &path, &(struct kube_delete_options){.grace_seconds = -1}, &options);
    } else {
        SCOPED_JSON *object = config_map(name);
        path.name = NULL;
        kube_client_create(bench->client, &path, object, &options);
    }
}

static void run_work(struct bench *bench, const char *what, const char *protocol, enum work work)
{
    int64_t began = clock_monotonic_ns();
    bench->left = bench->objects;
    bench->failed = 0;
    for (int i = 0; i < bench->objects; i++)
        start_one(bench, work, i);
    while (bench->left > 0)
        event_loop_turn(bench->loop, -1, NULL);
    double seconds = (double)(clock_monotonic_ns() - began) / 1e9;
    printf("%-10s %-8s %9.0f a second", protocol, what, bench->objects / seconds);
    if (bench->failed)
        printf("   %d failed, the first: %s", bench->failed, bench->first_failure);
    printf("\n");
}

static void *parse(void *context, const struct json *object)
{
    (void)context;
    return memory_copy_string(json_string_at(object, "metadata.uid", ""));
}

static void on_synced(void *context)
{
    ((struct bench *)context)->synced = true;
}

static long rss_anon_kb(void)
{
    return process_status_kb(getpid(), "RssAnon:");
}

static void run_informer(struct bench *bench, const char *what, const char *protocol, bool pages)
{
    struct informer_options options = {
        .resource = KUBE_CONFIG_MAPS,
        .name_space = bench->name_space,
        .parse = parse,
        .item_free = free,
        .on_synced = on_synced,
        .context = bench,
        .never_stream_list = pages,
    };
    int64_t began = clock_monotonic_ns();
    bench->synced = false;
    struct informer *informer = informer_start(bench->client, &options);
    while (!bench->synced)
        event_loop_turn(bench->loop, -1, NULL);
    double ms = (double)(clock_monotonic_ns() - began) / 1e6;
    printf("%-10s %-8s %9.1f ms for %zu objects, RssAnon %ld kB\n", protocol, what, ms, informer_count(informer),
           rss_anon_kb());
    informer_free(informer);
}

/* One at a time: what a single client waits for a write that is on disk. */
static void run_latency(struct bench *bench, const char *protocol)
{
    int64_t began = clock_monotonic_ns();
    for (int i = 0; i < LATENCY_WRITES; i++) {
        bench->left = 1;
        start_one(bench, i % 2 ? DELETE : CREATE, i / 2);
        while (bench->left > 0)
            event_loop_turn(bench->loop, -1, NULL);
    }
    double ms = (double)(clock_monotonic_ns() - began) / 1e6 / LATENCY_WRITES;
    printf("%-10s %-8s %9.2f ms a write, one after the other\n", protocol, "latency", ms);
}

static int measure(const struct kube_config *config, bool http2, int objects, struct error *error)
{
    struct bench bench = {.name_space = config->name_space, .objects = objects};
    struct kube_client_options options = {.http2 = http2};
    const char *protocol = http2 ? "HTTP/2" : "HTTP/1.1";
    if (event_loop_new(&bench.loop, error) < 0)
        return -1;
    if (kube_client_new(bench.loop, config, &options, &bench.client, error) < 0)
        return -1;
    run_latency(&bench, protocol);
    run_work(&bench, "create", protocol, CREATE);
    run_work(&bench, "get", protocol, GET);
    run_informer(&bench, "stream", protocol, false);
    run_informer(&bench, "pages", protocol, true);
    run_work(&bench, "delete", protocol, DELETE);
    kube_client_free(bench.client);
    event_loop_free(bench.loop);
    printf("%-10s %-8s %9ld kB RssAnon\n", protocol, "after", rss_anon_kb());
    return 0;
}

/* ---- a server of our own ---- */

struct server {
    char directory[32];
    char *kubeconfig;
    pid_t process;
};

static int server_start(struct server *server)
{
    const char *build = getenv("BUILD");
    SCOPED_FREE char *program = memory_format("%s/coxswain-standalone", build ? build : "build");
    *server = (struct server){.directory = "/tmp/coxswain-bench-XXXXXX"};
    if (mkdtemp(server->directory) == NULL)
        return -1;
    server->kubeconfig = memory_format("%s/kubeconfig", server->directory);
    server->process = fork();
    if (server->process == 0) {
        execl(program, program, "--no-node", "--log-level", "error", "--crd", "deploy/crd", "--state",
              server->directory, (char *)NULL);
        _exit(127);
    }
    while (access(server->kubeconfig, R_OK) != 0) {
        if (server->process < 0 || waitpid(server->process, NULL, WNOHANG) != 0)
            return -1;
        usleep(5000);
    }
    return 0;
}

static void server_stop(struct server *server)
{
    if (server->process <= 0)
        return;
    kill(server->process, SIGTERM);
    while (waitpid(server->process, NULL, 0) < 0 && errno == EINTR)
        continue;
    SCOPED_FREE char *remove = memory_format("rm -rf %s", server->directory);
    if (system(remove) != 0)
        fprintf(stderr, "bench_kube: %s stays behind\n", server->directory);
    free(server->kubeconfig);
}

static int measure_both(const char *path, struct error *error)
{
    const char *count = getenv("COXSWAIN_BENCH_OBJECTS");
    int objects = count ? (int)strtol(count, NULL, 10) : 2000;
    SCOPED(kube_config_release) struct kube_config config = {0};
    if (kube_config_load(path, NULL, &config, error) < 0 || measure(&config, false, objects, error) < 0)
        return -1;
    return measure(&config, true, objects, error);
}

int main(void)
{
    struct error error = ERROR_INIT;
    struct server server = {.process = 0};
    const char *path = getenv("COXSWAIN_BENCH_KUBECONFIG");
    if (path == NULL && server_start(&server) < 0) {
        fprintf(stderr, "bench_kube: coxswain-standalone does not start; is BUILD right?\n");
        return 1;
    }
    int measured = measure_both(path ? path : server.kubeconfig, &error);
    server_stop(&server);
    if (measured < 0)
        fprintf(stderr, "bench_kube: %s\n", error.message);
    return measured < 0 ? 1 : 0;
}
