/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of forked processes. Each child runs one rank and reports by its exit
 * status; pipes say when a phase is reached.
 */
#include "worker/comm/collective.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buffer.h"
#include "tests/unit/crew_files.h"
#include "tests/unit/forking.h"

#define RANKS_MAX 16
#define FAILED(condition)                                                                                              \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            fprintf(stderr, "rank %u: %s (line %d): %s\n", c->rank, #condition, __LINE__, c->error.message);           \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

struct crew {
    unsigned rank, size;
    enum collective_transport transport;
    struct endpoint *endpoints[RANKS_MAX];
    struct collective_options options;
    struct collective_peer peers[RANKS_MAX];
    pid_t children[RANKS_MAX];
    int phase[2];             /* a child writes a byte when it has come somewhere */
    struct collective *group; /* in a child */
    pthread_barrier_t *start; /* of all its processes; NULL: each begins when it has joined */
    struct error error;
};

/* Left to right over all inputs: the order shows in the bits. */
static void combine_in_order(const void *context, const float *const *inputs, float *result, size_t elements)
{
    unsigned count = *(const unsigned *)context;
    for (size_t i = 0; i < elements; i++) {
        float sum = inputs[0][i];
        for (unsigned k = 1; k < count; k++)
            sum += inputs[k][i];
        result[i] = sum;
    }
}

static unsigned input_count;

static void crew_init(struct crew *c, unsigned size, unsigned parts, enum collective_transport transport)
{
    memset(c, 0, sizeof(*c));
    c->size = size;
    input_count = size * parts;
    c->options = (struct collective_options){.job_uid = "job-1",
                                             .generation = {1, 2, 3},
                                             .size = size,
                                             .peers = c->peers,
                                             .transport = transport,
                                             .check_frames = true,
                                             .reduction = {.combine = combine_in_order, .context = &input_count}};
    for (unsigned i = 0; i < size; i++) {
        c->options.reduction.contributions[i] = parts;
        cr_assert_eq(endpoint_open("127.0.0.1", 0, &c->endpoints[i], NULL), 0);
        snprintf(c->peers[i].address, sizeof(c->peers[i].address), "127.0.0.1");
        c->peers[i].port = endpoint_port(c->endpoints[i]);
        snprintf(c->peers[i].name, sizeof(c->peers[i].name), "worker %u", i + 7);
    }
    cr_assert_eq(pipe(c->phase), 0);
}

/* In the child: opens the group of its rank. */
static void crew_join(struct crew *c, unsigned rank)
{
    c->rank = rank;
    c->options.rank = rank;
    c->options.endpoint = c->endpoints[rank];
    /* Others' listening sockets must end with their own process. */
    for (unsigned i = 0; i < c->size; i++)
        if (i != rank)
            endpoint_free(c->endpoints[i]);
    FAILED(collective_new(&c->options, &c->group, &c->error) < 0);
    FAILED(collective_connect(c->group, 60000, &c->error) < 0);
}

static void crew_fork(struct crew *c, void (*body)(struct crew *))
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    for (unsigned rank = 0; rank < c->size; rank++) {
        c->children[rank] = fork();
        if (c->children[rank] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            crew_join(c, rank);
            body(c);
            collective_free(c->group);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < c->size; i++)
        endpoint_free(c->endpoints[i]);
}

