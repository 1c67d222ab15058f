/* SPDX-License-Identifier: Apache-2.0
 *
 * All-reduce between processes of this machine, over shared memory and TCP, from
 * 4 KB to 100 MB, beside a raw stream over loopback, and beside what send and recv
 * take for as many bytes with nothing else between. Bus bandwidth is as NCCL
 * defines it: 2 (n - 1) / n times bytes / time.
 *
 *     bench_allreduce                          2 and 4 processes
 *     bench_allreduce --pair                   2 processes, without the raw stream
 *     bench_allreduce --algorithms [TCP]       beside each other, for 2, 4 and 8 processes
 *     bench_allreduce --crew SIZE A.B.C [RANK [ROUNDS [LONGEST]]]
 *                                              what tests/cost fits a cost model to and holds it against: over TCP, rank r at
 *                                              A.B.C.(r + 1); all of them, or the one that is given. Times are those of
 *                                              all-reduces one straight after the other, as in training.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/device/device.h"
#include "worker/strategy/reduction_tree.h"

#define RANKS_MAX 32
#define FORKED_MAX 8
#define CREW_PORT 2223
#define STREAM_BYTES ((size_t)1 << 30)

#define BARE_BYTES_MAX ((size_t)1 << 20) /* above that the calls are no matter */
static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 100 << 20};

/* Those worth a comparison on vectors that are not long. */
static const struct {
    enum collective_algorithm algorithm;
    const char *name;
} algorithms[] = {
    {COLLECTIVE_ALGORITHM_AUTO, "auto"},         {COLLECTIVE_ALGORITHM_DIRECT, "direct"},
    {COLLECTIVE_ALGORITHM_DOUBLING, "doubling"}, {COLLECTIVE_ALGORITHM_HALVING, "halving"},
    {COLLECTIVE_ALGORITHM_OWNED, "owned"},       {COLLECTIVE_ALGORITHM_RING, "ring"},
    {COLLECTIVE_ALGORITHM_REDUCE_TO_ONE, "one"},
};
static const size_t algorithm_sizes[] = {256, 4 << 10, 16 << 10, 64 << 10, 256 << 10};

