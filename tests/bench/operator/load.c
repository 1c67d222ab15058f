/* SPDX-License-Identifier: Apache-2.0
 *
 * The load of `make bench-operator`: creates objects in a namespace with the project's own client, and waits until a number of
 * pods run there.
 *
 *   operator-load create NAMESPACE PODS OBJECT.json NAME COUNT [OBJECT.json NAME COUNT DELAY_MS]
 *       creates COUNT objects like OBJECT.json, named NAME-0 and so on, and DELAY_MS later the second kind. Ends when PODS pods of
 *       the namespace run.
 *   operator-load restart NAMESPACE POD.json NAME
 *       deletes every pod of the namespace and creates as many, named NAME-0 and so on, as fast as it can: only the requests of
 *       a restart. Ends when they run.
 *   operator-load renew NAMESPACE POD.json NAME
 *       the same, but creates each only once the watch shows that an old one is gone: only the requests of a restart in which
 *       each pod waits for its predecessor. The names must differ from the old ones, since KWOK deletes by name, sometimes twice.
 *   operator-load await NAMESPACE PODS PATTERN
 *       waits until PODS pods run whose names match the shell pattern.
 *
 * LOAD_GROUP=N: the created pods get a label that assigns each N of them to one of the created Services.
 * Credentials: KUBECONFIG. Pods may be given as the API server returns them. LOAD_SECONDS: the longest wait (600).
 * LOAD_WATCH: a process whose memory is observed. Prints "figure value" lines:
 *   lag_p50, lag_p99   ms from the answer to a pod's create until the watch shows the pod; only for pods made here
 *   rss_anon_kb        the largest of LOAD_WATCH
 *   running            running pods; fewer than requested if the time was over (exit status 1)
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/kube/client.h"
#include "operator/kube/hash_map.h"
#include "operator/kube/informer.h"
#include "tests/bench/operator/object_anew.h"
#include "tests/bench/process_status.h"

#define SAMPLE_MS 50
#define NS_PER_MS 1000000

/* Resources that objects of a kind belong to. */
static const struct {
    const char *kind;
    struct kube_resource resource;
} kinds[] = {
    {"Pod", {"", "v1", "pods"}},
    {"Service", {"", "v1", "services"}},
    {"TrainingJob", {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL}},
    {"PyTorchJob", {"kubeflow.org", "v1", "pytorchjobs"}},
};

/* Objects of one kind that are to be created. */
struct series {
    struct json *object;
    struct kube_resource resource;
    const char *name;
    int count;
};

struct load {
    struct event_loop *loop;
    struct kube_client *client;
    struct informer *pods;
    const char *name_space;
    const char *pattern; /* of the names that count */
    struct series series[2];
    int series_count;
    int wanted, running;
    int due;          /* pods that are to be created, each once an old one is gone */
    int open, failed; /* creates and deletes without an answer; refused */
    bool synced;
    struct hash_map answered; /* pods created here that the watch has not shown -> when, in ns */
    int64_t *lags;
    size_t lag_count;
    const char *watched;
    long rss_anon_kb;
    int64_t deadline_ns;
    int group; /* pods of a Service; 0: they have none */
};

/* One request under way. */
struct request {
    struct load *load;
    char *key; /* of a pod that is created, else NULL */
};

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* ---------------------------------------------------------------- pods */

static void *parse(void *context, const struct json *object)
{
    (void)context;
    bool runs = strcmp(json_string_at(object, "status.phase", ""), "Running") == 0;
    bool deleted = json_string_at(object, "metadata.deletionTimestamp", NULL) != NULL;
    return memory_copy_string(deleted ? "deleted" : runs ? "running" : "waiting");
}

static bool counts(const struct load *load, const char *key, const char *state)
{
    const char *name = strchr(key, '/');
    return name && strcmp(state, "running") == 0 && fnmatch(load->pattern, name + 1, 0) == 0;
}

static void note_lag(struct load *load, const char *key)
{
    int64_t *answered_ns = hash_map_remove(&load->answered, key);
    if (!answered_ns)
        return;
    int64_t lag_ns = *answered_ns > 0 ? clock_monotonic_ns() - *answered_ns : 0;
    load->lags = memory_resize(load->lags, load->lag_count + 1, sizeof *load->lags);
    load->lags[load->lag_count++] = lag_ns;
    free(answered_ns);
}

static void pod_added(void *context, const char *key, const void *item)
{
    struct load *load = context;
    load->running += counts(load, key, item);
    note_lag(load, key);
}

static void pod_changed(void *context, const char *key, const void *old, const void *item)
{
    struct load *load = context;
    load->running += counts(load, key, item) - counts(load, key, old);
}

