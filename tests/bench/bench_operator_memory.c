/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator keeps in memory: coxswain-operator itself, before an API server that is played. It is
 * shown jobs with section pytorch, as `make bench-operator` creates them; its requests are granted, and its pods get
 * nodes and run, a thousand pods after their creation each, as they do where a scheduler has much to do. Twice: jobs of
 * one pod, and of ten; the difference is what pods take. Aim: below 80 MB with 10,000 jobs of ten pods.
 *
 * $BUILD says where the operator is. COXSWAIN_BENCH_JOBS: how many jobs (10000).
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/event_loop.h"
#include "common/http_server.h"
#include "common/json.h"
#include "common/memory.h"
#include "tests/bench/process_status.h"

#define BODY_MAX (1 << 20)
#define PENDING_MAX ((size_t)1 << 30)
#define SAMPLE_MS 50
#define BOOKMARK_MS 5000
#define QUIET_MS 12000 /* holes of its heap go back every ten seconds (heap_trim.h) */
#define STUCK_MS 120000
#define NS_PER_MS 1000000

/* Number of later pods after whose creation a pod gets its node, and after which it runs. */
#define BEHIND 1000
#define WAITING (2 * BEHIND + 1)

enum kind { JOBS, PODS, SERVICES, KINDS };
static const char *const collections[KINDS] = {"trainingjobs", "pods", "services"};

struct plane {
    struct event_loop *loop;
    struct http_server *server;
    struct http_stream *streams[KINDS];
    uint64_t version;
    struct json **jobs;
    int *running; /* pods of each job */
    int job_count, pods_each;
    struct json *waiting[WAITING]; /* pods that do not run yet, by their number */
    int made, placed, started;
    pid_t process; /* the operator */
    bool ends;
    int64_t asked_ns; /* when the operator last wrote something */
    long rss_kb, most_kb;
    struct event_timer *sample, *bookmark;
};

static _Noreturn void die(const char *words)
{
    fprintf(stderr, "bench_operator_memory: %s\n", words);
    exit(1);
}

static struct json *parse(const char *text, size_t length)
{
    struct json *value = NULL;
    if (json_parse(text, length, BODY_MAX, &value, NULL) < 0)
        die("the operator sends what is not JSON");
    return value;
}

/* ---------------------------------------------------------------- watches */

static void set_version(struct plane *plane, struct json *object)
{
    SCOPED_FREE char *version = memory_format("%" PRIu64, ++plane->version);
    json_set_string(json_set_object(object, "metadata"), "resourceVersion", version);
}

static void show(struct plane *plane, enum kind kind, const char *type, const struct json *object)
{
    SCOPED_BUFFER line = BUFFER_INIT(BODY_MAX);
    buffer_format(&line, "{\"type\":\"%s\",\"object\":", type);
    if (json_print(object, &line, NULL) < 0 || buffer_append_string(&line, "}\n", NULL) < 0)
        die("an object is too large");
    if (plane->streams[kind])
        http_stream_write(plane->streams[kind], line.data, line.length);
}

static void show_next(struct plane *plane, enum kind kind, const char *type, struct json *object)
{
    set_version(plane, object);
    show(plane, kind, type, object);
}

static void mark(struct plane *plane, enum kind kind, const char *annotations)
{
    SCOPED_FREE char *text = memory_format("{\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\",\"annotations\":{%s}}}",
                                           plane->version, annotations);
    SCOPED_JSON *object = parse(text, strlen(text));
    show(plane, kind, "BOOKMARK", object);
}

static void mark_all(void *context)
{
    struct plane *plane = context;
    for (int kind = 0; kind < KINDS; kind++)
        mark(plane, (enum kind)kind, "");
    plane->bookmark = event_timer_start(plane->loop, BOOKMARK_MS, mark_all, plane);
}

static void watch_ended(void *context)
{
    const struct plane *plane = context;
    if (!plane->ends)
        die("the operator has let go of a watch");
}

static void watch(struct plane *plane, enum kind kind, struct http_exchange *exchange)
{
    plane->streams[kind] = http_exchange_stream(exchange, 200, "application/json", PENDING_MAX, watch_ended, plane);
    mark(plane, kind, "\"k8s.io/initial-events-end\":\"true\"");
}

/* ---------------------------------------------------------------- jobs and pods */

static char *uid_of(uint64_t number)
{
    uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15;
    return memory_format("%08x-%04x-4%03x-a%03x-%012" PRIx64, (unsigned)(mixed >> 32), (unsigned)(mixed >> 16 & 0xffff),
                         (unsigned)(mixed >> 4 & 0xfff), (unsigned)(mixed & 0xfff), mixed & 0xffffffffffff);
}

