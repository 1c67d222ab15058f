/* SPDX-License-Identifier: Apache-2.0
 *
 * A crew sums its gradients while the backward pass goes on. Each worker's device is a real one behind a table of functions
 * that holds the last gradient of the pass, the first layer's, until as many bytes have left the process as the first bucket
 * has: where no sum begins before the pass has ended, that never comes.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/forking.h"
#include "tests/unit/loopback.h"
#include "tests/unit/worker/strategy/learner.h"
#include "worker/comm/traffic.h"
#include "worker/device/backend.h"
#include "worker/device/operations.h"
#include "worker/model/graph.h"

#define WORKERS 2
#define BATCH 8
#define STEPS 3
#define INPUTS 400 /* of the first layer alone */
#define PATIENCE_MS 60000

static const char job[] =
    "{\"name\":\"test\",\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"workers\":{\"replicas\":2},"
    "\"model\":{\"inputShape\":[400],\"layers\":[{\"type\":\"Dense\",\"units\":600},{\"type\":\"ReLU\"},"
    "{\"type\":\"Dense\",\"units\":600},{\"type\":\"ReLU\"},{\"type\":\"Dense\",\"units\":10}]},"
    "\"data\":{\"format\":\"Synthetic\",\"examples\":32},"
    "\"training\":{\"steps\":3,\"batchSize\":8,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":\"0.02\"}}}";

/* A worker's observations, for the test to read. */
struct sight {
    unsigned held;        /* last gradients of a pass */
    unsigned sums_before; /* of these, how many had a bucket's bytes before them */
    struct error error;
};

static struct {
    struct device_backend backend;
    const struct device_backend *cpu;
    bool patient; /* waits for the bytes; else it only looks */
    int64_t sent_before, bucket_bytes;
    struct sight *sight;
} watch;

static bool has_sent_bucket(void)
{
    return traffic_sent() - watch.sent_before >= watch.bucket_bytes;
}

/* On the stream's thread, in front of the last gradient. */
static void hold(void *context)
{
    (void)context;
    for (int waited = 0; watch.patient && !has_sent_bucket() && waited < PATIENCE_MS; waited++)
        usleep(1000);
    watch.sight->held++;
    watch.sight->sums_before += has_sent_bucket();
    watch.patient &= has_sent_bucket(); /* a test that fails does so once */
}

static void launch_watched(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    if (operation == OPERATION_dense_backward_weight && ((const struct dense_backward_weight *)arguments)->k == INPUTS)
        watch.cpu->stream_call(stream, hold, NULL);
    watch.cpu->launch(stream, operation, arguments);
}

static int stream_new_watched(struct device *device, struct device_stream **ret_stream, struct error *error)
{
    if (watch.cpu->stream_new(device, ret_stream, error) < 0)
        return -1;
    (*ret_stream)->backend = &watch.backend;
    return 0;
}

static void watch_device(struct device *device)
{
    watch.cpu = device->backend;
    watch.backend = *watch.cpu;
    watch.backend.launch = launch_watched;
    watch.backend.stream_new = stream_new_watched;
    device->backend = &watch.backend;
}

static int fresh_state(void *context, struct error *error)
{
    (void)context, (void)error;
    return 0;
}

static int open_worker(struct learner *learner, const struct crew_seat *seats, unsigned rank, bool apart,
                       struct error *error)
{
    const struct member_options member = {
        .attempt = 1, .incarnation = 1, .rank = rank, .size = WORKERS, .seats = seats, .logical_shards = WORKERS};
    if (learner_open_job(learner, job, error) < 0 ||
        learner_open_model(learner, 1, BATCH / WORKERS, false, error) < 0 || learner_open_state(learner, error) < 0 ||
        learner_open_member(learner, member, error) < 0)
        return -1;
    watch_device(learner->devices[0].device);
    struct strategy_options options = learner_options(learner, STRATEGY_MULTI_WORKER_MIRRORED);
    options.global_batch = BATCH;
    options.logical_shards = WORKERS;
    options.sums.wait_for_pass = apart;
    options.calls.restore = fresh_state;
    return strategy_open(&options, &learner->strategy, error) < 0 ? -1 : strategy_reform(learner->strategy, error);
}

static int train(struct learner *learner, struct error *error)
{
    struct strategy_result result;
    watch.bucket_bytes = graph_bucket(learner->graph, 0).elements * (int64_t)sizeof(float);
    if (graph_bucket_count(learner->graph) < 2)
        return error_set(error, ERROR_INTERNAL, "the model has one bucket");
    for (int step = 0; step < STEPS; step++) {
        watch.sent_before = traffic_sent();
        if (strategy_step(learner->strategy, 0.02, 0, &result, error) < 0)
            return -1;
    }
    return 0;
}

static _Noreturn void worker_main(const struct crew_seat *seats, unsigned rank, bool apart, struct sight *sight)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static struct learner learner;
    watch.patient = !apart;
    watch.sight = sight;
    if (open_worker(&learner, seats, rank, apart, &sight->error) == 0 && train(&learner, &sight->error) == 0)
        member_leave(learner.member);
    _exit(0);
}

static struct sight *run_crew(bool apart)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    static unsigned used;
    static char hosts[WORKERS][LOOPBACK_HOST_MAX];
    struct crew_seat seats[WORKERS];
    pid_t children[WORKERS];
    struct sight *sights =
        mmap(NULL, WORKERS * sizeof(*sights), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned rank = 0; rank < WORKERS; rank++) {
        loopback_host(hosts[rank], used++);
        seats[rank] = (struct crew_seat){"worker", rank, hosts[rank], 2222};
    }
    for (unsigned rank = 0; rank < WORKERS; rank++)
        if ((children[rank] = fork()) == 0)
            worker_main(seats, rank, apart, &sights[rank]);
    for (unsigned rank = 0; rank < WORKERS; rank++) {
        waitpid(children[rank], NULL, 0);
        cr_assert_str_empty(sights[rank].error.message);
        cr_assert_eq(sights[rank].held, STEPS);
    }
    return sights;
}

Test(overlap, a_bucket_is_summed_before_the_backward_pass_has_ended, .timeout = 240)
{
    const struct sight *sights = run_crew(false);
    for (unsigned rank = 0; rank < WORKERS; rank++)
        cr_expect_eq(sights[rank].sums_before, STEPS, "rank %u: in %u steps of %d", rank, sights[rank].sums_before,
                     STEPS);
}

/* tests/bench compares with this. */
Test(overlap, switched_off_no_sum_begins_before_the_pass_has_ended, .timeout = 240)
{
    const struct sight *sights = run_crew(true);
    for (unsigned rank = 0; rank < WORKERS; rank++)
        cr_expect_eq(sights[rank].sums_before, 0, "rank %u: in %u steps", rank, sights[rank].sums_before);
}