static void create_next(struct load *load);

static void pod_deleted(void *context, const char *key, const void *item)
{
    struct load *load = context;
    load->running -= counts(load, key, item);
    if (load->due > 0)
        create_next(load);
}

static void synced(void *context)
{
    ((struct load *)context)->synced = true;
}

static void watch_pods(struct load *load)
{
    struct informer_options options = {
        .resource = KUBE_PODS,
        .name_space = load->name_space,
        .parse = parse,
        .item_free = free,
        .on_added = pod_added,
        .on_changed = pod_changed,
        .on_deleted = pod_deleted,
        .on_synced = synced,
        .context = load,
    };
    load->pods = informer_start(load->client, &options);
    while (!load->synced)
        event_loop_turn(load->loop, -1, NULL);
}

/* ---------------------------------------------------------------- memory of the watched process */

static void sample(void *context)
{
    struct load *load = context;
    long kb = process_status_kb(number(load->watched), "RssAnon:");
    if (kb > load->rss_anon_kb)
        load->rss_anon_kb = kb;
    event_timer_start(load->loop, SAMPLE_MS, sample, load);
}

/* ---------------------------------------------------------------- requests */

static void answered(void *context, const struct kube_answer *answer)
{
    struct request *request = context;
    struct load *load = request->load;
    load->open--;
    if (answer->error && load->failed++ == 0)
        fprintf(stderr, "operator-load: %s\n", answer->error->message);
    if (!answer->error && request->key && !informer_get(load->pods, request->key)) {
        int64_t *now = memory_allocate(1, sizeof *now);
        *now = clock_monotonic_ns();
        hash_map_set(&load->answered, request->key, now);
    } else if (!answer->error && request->key) {
        load->lags = memory_resize(load->lags, load->lag_count + 1, sizeof *load->lags);
        load->lags[load->lag_count++] = 0; /* the watch was quicker */
    }
    free(request->key);
    free(request);
}

static struct kube_call_options call_options(struct load *load, char *key)
{
    struct request *request = memory_allocate(1, sizeof *request);
    *request = (struct request){load, key};
    load->open++;
    return (struct kube_call_options){.timeout_ms = 1800000, .answered = answered, .context = request};
}

#define GROUP_LABEL "operator-load/group"

static void set_group(const struct load *load, struct json *object, bool is_pod, int number)
{
    SCOPED_FREE char *group = memory_format("%d", is_pod ? number / load->group : number);
    struct json *labels = is_pod ? json_set_object(json_member(object, "metadata"), "labels")
                                 : json_set_object(json_member(object, "spec"), "selector");
    json_set_string(labels, GROUP_LABEL, group);
}

static void create(struct load *load, const struct series *series, int number)
{
    bool is_pod = strcmp(series->resource.plural, "pods") == 0;
    SCOPED_FREE char *name = memory_format("%s-%d", series->name, number);
    json_set_string(json_member(series->object, "metadata"), "name", name);
    if (load->group > 0)
        set_group(load, series->object, is_pod, number);
    struct resource_path path = {.resource = series->resource, .name_space = load->name_space};
    struct kube_call_options options =
        call_options(load, is_pod ? memory_format("%s/%s", load->name_space, name) : NULL);
    kube_client_create(load->client, &path, series->object, &options);
}

static void create_all(struct load *load, const struct series *series)
{
    for (int i = 0; i < series->count; i++)
        create(load, series, i);
}

static void create_next(struct load *load)
{
    create(load, &load->series[0], --load->due);
}

static void create_late(void *context)
{
    struct load *load = context;
    create_all(load, &load->series[1]);
}

static void delete_all(struct load *load)
{
    const char *key;
    const void *item;
    for (size_t at = 0; informer_next(load->pods, &at, &key, &item);) {
        struct resource_path path = {KUBE_PODS, load->name_space, strchr(key, '/') + 1, NULL};
        struct kube_call_options options = call_options(load, NULL);
        kube_client_delete(load->client, &path, &(struct kube_delete_options){.grace_seconds = -1}, &options);
    }
}

/* ---------------------------------------------------------------- objects */

static int series_read(const char *path, const char *name, int count, struct series *ret_series, struct error *error)
{
    struct json *object;
    if (object_read(path, &object, error) < 0)
        return -1;
    const char *kind = json_string_at(object, "kind", "");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        object_anew(object);
        *ret_series = (struct series){object, kinds[i].resource, name, count};
        return 0;
    }
    error_set(error, ERROR_INVALID, "%s: kind %s is none that this program creates", path, kind);
    json_free(object);
    return -1;
}

/* ---------------------------------------------------------------- running */