/* For crews: an algorithm with vectors so long that every peer's comes whole would keep a slow network busy for minutes. */
static const size_t crew_sizes[] = {4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
#define CREW_WHOLE_BYTES ((size_t)256 << 10)

static size_t longest = SIZE_MAX;

static void fail(const struct error *error)
{
    fprintf(stderr, "bench: %s\n", error->message);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* The worker's gradients are in such memory. */
static struct device *device;

static float *allocate_vector(size_t bytes)
{
    struct error error = ERROR_INIT;
    void *vector;
    if ((device == NULL && device_open(&(struct device_options){.threads = 1}, &device, &error) < 0) ||
        device_allocate(device, MEMORY_SHARED, bytes, &vector, &error) < 0)
        fail(&error);
    return vector;
}

static void free_vector(float *vector)
{
    device_free(device, vector);
}

static double stream_rate; /* bytes a ns each way of the raw stream; 0: not measured */

static void print_times(const char *what, double n, size_t bytes, double median_ns, double best_ns)
{
    double rate = 2 * (n - 1) / n * (double)bytes / median_ns;
    printf("%-14s %3.0f processes %10zu bytes %12.1f us (best %10.1f) %8.2f bus GB/s", what, n, bytes, median_ns / 1e3,
           best_ns / 1e3, rate);
    if (n == 2 && stream_rate > 0 && strcmp(what, "TCP") == 0)
        printf(", %.0f %% of the raw stream", 100 * rate / stream_rate);
    printf("\n");
    fflush(stdout);
}

static void measure(struct collective *group, const struct collective_options *options, size_t bytes, const char *what)
{
    struct error error = ERROR_INIT;
    size_t elements = bytes / sizeof(float);
    int rounds = bytes <= 64 << 10 ? 1000 : bytes <= 1 << 20 ? 200 : bytes <= 16 << 20 ? 20 : 6;
    float *vector = allocate_vector(bytes);
    int64_t *times = calloc((size_t)rounds, sizeof(*times));
    for (int i = -rounds / 10 - 1; i < rounds; i++) {
        if (collective_barrier(group, &error) < 0)
            fail(&error);
        int64_t start = clock_monotonic_ns();
        if (collective_all_reduce(group, (const float *const[]){vector}, vector, elements, &error) < 0)
            fail(&error);
        if (i >= 0)
            times[i] = clock_monotonic_ns() - start;
    }
    qsort(times, (size_t)rounds, sizeof(*times), compare);
    int64_t middle = times[rounds / 2];
    if (options->rank == 0)
        print_times(what, options->size, bytes, (double)middle, (double)times[0]);
    free(times);
    free_vector(vector);
}

struct sweep {
    const char *name;
    const size_t *sizes;
    size_t count;
};

static void run_rank(struct collective_options *options, struct endpoint *endpoint, unsigned rank,
                     const struct sweep *sweep)
{
    struct error error = ERROR_INIT;
    struct collective *group;
    options->rank = rank;
    options->endpoint = endpoint;
    if (collective_new(options, &group, &error) < 0 || collective_connect(group, 10000, &error) < 0)
        fail(&error);
    for (size_t i = 0; i < sweep->count; i++)
        measure(group, options, sweep->sizes[i], sweep->name);
    collective_free(group);
    exit(0);
}

static void run(unsigned size, enum collective_transport transport, enum collective_algorithm algorithm,
                const struct sweep *sweep)
{
    struct error error = ERROR_INIT;
    struct endpoint *endpoints[RANKS_MAX];
    struct collective_peer peers[RANKS_MAX];
    struct reduction_plan *plan;
    if (reduction_plan_new(size, size, &plan, &error) < 0)
        fail(&error);
    struct collective_options options = {
        .job_uid = "bench",
        .generation = {1, 1, 1},
        .size = size,
        .peers = peers,
        .transport = transport,
        .algorithm = algorithm,
        .reduction = {.combine = reduction_plan_combine, .context = plan, .merges = reduction_plan_merges(plan)}};
    for (unsigned i = 0; i < size; i++) {
        options.reduction.contributions[i] = 1;
        if (endpoint_open("127.0.0.1", 0, &endpoints[i], &error) < 0)
            fail(&error);
        snprintf(peers[i].address, sizeof(peers[i].address), "127.0.0.1");
        peers[i].port = endpoint_port(endpoints[i]);
    }
    fflush(stdout);
    for (unsigned i = 0; i < size; i++)
        if (fork() == 0)
            run_rank(&options, endpoints[i], i, sweep);
    for (unsigned i = 0; i < size; i++) {
        wait(NULL);
        endpoint_free(endpoints[i]);
    }
    reduction_plan_free(plan);
}

/* Bytes both ways at once between two processes, as an all-reduce of two ranks sends them. */
static void stream_both_ways(int socket)
{
    char *buffer = malloc(1 << 20);
    if (buffer == NULL)
        exit(1);
    memset(buffer, 1, 1 << 20);
    if (fork() == 0) {
        for (size_t sent = 0; sent < STREAM_BYTES; sent += 1 << 20)
            if (send(socket, buffer, 1 << 20, MSG_NOSIGNAL) < 0)
                exit(1);
        exit(0);
    }
    for (size_t got = 0; got < STREAM_BYTES;) {
        ssize_t n = recv(socket, buffer, 1 << 20, 0);
        if (n <= 0)
            exit(1);
        got += (size_t)n;
    }
    wait(NULL);
    free(buffer);
}

/* Nothing but the calls that move bytes: what a spinning pair of processes cannot go below. */
static void exchange(int socket, const char *from, char *to, size_t bytes)
{
    for (size_t sent = 0, got = 0; sent < bytes || got < bytes;) {
        ssize_t n = sent < bytes ? send(socket, from + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        sent += n > 0 ? (size_t)n : 0;
        n = got < bytes ? recv(socket, to + got, bytes - got, MSG_DONTWAIT) : 0;
        got += n > 0 ? (size_t)n : 0;
    }
}

static void measure_exchanges(int socket, bool tells)
{
    enum { ROUNDS = 1000, WARM = 100 };
    static int64_t times[ROUNDS];
    char *from = calloc(1, BARE_BYTES_MAX), *to = calloc(1, BARE_BYTES_MAX);
    int on = 1;
    if (from == NULL || to == NULL || setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        exit(1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && sizes[i] <= BARE_BYTES_MAX; i++) {
        for (int round = -WARM; round < ROUNDS; round++) {
            exchange(socket, from, to, 1); /* the barrier */
            int64_t start = clock_monotonic_ns();
            exchange(socket, from, to, sizes[i]);
            if (round >= 0)
                times[round] = clock_monotonic_ns() - start;
        }
        qsort(times, ROUNDS, sizeof(*times), compare);
        const int64_t *middle = &times[ROUNDS / 2];
        if (tells)
            print_times("bare exchange", 2, sizes[i], (double)*middle, (double)times[0]);
    }
    free(from);
    free(to);
}

static void take_side(int socket, bool tells)
{
    int64_t start = clock_monotonic_ns();
    stream_both_ways(socket);
    stream_rate = (double)STREAM_BYTES / (double)(clock_monotonic_ns() - start);
    if (tells)
        printf("raw TCP stream, both ways at once: %.2f GB/s each way\n", stream_rate);
    fflush(stdout);
    measure_exchanges(socket, tells);
}

static void run_raw_stream(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        exit(1);
    fflush(stdout);
    if (fork() == 0) {
        int dialled = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(dialled, (struct sockaddr *)&address, sizeof(address)) == 0)
            take_side(dialled, false);
        exit(0);
    }
    int accepted = accept(listener, NULL, NULL);
    take_side(accepted, true);
    wait(NULL);
    close(accepted);
    close(listener);
}

static void run_algorithms(enum collective_transport transport, const char *name)
{
    for (unsigned size = 2; size <= FORKED_MAX; size *= 2) {
        for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
            char text[32];
            snprintf(text, sizeof(text), "%s %s", name, algorithms[i].name);
            run(size, transport, algorithms[i].algorithm,
                &(struct sweep){text, algorithm_sizes, sizeof(algorithm_sizes) / sizeof(*algorithm_sizes)});
        }
    }
}

/* Chains of all-reduces: each ends where the next begins, so no rank's view of the start counts. */
static void measure_chains(struct collective *group, const struct collective_options *options, size_t bytes, int rounds,
                           const char *what)
{
    enum { CHAINS = 7, WARM_UP = 1 };
    struct error error = ERROR_INIT;
    float *vector = allocate_vector(bytes);
    int64_t times[CHAINS];
    for (int chain = 0; chain < CHAINS; chain++) {
        int64_t start = 0;
        for (int i = -WARM_UP; i < rounds; i++) {
            if (i == 0)
                start = clock_monotonic_ns();
            if (collective_all_reduce(group, (const float *const[]){vector}, vector, bytes / sizeof(float), &error) < 0)
                fail(&error);
        }
        times[chain] = (clock_monotonic_ns() - start) / rounds;
    }
    qsort(times, CHAINS, sizeof(*times), compare);
    int64_t middle = times[CHAINS / 2];
    if (options->rank == 0)
        print_times(what, options->size, bytes, (double)middle, (double)times[0]);
    free_vector(vector);
}

static bool sends_whole(enum collective_algorithm algorithm)
{
    return algorithm == COLLECTIVE_ALGORITHM_DIRECT || algorithm == COLLECTIVE_ALGORITHM_REDUCE_TO_ONE;
}

static void run_crew_algorithm(struct collective_options *options, int rounds, const char *name)
{
    struct error error = ERROR_INIT;
    struct collective *group;
    if (collective_new(options, &group, &error) < 0 || collective_connect(group, 60000, &error) < 0)
        fail(&error);
    for (size_t i = 0; i < sizeof(crew_sizes) / sizeof(*crew_sizes) && crew_sizes[i] <= longest; i++)
        if (!sends_whole(options->algorithm) || crew_sizes[i] <= CREW_WHOLE_BYTES)
            measure_chains(group, options, crew_sizes[i], rounds, name);
    if (collective_barrier(group, &error) < 0)
        fail(&error);
    collective_free(group);
}

/* One rank through all algorithms; each is a generation of its own, so that nobody takes one for the other. */
static void run_crew_rank(const char *network, unsigned size, unsigned rank, int rounds)
{
    struct error error = ERROR_INIT;
    struct collective_peer peers[RANKS_MAX];
    struct reduction_plan *plan;
    struct endpoint *endpoint;
    for (unsigned i = 0; i < size; i++) {
        snprintf(peers[i].address, sizeof(peers[i].address), "%s.%u", network, i + 1);
        peers[i].port = CREW_PORT;
    }
    if (reduction_plan_new(size, size, &plan, &error) < 0 ||
        endpoint_open(peers[rank].address, CREW_PORT, &endpoint, &error) < 0)
        fail(&error);
    for (unsigned i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        struct collective_options options = {
            .endpoint = endpoint,
            .job_uid = "bench",
            .generation = {1, 1, i + 1},
            .rank = rank,
            .size = size,
            .peers = peers,
            .transport = COLLECTIVE_TRANSPORT_TCP,
            .algorithm = algorithms[i].algorithm,
            .reduction = {.combine = reduction_plan_combine, .context = plan, .merges = reduction_plan_merges(plan)}};
        for (unsigned j = 0; j < size; j++)
            options.reduction.contributions[j] = 1;
        run_crew_algorithm(&options, rounds, algorithms[i].name);
    }
    endpoint_free(endpoint);
    reduction_plan_free(plan);
}

static int run_crew(int argc, char **argv)
{
    unsigned size = argc > 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    int rounds = argc > 5 ? (int)strtol(argv[5], NULL, 10) : 10;
    if (size < 2 || size > RANKS_MAX || rounds < 1) {
        fprintf(stderr, "bench: --crew SIZE A.B.C [RANK [ROUNDS [LONGEST]]], with a size of 2 to %d\n", RANKS_MAX);
        return 2;
    }
    if (argc > 6)
        longest = strtoul(argv[6], NULL, 10);
    if (argc > 4) {
        run_crew_rank(argv[3], size, (unsigned)strtoul(argv[4], NULL, 10) % size, rounds);
        return 0;
    }
    for (unsigned rank = 0; rank < size; rank++)
        if (fork() == 0) {
            run_crew_rank(argv[3], size, rank, rounds);
            exit(0);
        }
    int status, worst = 0;
    while (wait(&status) > 0)
        worst |= status;
    return worst != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--crew") == 0)
        return run_crew(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--algorithms") == 0) {
        if (argc == 2)
            run_algorithms(COLLECTIVE_TRANSPORT_SHARED_MEMORY, "shm");
        run_algorithms(COLLECTIVE_TRANSPORT_TCP, "TCP");
        return 0;
    }
    bool pair = argc > 1 && strcmp(argv[1], "--pair") == 0;
    if (!pair)
        run_raw_stream();
    for (unsigned size = 2; size <= (pair ? 2 : 4); size += 2) {
        const struct sweep shared = {"shared memory", sizes, sizeof(sizes) / sizeof(*sizes)},
                           tcp = {"TCP", sizes, sizeof(sizes) / sizeof(*sizes)};
        run(size, COLLECTIVE_TRANSPORT_SHARED_MEMORY, COLLECTIVE_ALGORITHM_AUTO, &shared);
        run(size, COLLECTIVE_TRANSPORT_TCP, COLLECTIVE_ALGORITHM_AUTO, &tcp);
    }
    return 0;
}
