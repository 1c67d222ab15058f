/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the operator thinks about a job of 100 pods (of another framework: a crew
 * of ours has 64 at most), and whether 10,000 looks make it grow. Aim: a plan in under 1 ms, no growth.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/pod_record.h"
#include "operator/controller/plan/plan_job.h"

#define WORKERS 100
#define ROUNDS 10000
#define POD_ROUNDS 20

static const char manifest[] =
    "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"default\",\"uid\":\"0b8f7f5e-54d1-4a55-a0a5-7d3c6c0d3c11\","
    "\"generation\":1,\"resourceVersion\":\"1\"},\"spec\":{\"pytorch\":{},"
    "\"image\":\"registry.example/ddp:1\",\"workers\":{\"replicas\":100,"
    "\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"command\":[\"python\",\"train.py\"]}]}}}}}";

static struct pod_record *running_pod(const struct training_job *job, int64_t index)
{
    SCOPED_FREE char *text = memory_format(
        "{\"metadata\":{\"name\":\"digits-worker-%" PRId64 "-1\",\"uid\":\"uid-%" PRId64 "\",\"labels\":"
        "{\"coxswain.dev/job-name\":\"digits\",\"coxswain.dev/job-uid\":\"%s\",\"coxswain.dev/role\":\"worker\","
        "\"coxswain.dev/index\":\"%" PRId64 "\",\"coxswain.dev/incarnation\":\"1\",\"coxswain.dev/attempt\":\"1\","
        "\"coxswain.dev/current\":\"true\"}},\"spec\":{\"containers\":[{\"name\":\"trainer\"}]},\"status\":{\"phase\":"
        "\"Running\",\"podIP\":\"10.0.0.9\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
        index, index, job->uid, index);
    SCOPED_JSON *pod = NULL;
    if (json_parse(text, strlen(text), 1 << 20, &pod, NULL) < 0)
        abort();
    return pod_record_read(pod);
}

struct bench {
    struct training_job job;
    struct pod_record *pods[WORKERS];
    struct arena views;
    struct service_view service;
    struct plan_input input;
};

static void bench_init(struct bench *bench)
{
    SCOPED_JSON *object = NULL;
    struct error error = ERROR_INIT;
    if (json_parse(manifest, strlen(manifest), 1 << 20, &object, &error) < 0 ||
        training_job_parse(object, &bench->job, &error) < 0) {
        fprintf(stderr, "bench_plan: %s\n", error.message);
        exit(70);
    }
    bench->service = (struct service_view){.name = "digits", .job_uid = bench->job.uid, .owner_uid = bench->job.uid};
    bench->input = (struct plan_input){
        .job = &bench->job,
        .service = &bench->service,
        .memory.certificate = {.number = FIELD_UNSET},
        .memory.born_ms = FIELD_UNSET,
        .memory.counts_since_ms = FIELD_UNSET,
        .memory.pods_changed_ms = FIELD_UNSET,
        .memory.behind_since_ms = FIELD_UNSET,
        .queue = {.replaced_since_ms = FIELD_UNSET},
        .now_ms = clock_now_ms(),
        .options = &plan_options_default,
    };
    for (int64_t i = 0; i < WORKERS; i++)
        bench->pods[i] = running_pod(&bench->job, i);
    bench->input.pods = pod_record_views((const struct pod_record *const *)bench->pods, WORKERS, &bench->views);
}

static void bench_release(struct bench *bench)
{
    for (int64_t i = 0; i < WORKERS; i++)
        free(bench->pods[i]);
    arena_release(&bench->views);
    training_job_release(&bench->job);
}

/* Microseconds a plan; the number of actions and whether it writes make sure that the right thing is timed. */
static double time_plans(const struct bench *bench, size_t actions, bool writes)
{
    int64_t start_ns = clock_monotonic_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct plan plan = {0};
        plan_job(&bench->input, &plan);
        if (plan.action_count != actions || plan.write_status != writes) {
            fprintf(stderr, "bench_plan: a plan has %zu actions and %s status, not what is to be timed\n",
                    plan.action_count, plan.write_status ? "a" : "no");
            exit(70);
        }
        plan_release(&plan);
    }
    return (double)(clock_monotonic_ns() - start_ns) / 1e3 / ROUNDS;
}

static double time_pod_builds(const struct bench *bench)
{
    int64_t start_ns = clock_monotonic_ns();
    for (int round = 0; round < POD_ROUNDS; round++) {
        SCOPED(pod_builder_release) struct pod_builder builder = {0};
        if (pod_builder_init(&builder, &bench->job, &plan_options_default.pods, NULL) < 0)
            abort();
        for (int64_t i = 0; i < WORKERS; i++) {
            struct json *pod = NULL;
            if (pod_build(&builder, ROLE_WORKER, i, &pod, NULL) < 0)
                abort();
            json_free(pod);
        }
    }
    return (double)(clock_monotonic_ns() - start_ns) / 1e3 / POD_ROUNDS;
}

int main(void)
{
    struct bench bench = {0};
    bench_init(&bench);
    double start_us = time_plans(&bench, 0, true);
    struct job_status *status = &bench.job.status;
    status->attempt = status->incarnation = 1;
    status->start_ms = bench.input.now_ms;
    status->replicas[ROLE_WORKER].pending = "0-99";
    double create_us = time_plans(&bench, WORKERS, true);
    double build_us = time_pod_builds(&bench);
    status->replicas[ROLE_WORKER].pending = NULL;
    bench.input.pod_count = WORKERS;
    double watch_us = time_plans(&bench, 0, true);
    size_t before = mallinfo2().uordblks;
    time_plans(&bench, 0, true);
    size_t growth = mallinfo2().uordblks - before;
    printf("plan of %d pods: start %.1f us, create %.1f us, all running %.1f us (aim: below 1000 us)\n", WORKERS,
           start_us, create_us, watch_us);
    printf("bodies of %d pods: %.0f us\n", WORKERS, build_us);
    printf("growth over %d plans: %zu bytes (aim: 0)\n", ROUNDS, growth);
    bench_release(&bench);
    return growth == 0 ? 0 : 1;
}