/* Sets the fields that every new object has. */
static void bring_into_being(struct plane *plane, struct json *object, const char *name_space)
{
    char now[CLOCK_TEXT_MAX];
    SCOPED_FREE char *uid = uid_of(plane->version);
    struct json *metadata = json_set_object(object, "metadata");
    clock_format_seconds(clock_now_ms(), now);
    json_set_string(metadata, "uid", uid);
    json_set_string(metadata, "creationTimestamp", now);
    json_set_string(metadata, "namespace", name_space);
    json_set_integer(metadata, "generation", 1);
    set_version(plane, object);
}

static void create_jobs(struct plane *plane)
{
    static const char manifest[] =
        "{\"apiVersion\":\"" API_GROUP_VERSION
        "\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"some-%d\"},\"spec\":{"
        "\"suspend\":false,\"image\":\"pytorch\",\"pytorch\":{},"
        "\"runPolicy\":{\"restartScope\":\"Auto\",\"backoffLimit\":3},"
        "\"workers\":{\"replicas\":%d,\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\","
        "\"command\":[\"train\"]}]}}}}}";
    for (int i = 0; i < plane->job_count; i++) {
        SCOPED_FREE char *text = memory_format(manifest, i, plane->pods_each);
        plane->jobs[i] = parse(text, strlen(text));
        bring_into_being(plane, plane->jobs[i], "default");
        show(plane, JOBS, "ADDED", plane->jobs[i]);
    }
}

/* Returns the number of the job whose name begins a pod's ("some-17-worker-3-1"). */
static int job_of(const struct plane *plane, const char *name)
{
    const char *number = strchr(name, '-');
    long job = number ? strtol(number + 1, NULL, 10) : -1;
    if (job < 0 || job >= plane->job_count)
        die("the operator writes what belongs to no job");
    return (int)job;
}

static void add_condition(struct json *pod, const char *type)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_seconds(clock_now_ms(), now);
    struct json *list = json_set_array(json_set_object(pod, "status"), "conditions");
    struct json *condition = json_append(list, json_new_object());
    json_set_string(condition, "type", type);
    json_set_string(condition, "status", "True");
    json_set_string(condition, "lastTransitionTime", now);
}

static void place(struct plane *plane, int number)
{
    struct json *pod = plane->waiting[number % WAITING];
    SCOPED_FREE char *node = memory_format("node-%d", number % 1000);
    json_set_string(json_set_object(pod, "spec"), "nodeName", node);
    add_condition(pod, "PodScheduled");
    show_next(plane, PODS, "MODIFIED", pod);
}

/* A job of another framework reports no progress; these are the figures of a job of our own. */
static void tell_progress(struct plane *plane, int job)
{
    static const char progress[] =
        "{\"status\":{\"progress\":{\"step\":1200,\"totalSteps\":3000,\"percent\":40,\"epoch\":2,\"metrics\":["
        "{\"name\":\"loss\",\"value\":\"0.03125\"},{\"name\":\"validationLoss\",\"value\":\"0.0412\"},"
        "{\"name\":\"validationAccuracy\",\"value\":\"0.9841\"}],\"examplesPerSecond\":\"51234.5\","
        "\"secondsRemaining\":35,\"lastCheckpointStep\":1000,\"goodput\":\"0.987\",\"updatedAt\":\"2026-11-20T14:00:"
        "00Z\"}}}";
    SCOPED_JSON *patch = parse(progress, strlen(progress));
    json_merge_patch(&plane->jobs[job], patch);
    show_next(plane, JOBS, "MODIFIED", plane->jobs[job]);
}

static void start(struct plane *plane, int number)
{
    SCOPED_JSON *pod = plane->waiting[number % WAITING];
    char now[CLOCK_TEXT_MAX];
    clock_format_seconds(clock_now_ms(), now);
    SCOPED_FREE char *text =
        memory_format("{\"phase\":\"Running\",\"podIP\":\"10.%d.%d.%d\",\"hostIP\":\"172.16.0.1\",\"startTime\":\"%s\","
                      "\"containerStatuses\":[{\"name\":\"trainer\",\"ready\":true,\"started\":true,\"restartCount\":0,"
                      "\"image\":\"pytorch\",\"imageID\":\"\",\"state\":{\"running\":{\"startedAt\":\"%s\"}}}]}",
                      number >> 16 & 255, number >> 8 & 255, number & 255, now, now);
    SCOPED_JSON *status = parse(text, strlen(text));
    json_set(status, "conditions", json_copy(json_at(pod, "status.conditions")));
    json_set(pod, "status", json_copy(status));
    add_condition(pod, "Initialized");
    add_condition(pod, "ContainersReady");
    add_condition(pod, "Ready");
    show_next(plane, PODS, "MODIFIED", pod);
    int job = job_of(plane, json_string_at(pod, "metadata.name", ""));
    if (++plane->running[job] == plane->pods_each)
        tell_progress(plane, job);
}