static int start(struct load *load, struct error *error)
{
    SCOPED(kube_config_release) struct kube_config config = {0};
    const char *seconds = getenv("LOAD_SECONDS");
    load->deadline_ns = clock_monotonic_ns() + (seconds ? strtoll(seconds, NULL, 10) : 600) * 1000 * NS_PER_MS;
    load->watched = getenv("LOAD_WATCH");
    load->group = getenv("LOAD_GROUP") ? number(getenv("LOAD_GROUP")) : 0;
    hash_map_init(&load->answered);
    if (kube_config_load(NULL, NULL, &config, error) < 0 || event_loop_new(&load->loop, error) < 0 ||
        kube_client_new(load->loop, &config, &(struct kube_client_options){.user_agent = "operator-load"},
                        &load->client, error) < 0)
        return -1;
    if (load->watched)
        sample(load);
    watch_pods(load);
    return 0;
}

static bool goes_on(const struct load *load)
{
    bool done = load->open == 0 && load->due == 0 && load->running >= load->wanted;
    bool refused = load->open == 0 && load->failed > 0;
    return !done && !refused && clock_monotonic_ns() < load->deadline_ns;
}

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void print_figures(struct load *load)
{
    qsort(load->lags, load->lag_count, sizeof *load->lags, by_size);
    if (load->lag_count > 0)
        printf("lag_p50 %.1f\nlag_p99 %.1f\n", (double)load->lags[load->lag_count / 2] / NS_PER_MS,
               (double)load->lags[load->lag_count * 99 / 100] / NS_PER_MS);
    if (load->watched)
        printf("rss_anon_kb %ld\n", load->rss_anon_kb);
    printf("running %d\n", load->running);
}

static int finish(struct load *load)
{
    while (goes_on(load))
        event_loop_turn(load->loop, SAMPLE_MS, NULL);
    print_figures(load);
    bool done = load->running >= load->wanted && load->failed == 0 && load->open == 0;
    informer_free(load->pods);
    kube_client_free(load->client);
    event_loop_free(load->loop);
    hash_map_release(&load->answered, free);
    free(load->lags);
    for (int i = 0; i < load->series_count; i++)
        json_free(load->series[i].object);
    return done ? 0 : 1;
}

static int run_create(struct load *load, int count, char **arguments, struct error *error)
{
    load->wanted = number(arguments[1]);
    load->series_count = count > 5 ? 2 : 1;
    if (series_read(arguments[2], arguments[3], number(arguments[4]), &load->series[0], error) < 0)
        return -1;
    if (count > 5 && series_read(arguments[5], arguments[6], number(arguments[7]), &load->series[1], error) < 0)
        return -1;
    if (start(load, error) < 0)
        return -1;
    create_all(load, &load->series[0]);
    if (count > 5)
        event_timer_start(load->loop, number(arguments[8]), create_late, load);
    return finish(load);
}

/* `waits`: for the old ones. */
static int run_restart(struct load *load, char **arguments, bool waits, struct error *error)
{
    if (series_read(arguments[1], arguments[2], 0, &load->series[0], error) < 0)
        return -1;
    load->series_count = 1;
    SCOPED_FREE char *pattern = memory_format("%s-*", arguments[2]);
    load->pattern = pattern;
    if (start(load, error) < 0)
        return -1;
    load->series[0].count = load->wanted = (int)informer_count(load->pods);
    load->due = waits ? load->wanted : 0;
    delete_all(load);
    if (!waits)
        create_all(load, &load->series[0]);
    return finish(load);
}

static int run_await(struct load *load, char **arguments, struct error *error)
{
    load->wanted = number(arguments[1]);
    load->pattern = arguments[2];
    return start(load, error) < 0 ? -1 : finish(load);
}

static int run(int count, char **arguments, struct error *error)
{
    struct load load = {.pattern = "*", .name_space = count > 2 ? arguments[2] : NULL};
    const char *command = count > 2 ? arguments[1] : "";
    if (strcmp(command, "create") == 0 && (count == 7 || count == 11))
        return run_create(&load, count - 2, arguments + 2, error);
    bool waits = strcmp(command, "renew") == 0;
    if ((waits || strcmp(command, "restart") == 0) && count == 5)
        return run_restart(&load, arguments + 2, waits, error);
    if (strcmp(command, "await") == 0 && count == 5)
        return run_await(&load, arguments + 2, error);
    return error_set(error, ERROR_INVALID,
                     "create, restart, renew or await, with what they take; see tests/bench/operator/load.c");
}

int main(int count, char **arguments)
{
    struct error error = ERROR_INIT;
    int status = run(count, arguments, &error);
    if (status < 0)
        fprintf(stderr, "operator-load: %s\n", error.message);
    return status < 0 ? 2 : status;
}