static int crew_wait(struct crew *c, unsigned rank)
{
    int status = 0;
    waitpid(c->children[rank], &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void crew_await_phases(struct crew *c, unsigned count)
{
    char byte;
    for (unsigned i = 0; i < count; i++)
        cr_assert_eq(read(c->phase[0], &byte, 1), 1);
}

static void reached_phase(struct crew *c)
{
    (void)!write(c->phase[1], "", 1);
}

static float value(unsigned rank, unsigned part, size_t i)
{
    unsigned hash = (rank * 31u + part + 1u) * 2654435761u ^ (unsigned)i * 40503u;
    return (float)(hash % 100003u) * (hash & 1u ? 1e-4f : 1e4f);
}

static float expected(const struct crew *c, size_t i)
{
    unsigned parts = c->options.reduction.contributions[0];
    float sum = value(0, 0, i);
    for (unsigned k = 1; k < c->size * parts; k++)
        sum += value(k / parts, k % parts, i);
    return sum;
}

static float **make_contributions(const struct crew *c, size_t elements)
{
    unsigned parts = c->options.reduction.contributions[0];
    float **vectors = calloc(parts, sizeof(*vectors));
    for (unsigned part = 0; part < parts; part++) {
        vectors[part] = malloc((elements + 1) * sizeof(float));
        for (size_t i = 0; i < elements; i++)
            vectors[part][i] = value(c->rank, part, i);
    }
    return vectors;
}

static const size_t sizes[] = {0, 1, 5, 63, 1000, 4096, 4097, 70000, 262144, 1000003};

static void reduce_all_sizes(struct crew *c)
{
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        float **vectors = make_contributions(c, sizes[s]);
        FAILED(collective_all_reduce(c->group, (const float *const *)vectors, vectors[0], sizes[s], &c->error) < 0);
        for (size_t i = 0; i < sizes[s]; i++)
            FAILED(vectors[0][i] != expected(c, i));
    }
}

static void reduce_overlapping(struct crew *c)
{
    enum { COUNT = 100, ELEMENTS = 9000 };
    float **vectors[COUNT];
    collective_ticket tickets[COUNT];
    for (unsigned n = 0; n < COUNT; n++) {
        vectors[n] = make_contributions(c, ELEMENTS - n * 50);
        tickets[n] =
            collective_all_reduce_start(c->group, (const float *const *)vectors[n], vectors[n][0], ELEMENTS - n * 50);
    }
    for (unsigned n = COUNT; n-- > 0;) {
        FAILED(collective_wait(c->group, tickets[n], &c->error) < 0);
        for (size_t i = 0; i < ELEMENTS - n * 50; i++)
            FAILED(vectors[n][0][i] != expected(c, i));
    }
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

static unsigned owner_of(const struct crew *c, const struct collective_shards *shards, size_t at)
{
    return at < shards->head ? 0 : (unsigned)((at - shards->head) / shards->stripe % c->size);
}

/* A sharded vector, reduced in three pieces as buckets are, last first. */
static void scatter(struct crew *c, float **vectors, float *result, size_t elements,
                    const struct collective_shards *shards)
{
    size_t cuts[] = {0, elements / 3, elements / 2, elements};
    collective_ticket tickets[3];
    for (unsigned n = 3; n-- > 0;) {
        struct collective_shards here = *shards;
        const float *from[4];
        for (unsigned part = 0; part < c->options.reduction.contributions[0]; part++)
            from[part] = vectors[part] + cuts[n];
        here.offset = cuts[n];
        tickets[n] = collective_reduce_scatter_start(c->group, from, result + cuts[n], cuts[n + 1] - cuts[n], &here);
    }
    for (unsigned n = 3; n-- > 0;)
        FAILED(collective_wait(c->group, tickets[n], &c->error) < 0);
}

static void scatter_and_gather(struct crew *c)
{
    static const struct collective_shards kinds[] = {{7, 100, 0}, {0, 16384, 0}, {10000, 65536, 0}, {3, 1, 0}};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        const struct collective_shards *shards = &kinds[s % 3 + (sizes[s] < 1000 ? 1 : 0)];
        float **vectors = make_contributions(c, sizes[s]), *sum = vectors[0];
        unsigned before = (c->rank + c->size - 1) % c->size, sources[RANKS_MAX];
        scatter(c, vectors, sum, sizes[s], shards);
        for (size_t i = 0; i < sizes[s]; i++) {
            unsigned owner = owner_of(c, shards, i);
            FAILED((owner == c->rank || owner == before) && sum[i] != expected(c, i));
        }
        FAILED(collective_all_gather(c->group, sum, sizes[s], shards, NULL, &c->error) < 0);
        for (size_t i = 0; i < sizes[s]; i++)
            FAILED(sum[i] != expected(c, i));
        /* Rank 1 has lost everything; what it owned comes from the one after it. */
        for (unsigned rank = 0; rank < c->size; rank++)
            sources[rank] = rank == 1 ? 2 % c->size : rank;
        for (size_t i = 0; i < sizes[s] && c->rank == 1; i++)
            sum[i] = -1;
        FAILED(collective_all_gather(c->group, sum, sizes[s], shards, sources, &c->error) < 0);
        for (size_t i = 0; i < sizes[s]; i++)
            FAILED(sum[i] != expected(c, i));
    }
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

static void broadcast_to_some(struct crew *c)
{
    size_t length = 3 * 1000 * 1000 + 17;
    unsigned char *bytes = calloc(length, 1);
    bool receives[RANKS_MAX] = {true, false, false, true};
    for (size_t i = 0; i < length && c->rank == 1; i++)
        bytes[i] = (unsigned char)(i * 7);
    FAILED(collective_broadcast(c->group, 1, receives, bytes, length, &c->error) < 0);
    for (size_t i = 0; i < length; i++)
        FAILED(bytes[i] != (c->rank == 2 ? 0 : (unsigned char)(i * 7)));
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

/* ---------------------------------------------------------------- algorithms */

#define INPUTS_MAX (RANKS_MAX * 3)

/* Returns the merged inputs of element i. */
static float merged(const struct crew *c, size_t i)
{
    unsigned parts = c->options.reduction.contributions[0];
    float inputs[INPUTS_MAX];
    for (unsigned k = 0; k < c->size * parts; k++)
        inputs[k] = value(k / parts, k % parts, i);
    for (unsigned m = 0; m + 1 < c->size * parts; m++)
        inputs[c->options.reduction.merges[m].into] += inputs[c->options.reduction.merges[m].from];
    return inputs[0];
}

static void combine_as_merged(const void *context, const float *const *inputs, float *result, size_t elements)
{
    const struct crew *c = context;
    unsigned count = c->size * c->options.reduction.contributions[0];
    for (size_t i = 0; i < elements; i++) {
        float sums[INPUTS_MAX] = {0};
        for (unsigned k = 0; k < count; k++)
            sums[k] = inputs[k][i];
        for (unsigned m = 0; m + 1 < count; m++)
            sums[c->options.reduction.merges[m].into] += sums[c->options.reduction.merges[m].from];
        result[i] = sums[0];
    }
}

static void reduce_one_as_merged(struct crew *c, size_t elements, bool in_place)
{
    float **vectors = make_contributions(c, elements);
    float *result = in_place ? vectors[0] : calloc(elements + 1, sizeof(float));
    FAILED(collective_all_reduce(c->group, (const float *const *)vectors, result, elements, &c->error) < 0);
    for (size_t i = 0; i < elements; i++)
        FAILED(result[i] != merged(c, i));
}

static void reduce_as_merged(struct crew *c)
{
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        reduce_one_as_merged(c, sizes[s], s % 2);
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

/* Two operations, the second a short one. */
static void reduce_long_as_merged(struct crew *c)
{
    reduce_one_as_merged(c, 262144 + 1003, true);
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

static void reduce_in_nodes(struct crew *c)
{
    static const unsigned nodes[][RANKS_MAX] = {{0, 1, 2, 3}, {0, 0, 2, 2}, {0, 1, 1, 0}, {0, 0, 0, 0}};
    for (unsigned n = 0; n < sizeof(nodes) / sizeof(*nodes); n++) {
        collective_set_nodes(c->group, nodes[n]);
        reduce_as_merged(c);
    }
}

/* All ranks have the same bits, near the sum. */
static void reduce_round_the_ring(struct crew *c)
{
    bool all[RANKS_MAX] = {true, true, true, true};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        float **vectors = make_contributions(c, sizes[s]);
        FAILED(collective_all_reduce(c->group, (const float *const *)vectors, vectors[0], sizes[s], &c->error) < 0);
        float *theirs = calloc(sizes[s] + 1, sizeof(float));
        memcpy(theirs, vectors[0], sizes[s] * sizeof(float));
        FAILED(collective_broadcast(c->group, 0, all, theirs, sizes[s] * sizeof(float), &c->error) < 0);
        FAILED(memcmp(theirs, vectors[0], sizes[s] * sizeof(float)) != 0);
        for (size_t i = 0; i < sizes[s]; i++) {
            double sum = 0, most = 0;
            for (unsigned rank = 0; rank < c->size; rank++) {
                sum += (double)value(rank, 0, i);
                most += (double)value(rank, 0, i);
            }
            double off = (double)vectors[0][i] - sum;
            FAILED(off > most * 1e-6 || -off > most * 1e-6);
        }
    }
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

/* With the balanced tree over all inputs, or their order from left to right. */
static const struct reduction_case {
    const char *name;
    unsigned size, parts;
    enum collective_algorithm algorithm;
    bool tree;
    enum collective_transport transport;
    void (*body)(struct crew *);
} reductions[] = {
#define ROW(name, size, parts, algorithm, tree, transport, body)                                                       \
    {                                                                                                                  \
        name, size, parts, COLLECTIVE_ALGORITHM_##algorithm, tree, COLLECTIVE_TRANSPORT_##transport, body              \
    }
    ROW("pairs of 2", 2, 1, DOUBLING, true, AUTO, reduce_as_merged),
    ROW("pairs of 2", 2, 1, HALVING, true, TCP, reduce_as_merged),
    ROW("pairs of 2", 2, 1, AUTO, true, AUTO, reduce_as_merged),
    ROW("pairs of 4", 4, 1, DOUBLING, true, AUTO, reduce_as_merged),
    ROW("pairs of 4", 4, 1, HALVING, true, TCP, reduce_as_merged),
    ROW("pairs of 4", 4, 1, AUTO, true, AUTO, reduce_as_merged),
    ROW("many ranks, long vectors", 16, 1, AUTO, true, AUTO, reduce_long_as_merged),
    ROW("one adds for all, tree", 2, 3, REDUCE_TO_ONE, true, TCP, reduce_as_merged),
    ROW("one adds for all, any order", 4, 2, REDUCE_TO_ONE, false, AUTO, reduce_as_merged),
    ROW("nodes, tree", 4, 1, HIERARCHICAL, true, TCP, reduce_in_nodes),
    ROW("nodes, any order", 4, 2, HIERARCHICAL, false, AUTO, reduce_in_nodes),
    ROW("nodes of three ranks", 3, 3, HIERARCHICAL, true, AUTO, reduce_in_nodes),
    ROW("ring of 2", 2, 1, RING, true, TCP, reduce_round_the_ring),
    ROW("ring of 3", 3, 1, RING, true, AUTO, reduce_round_the_ring),
    ROW("ring of 4", 4, 1, RING, true, TCP, reduce_round_the_ring),
#undef ROW
};

static void expect_success(struct crew *c, const char *name)
{
    for (unsigned rank = 0; rank < c->size; rank++)
        cr_assert_eq(crew_wait(c, rank), 0, "%s: rank %u", name, rank);
}

static void run_reduction(const struct reduction_case *reduction)
{
    unsigned inputs = reduction->size * reduction->parts;
    struct crew c;
    struct reduction_merge merges[INPUTS_MAX];
    unsigned count = 0;
    crew_init(&c, reduction->size, reduction->parts, reduction->transport);
    for (unsigned distance = 1; reduction->tree && distance < inputs; distance *= 2)
        for (unsigned into = 0; into + distance < inputs; into += 2 * distance)
            merges[count++] = (struct reduction_merge){into, into + distance};
    for (unsigned from = 1; !reduction->tree && from < inputs; from++)
        merges[count++] = (struct reduction_merge){0, from};
    c.options.algorithm = reduction->algorithm;
    c.options.reduction.merges = merges;
    c.options.reduction.combine = combine_as_merged;
    c.options.reduction.context = &c;
    crew_fork(&c, reduction->body);
    expect_success(&c, reduction->name);
}

Test(collective, every_algorithm_adds_in_its_order, .timeout = 600)
{
    for (size_t i = 0; i < sizeof(reductions) / sizeof(*reductions); i++)
        run_reduction(&reductions[i]);
}

/* ---------------------------------------------------------------- */

static void run_named_crew(const char *name, unsigned size, unsigned parts, enum collective_transport transport,
                           void (*body)(struct crew *))
{
    struct crew c;
    crew_init(&c, size, parts, transport);
    crew_fork(&c, body);
    expect_success(&c, name);
}

static void run_crew(unsigned size, unsigned parts, enum collective_transport transport, void (*body)(struct crew *))
{
    run_named_crew("crew", size, parts, transport, body);
}

static const struct crew_case {
    const char *name;
    unsigned size, parts;
    enum collective_transport transport;
    void (*body)(struct crew *);
} crew_cases[] =
    {
#define ROW(name, size, parts, transport, body)                                                                        \
    {                                                                                                                  \
        name, size, parts, COLLECTIVE_TRANSPORT_##transport, body                                                      \
    }
        ROW("one rank alone", 1, 2, AUTO, reduce_all_sizes),
        ROW("all sizes over TCP", 2, 1, TCP, reduce_all_sizes),
        ROW("all sizes over TCP", 3, 2, TCP, reduce_all_sizes),
        ROW("all sizes over shared memory", 2, 3, SHARED_MEMORY, reduce_all_sizes),
        ROW("all sizes over shared memory", 4, 1, SHARED_MEMORY, reduce_all_sizes),
        ROW("both halves of an all-reduce", 1, 2, AUTO, scatter_and_gather),
        ROW("both halves of an all-reduce", 2, 2, AUTO, scatter_and_gather),
        ROW("both halves of an all-reduce", 3, 1, TCP, scatter_and_gather),
        ROW("both halves of an all-reduce", 4, 3, AUTO, scatter_and_gather),
        ROW("many at a time over TCP", 3, 1, TCP, reduce_overlapping),
        ROW("many at a time over shared memory", 3, 2, AUTO, reduce_overlapping),
        ROW("broadcast to some over TCP", 4, 1, TCP, broadcast_to_some),
        ROW("broadcast to some", 4, 1, AUTO, broadcast_to_some),
},
  tls_cases[] = {
      ROW("all sizes over TLS", 3, 1, TCP, reduce_all_sizes),
      ROW("many at a time over TLS", 4, 1, TCP, reduce_overlapping),
      ROW("shared memory needs no TLS once both are known", 3, 1, AUTO, reduce_all_sizes),
#undef ROW
};

static void run_cases(const struct crew_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run_named_crew(cases[i].name, cases[i].size, cases[i].parts, cases[i].transport, cases[i].body);
}

Test(collective, every_transport_carries_everything, .timeout = 600)
{
    run_cases(crew_cases, sizeof(crew_cases) / sizeof(*crew_cases));
}

/* The children have the certificates that were there when they were forked. */
Test(collective, tls_carries_everything, .timeout = 600)
{
    struct crew_files files;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    run_cases(tls_cases, sizeof(tls_cases) / sizeof(*tls_cases));
    crew_files_close(&files);
}

static void expect_shared(struct crew *c)
{
    FAILED(!collective_shares_memory(c->group, !c->rank));
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

Test(collective, the_probe_finds_shared_memory_and_leaves_no_file, .timeout = 240)
{
    struct crew c;
    crew_init(&c, 2, 1, COLLECTIVE_TRANSPORT_AUTO);
    crew_fork(&c, expect_shared);
    expect_success(&c, "crew");
    char prefix[64];
    snprintf(prefix, sizeof(prefix), "coxswain-ring-%d-", (int)c.children[1]);
    DIR *directory = opendir("/dev/shm");
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        cr_assert_neq(strncmp(entry->d_name, prefix, strlen(prefix)), 0);
    closedir(directory);
}

/* Reduces for ever; the end is a failure that must say UNAVAILABLE (exit 7). */
static void reduce_until_failure(struct crew *c)
{
    float **vectors = make_contributions(c, 500000);
    reached_phase(c);
    while (collective_all_reduce(c->group, (const float *const *)vectors, vectors[0], 500000, &c->error) == 0)
        ;
    _exit(c->error.kind == ERROR_UNAVAILABLE ? 7 : 8);
}

static void kill_one(enum collective_transport transport, unsigned victim)
{
    struct crew c;
    crew_init(&c, 3, 1, transport);
    crew_fork(&c, reduce_until_failure);
    crew_await_phases(&c, 3);
    kill(c.children[victim], SIGKILL);
    for (unsigned rank = 0; rank < 3; rank++)
        cr_assert_eq(crew_wait(&c, rank), rank == victim ? 128 + SIGKILL : 7, "rank %u", rank);
}

Test(collective, a_killed_peer_ends_all_at_once, .timeout = 240)
{
    kill_one(COLLECTIVE_TRANSPORT_TCP, 0);
    kill_one(COLLECTIVE_TRANSPORT_TCP, 2);
    kill_one(COLLECTIVE_TRANSPORT_SHARED_MEMORY, 0);
    kill_one(COLLECTIVE_TRANSPORT_SHARED_MEMORY, 1);
}

static void *abort_soon(void *context)
{
    struct crew *c = context;
    reached_phase(c);
    collective_abort(c->group, ERROR_STALE, "told to stop");
    return NULL;
}

static void wait_for_nobody(struct crew *c)
{
    if (c->rank == 1) { /* takes no part */
        pause();
    }
    pthread_t thread;
    pthread_create(&thread, NULL, abort_soon, c);
    FAILED(collective_barrier(c->group, &c->error) == 0);
    FAILED(c->error.kind != ERROR_STALE || strcmp(c->error.message, "told to stop") != 0);
    FAILED(collective_barrier(c->group, &c->error) == 0);
    pthread_join(thread, NULL);
}

Test(collective, an_abort_ends_a_wait, .timeout = 240)
{
    struct crew c;
    crew_init(&c, 2, 1, COLLECTIVE_TRANSPORT_AUTO);
    crew_fork(&c, wait_for_nobody);
    cr_assert_eq(crew_wait(&c, 0), 0);
    kill(c.children[1], SIGKILL);
    crew_wait(&c, 1);
}

static long anonymous_kilobytes(void)
{
    long kilobytes = 0;
    char line[128];
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0)
            kilobytes = strtol(line + 8, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kilobytes;
}

/* Hundreds of operations, of which up to 32 are under way: were each to stage what comes for it, that would be two megabytes. */
static void reduce_with_little_memory(struct crew *c)
{
    const size_t elements = (size_t)10 << 20;
    float **vectors = make_contributions(c, elements);
    long before = anonymous_kilobytes();
    FAILED(before == 0);
    FAILED(collective_all_reduce(c->group, (const float *const *)vectors, vectors[0], elements, &c->error) < 0);
    FAILED(anonymous_kilobytes() - before > 1 << 10);
}

Test(collective, what_comes_is_staged_in_memory_that_is_used_over_and_over, .timeout = 240)
{
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("the address sanitizer keeps what is freed");
#endif
    run_crew(2, 1, COLLECTIVE_TRANSPORT_SHARED_MEMORY, reduce_with_little_memory);
}

/* Rank 1 leaves with nothing under way. */
static void outstay(struct crew *c)
{
    FAILED(collective_barrier(c->group, &c->error) < 0);
    FAILED(c->rank == 0 && collective_check_peers(c->group, &c->error) < 0);
    FAILED(collective_barrier(c->group, &c->error) < 0);
    while (c->rank == 0 && collective_check_peers(c->group, &c->error) == 0)
        usleep(1000);
    FAILED(c->rank == 0 && c->error.kind != ERROR_UNAVAILABLE);
    FAILED(c->rank == 0 && strstr(c->error.message, "(worker 8, 127.0.0.1:") == NULL);
    FAILED(c->rank == 0 && collective_check(c->group, &c->error) < 0);
}

Test(collective, that_a_peer_has_left_shows_also_where_no_operation_wants_it, .timeout = 240)
{
    run_crew(2, 1, COLLECTIVE_TRANSPORT_TCP, outstay);
    run_crew(2, 1, COLLECTIVE_TRANSPORT_SHARED_MEMORY, outstay);
}

#define ROUNDS_MAX 200
#define STOPPED_US 250000
#define NOTICED_NS 50000000

/* Rank 1 stops rank 0, which waits for it by then or, on a busy machine, in another round, until rank 0 says that it knows. */
static void stand_still(struct crew *c)
{
    float knows = 0;
    for (int round = 0; knows == 0 && round < ROUNDS_MAX; round++) {
        if (c->rank == 1) {
            usleep(20000);
            kill(c->children[0], SIGSTOP);
            usleep(STOPPED_US);
            kill(c->children[0], SIGCONT);
        }
        FAILED(collective_barrier(c->group, &c->error) < 0);
        const float own = c->rank == 0 && collective_take_frozen_ns(c->group) > NOTICED_NS, *vectors[] = {&own};
        FAILED(collective_all_reduce(c->group, vectors, &knows, 1, &c->error) < 0);
    }
    FAILED(knows == 0);
    FAILED(collective_take_frozen_ns(c->group) > STOPPED_US * 1000000LL); /* it was taken */
}

Test(collective, a_process_stopped_while_it_waits_knows_it, .timeout = 240)
{
    run_crew(2, 1, COLLECTIVE_TRANSPORT_AUTO, stand_still);
}

static atomic_bool stops_in_yield;

/* In place of the C library's, for all tests of this program. */
int sched_yield(void)
{
    if (atomic_exchange(&stops_in_yield, false))
        usleep(STOPPED_US);
    return (int)syscall(SYS_sched_yield);
}

/* As if somebody stopped rank 0 while it lets others have the processor: each round until it comes to that and knows it. */
static void stand_still_in_yield(struct crew *c)
{
    float knows = 0;
    for (int round = 0; knows == 0 && round < ROUNDS_MAX; round++) {
        if (c->rank == 1)
            usleep(20000);
        stops_in_yield = c->rank == 0;
        FAILED(collective_barrier(c->group, &c->error) < 0);
        stops_in_yield = false;
        const float own = c->rank == 0 && collective_take_frozen_ns(c->group) > NOTICED_NS, *vectors[] = {&own};
        FAILED(collective_all_reduce(c->group, vectors, &knows, 1, &c->error) < 0);
    }
    FAILED(knows == 0);
}

Test(collective, a_process_stopped_while_it_polls_knows_it, .timeout = 240)
{
    run_crew(2, 1, COLLECTIVE_TRANSPORT_AUTO, stand_still_in_yield);
}

/* Each time the thread sleeps on the operation already when the caller comes to wait for it, and then the bell rings for both. */
static void sleep_by_twos(struct crew *c)
{
    for (unsigned n = 0; n < 600; n++) {
        float own = value(c->rank, 0, n), result;
        bool late = n % 2 == c->rank;
        if (late)
            usleep(1500);
        collective_ticket ticket = collective_all_reduce_start(c->group, (const float *const[]){&own}, &result, 1);
        if (!late)
            usleep(300);
        FAILED(collective_wait(c->group, ticket, &c->error) < 0);
        FAILED(result != expected(c, n));
    }
}

/* A bell that the wrong one takes costs a second; a few dozen of them are more than the test has. */
Test(collective, two_sleepers_miss_no_bell, .timeout = 240)
{
    run_crew(2, 1, COLLECTIVE_TRANSPORT_SHARED_MEMORY, sleep_by_twos);
}

static void come_late(struct crew *c)
{
    if (c->rank == 1)
        usleep(500 * 1000); /* beyond the deadline, which is what is under test */
    FAILED(collective_barrier(c->group, &c->error) < 0);
}

Test(collective, a_barrier_has_no_deadline, .timeout = 240)
{
    struct crew c;
    crew_init(&c, 2, 1, COLLECTIVE_TRANSPORT_AUTO);
    c.options.deadline_ms = 100;
    crew_fork(&c, come_late);
    expect_success(&c, "crew");
}

static char stall_text[512];
static void keep_stall(void *context, const char *text)
{
    (void)context;
    snprintf(stall_text, sizeof(stall_text), "%s", text);
}

static void stall_and_time_out(struct crew *c)
{
    if (c->rank == 1)
        pause();
    collective_set_label(c->group, "step 57");
    float value = 1;
    FAILED(collective_all_reduce(c->group, (const float *const[]){&value}, &value, 1, &c->error) == 0);
    FAILED(c->error.kind != ERROR_TIMEOUT);
    FAILED(strstr(stall_text, "rank 1 (worker 8, ") == NULL || strstr(stall_text, "step 57") == NULL);
    FAILED(strstr(c->error.message, ") in operation 1 (all-reduce, step 57); last completed 0") == NULL);
}

Test(collective, a_stall_is_named_and_ends_at_the_deadline, .timeout = 240)
{
    struct crew c;
    crew_init(&c, 2, 1, COLLECTIVE_TRANSPORT_AUTO);
    c.options.stall_ms = 50;
    c.options.deadline_ms = 200;
    c.options.on_stall = keep_stall;
    crew_fork(&c, stall_and_time_out);
    cr_assert_eq(crew_wait(&c, 0), 0);
    kill(c.children[1], SIGKILL);
    crew_wait(&c, 1);
}

/* ---- a frozen rank: in every operation, the others end at the deadline, and one of them names it */

enum { NAMED = 21, NAMED_ANOTHER = 22 };
enum { FROZEN = 1, FROZEN_ELEMENTS = 1000000 };

/* A rank freezes before its first byte, or with some bytes under way. All begin together, since a rank that has not been scheduled yet
 * would be named like the frozen one. */
static void freeze_here(struct crew *c)
{
    pthread_barrier_wait(c->start);
    if (c->rank == FROZEN && c->options.stall_context)
        raise(SIGSTOP);
}

/* By rank, role and address. */
static bool is_named(const char *text)
{
    const char *names = strstr(text, " for ");
    return names && strstr(names, "rank 1 (worker 8, 127.0.0.1:") && strstr(names, "step 57");
}

static bool named_in_a_stall;
static void look_for_a_name(void *context, const char *text)
{
    (void)context;
    named_in_a_stall |= is_named(text);
}

/* Some ranks wait for others, which wait for the frozen rank. The first rank at its deadline closes its links, which others may see
 * before their own deadline. */
static void expect_a_name(struct crew *c)
{
    FAILED(c->error.kind != ERROR_TIMEOUT && c->error.kind != ERROR_UNAVAILABLE);
    _exit(named_in_a_stall || is_named(c->error.message) ? NAMED : NAMED_ANOTHER);
}

static void freeze_in_all_reduce(struct crew *c)
{
    float **vectors = make_contributions(c, FROZEN_ELEMENTS);
    size_t length = c->options.algorithm == COLLECTIVE_ALGORITHM_DOUBLING ? 1000 : FROZEN_ELEMENTS;
    collective_set_label(c->group, "step 57");
    freeze_here(c);
    collective_ticket ticket = collective_all_reduce_start(c->group, (const float *const *)vectors, vectors[0], length);
    if (c->rank == FROZEN)
        raise(SIGSTOP);
    if (collective_wait(c->group, ticket, &c->error) == 0) /* it was through before it froze: the next one is not */
        FAILED(collective_all_reduce(c->group, (const float *const *)vectors, vectors[0], length, &c->error) == 0);
    expect_a_name(c);
}

static void freeze_in_copy_of_state(struct crew *c)
{
    bool receives[RANKS_MAX] = {true, true, true, true};
    unsigned char *bytes = calloc(4, FROZEN_ELEMENTS);
    collective_set_label(c->group, "step 57, state transfer");
    freeze_here(c);
    for (int time = 0; time < 100 && c->error.kind == ERROR_NONE; time++) {
        if (time == 3 && c->rank == FROZEN)
            raise(SIGSTOP);
        collective_broadcast(c->group, c->options.stall_context ? FROZEN : 0, receives, bytes, 4 * FROZEN_ELEMENTS,
                             &c->error);
    }
    expect_a_name(c);
}

/* The operations of a sharded optimizer: sums go to their owners, and parameters come from them. */
static const struct collective_shards frozen_shards = {.stripe = 16384};

static void freeze_in_reduce_scatter(struct crew *c)
{
    float **vectors = make_contributions(c, FROZEN_ELEMENTS);
    collective_set_label(c->group, "step 57");
    freeze_here(c);
    collective_ticket ticket = collective_reduce_scatter_start(c->group, (const float *const *)vectors, vectors[0],
                                                               FROZEN_ELEMENTS, &frozen_shards);
    if (c->rank == FROZEN)
        raise(SIGSTOP);
    if (collective_wait(c->group, ticket, &c->error) == 0) /* it had received everything that it needs */
        FAILED(collective_all_gather(c->group, vectors[0], FROZEN_ELEMENTS, &frozen_shards, NULL, &c->error) == 0);
    expect_a_name(c);
}

static void freeze_in_all_gather(struct crew *c)
{
    float **vectors = make_contributions(c, FROZEN_ELEMENTS);
    collective_set_label(c->group, "step 57");
    freeze_here(c);
    for (int time = 0; time < 100 && c->error.kind == ERROR_NONE; time++) {
        if (time == 3 && c->rank == FROZEN)
            raise(SIGSTOP);
        collective_all_gather(c->group, vectors[0], FROZEN_ELEMENTS, &frozen_shards, NULL, &c->error);
    }
    expect_a_name(c);
}

static pthread_barrier_t *make_start(unsigned size)
{
    pthread_barrierattr_t shared;
    pthread_barrier_t *start = mmap(NULL, sizeof(*start), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(start, MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    cr_assert_eq(pthread_barrier_init(start, &shared, size), 0);
    pthread_barrierattr_destroy(&shared);
    return start;
}

/* `at_once`: before its first byte. */
static void freeze_one(struct crew *c, enum collective_algorithm algorithm, enum collective_transport transport,
                       bool at_once, void (*body)(struct crew *))
{
    static const struct reduction_merge merges[] = {{0, 1}, {2, 3}, {0, 2}};
    crew_init(c, 4, 1, transport);
    c->options.algorithm = algorithm;
    c->options.reduction.merges = merges;
    c->options.reduction.combine = combine_as_merged;
    c->options.reduction.context = c;
    c->options.stall_ms = 100;
    c->options.deadline_ms = 2500;
    c->options.on_stall = look_for_a_name;
    c->options.stall_context = at_once ? c : NULL;
    c->start = make_start(c->size);
    crew_fork(c, body);
}

static void expect_that_it_is_named(struct crew *c)
{
    unsigned named = 0;
    for (unsigned rank = 0; rank < 4; rank++) {
        if (rank == FROZEN)
            continue;
        int status = crew_wait(c, rank);
        named += status == NAMED;
        cr_expect(status == NAMED || status == NAMED_ANOTHER, "rank %u: %d, algorithm %d, at once %d", rank, status,
                  c->options.algorithm, c->options.stall_context != NULL);
    }
    cr_expect_gt(named, 0, "nobody has named the frozen rank: algorithm %d, at once %d", c->options.algorithm,
                 c->options.stall_context != NULL);
    kill(c->children[FROZEN], SIGKILL);
    crew_wait(c, FROZEN);
    munmap(c->start, sizeof(*c->start)); /* not destroyed: that would wait for one that was killed in it */
}

static const enum collective_algorithm every_algorithm[] = {
    COLLECTIVE_ALGORITHM_DIRECT,       COLLECTIVE_ALGORITHM_OWNED, COLLECTIVE_ALGORITHM_DOUBLING,
    COLLECTIVE_ALGORITHM_HALVING,      COLLECTIVE_ALGORITHM_RING,  COLLECTIVE_ALGORITHM_REDUCE_TO_ONE,
    COLLECTIVE_ALGORITHM_HIERARCHICAL,
};
#define ALGORITHMS (sizeof(every_algorithm) / sizeof(*every_algorithm))

/* All crews side by side: they mostly wait. */
static void freeze_in_each(enum collective_transport transport)
{
    static struct crew crews[2][ALGORITHMS];
    for (size_t i = 0; i < 2 * ALGORITHMS; i++)
        freeze_one(&crews[i % 2][i / 2], every_algorithm[i / 2], transport, i % 2 == 0, freeze_in_all_reduce);
    for (size_t i = 0; i < 2 * ALGORITHMS; i++)
        expect_that_it_is_named(&crews[i % 2][i / 2]);
}

Test(collective, a_rank_frozen_in_any_all_reduce_over_tcp_is_named, .timeout = 240)
{
    freeze_in_each(COLLECTIVE_TRANSPORT_TCP);
}

Test(collective, a_rank_frozen_in_any_all_reduce_over_shared_memory_is_named, .timeout = 240)
{
    freeze_in_each(COLLECTIVE_TRANSPORT_SHARED_MEMORY);
}

Test(collective, a_rank_frozen_in_the_copy_of_the_state_is_named, .timeout = 240)
{
    static struct crew crews[4];
    for (size_t i = 0; i < 4; i++)
        freeze_one(&crews[i], COLLECTIVE_ALGORITHM_AUTO,
                   i < 2 ? COLLECTIVE_TRANSPORT_TCP : COLLECTIVE_TRANSPORT_SHARED_MEMORY, i % 2 == 0,
                   freeze_in_copy_of_state);
    for (size_t i = 0; i < 4; i++)
        expect_that_it_is_named(&crews[i]);
}

Test(collective, a_rank_frozen_in_either_half_of_an_all_reduce_is_named, .timeout = 240)
{
    static struct crew crews[8];
    for (size_t i = 0; i < 8; i++)
        freeze_one(&crews[i], COLLECTIVE_ALGORITHM_AUTO,
                   i % 4 < 2 ? COLLECTIVE_TRANSPORT_TCP : COLLECTIVE_TRANSPORT_SHARED_MEMORY, i % 2 == 0,
                   i < 4 ? freeze_in_reduce_scatter : freeze_in_all_gather);
    for (size_t i = 0; i < 8; i++)
        expect_that_it_is_named(&crews[i]);
}

static bool collective_peers_in(const char *text, unsigned count)
{
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, "rank ")) != NULL; at++)
        found++;
    return found == count;
}

/* A text that names everybody of a large crew would be cut. */
Test(collective, a_few_missing_ranks_are_named_and_the_rest_counted)
{
    static struct collective_peer peers[CREW_SIZE_MAX];
    bool which[CREW_SIZE_MAX];
    SCOPED_BUFFER text = BUFFER_INIT(ERROR_MESSAGE_MAX);
    for (unsigned i = 0; i < CREW_SIZE_MAX; i++) {
        snprintf(peers[i].address, sizeof(peers[i].address), "2001:db8:1234:5678:9abc:def0:1234:%x", i);
        snprintf(peers[i].name, sizeof(peers[i].name), "worker %u", i);
        which[i] = i != 3;
    }
    collective_peers_describe(peers, which, CREW_SIZE_MAX, &text);
    cr_expect(collective_peers_in(buffer_text(&text), 6) && strstr(buffer_text(&text), " and 121 more"), "%s",
              buffer_text(&text));
    cr_expect(strstr(buffer_text(&text), "rank 4 (worker 4, 2001:db8:") != NULL);
}

static void part(struct crew *low)
{
    for (unsigned i = 0; i < low->size; i++)
        endpoint_free(low->endpoints[i]);
}

/* Its kernel takes connections still. */
static void connect_to_the_frozen(struct crew *c, unsigned frozen)
{
    c->rank = 1 - frozen;
    c->options.rank = c->rank;
    c->options.endpoint = c->endpoints[c->rank];
    FAILED(collective_new(&c->options, &c->group, &c->error) < 0);
    FAILED(collective_connect(c->group, 500, &c->error) == 0);
    FAILED(c->error.kind != ERROR_TIMEOUT);
    FAILED(strstr(c->error.message, frozen == 0 ? "rank 0 (worker 7, 127." : "rank 1 (worker 8, 127.") == NULL);
    _exit(0);
}

Test(collective, a_rank_frozen_while_they_connect_is_named, .timeout = 240)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    for (unsigned frozen = 0; frozen < 2; frozen++) {
        struct crew c;
        crew_init(&c, 2, 1, COLLECTIVE_TRANSPORT_AUTO);
        pid_t child = fork(); /* the other one keeps its listening socket, and never answers */
        if (child == 0)
            connect_to_the_frozen(&c, frozen);
        int status = 0;
        waitpid(child, &status, 0);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "frozen rank %u", frozen);
        part(&c);
    }
}

static int dial(uint16_t port)
{
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    cr_assert_eq(connect(descriptor, (struct sockaddr *)&address, sizeof(address)), 0);
    return descriptor;
}

Test(collective, strangers_at_the_port_do_not_keep_the_crew_from_forming, .timeout = 240)
{
    struct crew c;
    crew_init(&c, 2, 1, COLLECTIVE_TRANSPORT_TCP);
    char noise[1000];
    memset(noise, 'x', sizeof(noise));
    int silent = dial(c.peers[0].port), loud = dial(c.peers[0].port), brief = dial(c.peers[0].port);
    cr_assert_eq(send(loud, noise, sizeof(noise), MSG_NOSIGNAL), (ssize_t)sizeof(noise));
    close(brief);
    crew_fork(&c, reduce_overlapping);
    expect_success(&c, "crew");
    close(silent);
    close(loud);
}

/* Two ranks in one process, each in a thread. */
static void *connect_rank(void *context)
{
    struct crew *c = context;
    if (collective_new(&c->options, &c->group, &c->error) == 0)
        (void)collective_connect(c->group, 5000, &c->error);
    collective_free(c->group);
    return NULL;
}

static void meet(struct crew *low, struct crew *high)
{
    crew_init(low, 2, 1, COLLECTIVE_TRANSPORT_AUTO);
    *high = *low;
    high->options.peers = low->peers;
    low->options.rank = 0;
    low->options.endpoint = low->endpoints[0];
    high->options.rank = 1;
    high->options.endpoint = low->endpoints[1];
}

/* Nobody of its own generation and job comes to the low rank. */
static void expect_refused(struct crew *low, struct crew *high, enum error_kind kind)
{
    pthread_t thread;
    cr_assert_eq(collective_new(&low->options, &low->group, NULL), 0);
    pthread_create(&thread, NULL, connect_rank, high);
    cr_assert_eq(collective_connect(low->group, 1000, &low->error), -1);
    pthread_join(thread, NULL);
    cr_assert_eq(high->error.kind, kind, "%s", high->error.message);
    collective_free(low->group);
    part(low);
}

Test(collective, an_older_generation_is_stale_and_another_job_refused, .timeout = 240)
{
    struct crew low, high;
    meet(&low, &high);
    high.options.generation.counter = 2;
    expect_refused(&low, &high, ERROR_STALE);
    cr_assert_eq(low.error.kind, ERROR_TIMEOUT);
    meet(&low, &high);
    high.options.job_uid = "job-2";
    expect_refused(&low, &high, ERROR_INVALID);
}