/* The last ones wait for nobody. */
static void move_pods(struct plane *plane)
{
    int behind = plane->made < plane->job_count * plane->pods_each ? BEHIND : 0;
    while (plane->placed + behind < plane->made)
        place(plane, plane->placed++);
    while (plane->started + behind < plane->placed)
        start(plane, plane->started++);
}

static void take_pod(struct plane *plane, struct json *pod)
{
    struct json *status = json_set_object(pod, "status");
    json_set_string(status, "phase", "Pending");
    json_set_string(status, "qosClass", "BestEffort");
    show(plane, PODS, "ADDED", pod);
    plane->waiting[plane->made++ % WAITING] = pod;
    move_pods(plane);
}

/* ---------------------------------------------------------------- requests */

static void respond(struct http_exchange *exchange, int status, const struct json *object)
{
    SCOPED_BUFFER text = BUFFER_INIT(BODY_MAX);
    if (json_print(object, &text, NULL) < 0)
        die("an answer is too large");
    http_exchange_respond(exchange, status, "application/json", text.data, text.length);
}

static void respond_absent(struct http_exchange *exchange)
{
    static const char text[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"NotFound\","
        "\"message\":\"it is not there\",\"code\":404}";
    http_exchange_respond(exchange, 404, "application/json", text, strlen(text));
}

/* The operator asks only for the metadata of most objects. */
static void respond_metadata(struct http_exchange *exchange, int status, const struct json *object)
{
    SCOPED_JSON *part = json_new_object();
    json_set(part, "metadata", json_copy(json_member(object, "metadata")));
    respond(exchange, status, part);
}

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), end_length = strlen(end);
    return length >= end_length && strcmp(path + length - end_length, end) == 0;
}

static void answer_get(struct plane *plane, struct http_exchange *exchange, const char *path)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (ends_in(path, collections[kind]) && http_exchange_query(exchange, "sendInitialEvents")) {
            watch(plane, (enum kind)kind, exchange);
            return;
        }
    }
    respond_absent(exchange);
}

static void answer_create(struct plane *plane, struct http_exchange *exchange, const char *path, struct json *object)
{
    bring_into_being(plane, object, "default");
    if (ends_in(path, "/leases"))
        respond(exchange, 201, object);
    else
        respond_metadata(exchange, 201, object);
    if (ends_in(path, "/pods")) {
        take_pod(plane, object);
        return;
    }
    if (ends_in(path, "/services"))
        show(plane, SERVICES, "ADDED", object);
    json_free(object);
}

static void answer_status(struct plane *plane, struct http_exchange *exchange, const char *path,
                          const struct json *patch)
{
    const char *name = strstr(path, "/trainingjobs/") + strlen("/trainingjobs/");
    struct json **job = &plane->jobs[job_of(plane, name)];
    json_merge_patch(job, patch);
    set_version(plane, *job);
    respond_metadata(exchange, 200, *job);
    show(plane, JOBS, "MODIFIED", *job);
}

static void answer(void *context, struct http_exchange *exchange)
{
    struct plane *plane = context;
    const char *method = http_exchange_method(exchange), *path = http_exchange_path(exchange);
    if (strcmp(method, "GET") == 0) {
        answer_get(plane, exchange, path);
        return;
    }
    size_t length;
    const char *body = http_exchange_body(exchange, &length);
    struct json *object = parse(body, length);
    if (!strstr(path, "/leases"))
        plane->asked_ns = clock_monotonic_ns();
    if (strcmp(method, "POST") == 0) {
        answer_create(plane, exchange, path, object);
        return;
    }
    set_version(plane, object);
    if (strstr(path, "/trainingjobs/"))
        answer_status(plane, exchange, path, object);
    else
        respond(exchange, 200, object);
    json_free(object);
}

/* ---------------------------------------------------------------- the operator */

static void sample(void *context)
{
    struct plane *plane = context;
    plane->rss_kb = process_status_kb(plane->process, "RssAnon:");
    if (plane->rss_kb < 0)
        die("the operator has ended");
    if (plane->rss_kb > plane->most_kb)
        plane->most_kb = plane->rss_kb;
    plane->sample = event_timer_start(plane->loop, SAMPLE_MS, sample, plane);
}

static void operator_start(struct plane *plane)
{
    const char *build = getenv("BUILD");
    SCOPED_FREE char *program = memory_format("%s/coxswain-operator", build ? build : "build");
    char path[] = "/tmp/coxswain-bench-XXXXXX";
    int file = mkstemp(path);
    FILE *config = file >= 0 ? fdopen(file, "w") : NULL;
    if (!config)
        die("there is no room for a kubeconfig");
    fprintf(config,
            "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"b\",\"contexts\":[{\"name\":\"b\","
            "\"context\":{\"cluster\":\"b\",\"user\":\"b\"}}],\"users\":[{\"name\":\"b\",\"user\":{}}],"
            "\"clusters\":[{\"name\":\"b\",\"cluster\":{\"server\":\"http://127.0.0.1:%u\"}}]}\n",
            http_server_port(plane->server));
    fclose(config);
    plane->process = fork();
    if (plane->process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program, program, "--kubeconfig", path, "--leader-elect", "--log-level", "warning", (char *)NULL);
        _exit(127);
    }
    while (!plane->streams[JOBS] || !plane->streams[PODS] || !plane->streams[SERVICES])
        if (event_loop_turn(plane->loop, SAMPLE_MS, NULL) < 0 || waitpid(plane->process, NULL, WNOHANG) != 0)
            die("coxswain-operator does not start; is BUILD right?");
    unlink(path);
}

static void turn_for(struct plane *plane, int64_t ms)
{
    for (int64_t end_ns = clock_monotonic_ns() + ms * NS_PER_MS; clock_monotonic_ns() < end_ns;)
        event_loop_turn(plane->loop, SAMPLE_MS, NULL);
}

/* Until the operator writes nothing more. */
static void await_rest(struct plane *plane)
{
    int all = plane->job_count * plane->pods_each;
    plane->asked_ns = clock_monotonic_ns();
    for (;;) {
        event_loop_turn(plane->loop, SAMPLE_MS, NULL);
        int64_t still_ms = (clock_monotonic_ns() - plane->asked_ns) / NS_PER_MS;
        if (plane->started == all && still_ms > QUIET_MS)
            return;
        if (still_ms > STUCK_MS)
            die("the operator does not create its pods");
    }
}

/* ---------------------------------------------------------------- a run */

struct figures {
    long empty_kb, most_kb, rest_kb;
    double seconds; /* until all pods ran */
};

static void plane_open(struct plane *plane)
{
    struct error error = ERROR_INIT;
    struct http_server_options options = {.address = "127.0.0.1", .handler = answer, .context = plane};
    if (event_loop_new(&plane->loop, &error) < 0 ||
        http_server_start_on_loop(&options, plane->loop, &plane->server, &error) < 0)
        die(error.message);
    plane->jobs = memory_allocate((size_t)plane->job_count, sizeof *plane->jobs);
    plane->running = memory_allocate((size_t)plane->job_count, sizeof *plane->running);
}

/* Returns the processor time that the operator has taken, in seconds. */
static double plane_close(struct plane *plane)
{
    struct rusage usage = {0};
    plane->ends = true;
    event_timer_cancel(plane->sample);
    event_timer_cancel(plane->bookmark);
    kill(plane->process, SIGKILL);
    while (wait4(plane->process, NULL, 0, &usage) < 0 && errno == EINTR)
        continue;
    http_server_free(plane->server);
    event_loop_free(plane->loop);
    for (int i = 0; i < plane->job_count; i++)
        json_free(plane->jobs[i]);
    free(plane->jobs);
    free(plane->running);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static struct figures measure(int jobs, int pods_each)
{
    struct plane plane = {.version = 1000, .job_count = jobs, .pods_each = pods_each};
    struct figures figures = {0};
    plane_open(&plane);
    operator_start(&plane);
    mark_all(&plane);
    sample(&plane);
    turn_for(&plane, QUIET_MS);
    figures.empty_kb = plane.rss_kb;
    int64_t began_ns = clock_monotonic_ns();
    create_jobs(&plane);
    await_rest(&plane);
    figures.seconds = (double)(plane.asked_ns - began_ns) / 1e9;
    figures.rest_kb = plane.rss_kb;
    figures.most_kb = plane.most_kb;
    double processor_seconds = plane_close(&plane);
    printf("%d jobs of %d pods: RssAnon %.1f MB at rest, %.1f MB at most; %.1f MB before them; done in %.0f s, of "
           "which the operator worked %.1f\n",
           jobs, pods_each, (double)figures.rest_kb / 1024, (double)figures.most_kb / 1024,
           (double)figures.empty_kb / 1024, figures.seconds, processor_seconds);
    return figures;
}

#define PODS_EACH 10

int main(void)
{
    const char *count = getenv("COXSWAIN_BENCH_JOBS");
    int jobs = count ? (int)strtol(count, NULL, 10) : 10000;
    if (jobs < 1 || jobs > 100000)
        die("COXSWAIN_BENCH_JOBS: from 1 to 100000");
    struct figures lone = measure(jobs, 1), crews = measure(jobs, PODS_EACH);
    double pod = (double)(crews.rest_kb - lone.rest_kb) * 1024 / jobs / (PODS_EACH - 1);
    double job = (double)(lone.rest_kb - lone.empty_kb) * 1024 / jobs - pod;
    printf("a pod takes %.0f bytes, a job %.0f besides (aim: below 80 MB at most, of 10,000 jobs of 10)\n", pod, job);
    return 0;
}
