/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameter servers: pull + push of one 67 MB layer between two processes, through
 * shared memory and over TCP, beside a raw loopback stream in the same run; and
 * the real worker: an MLP, 2 workers of one thread + 1 ps, batch 64 a worker. And a
 * table of 50,000 x 64 of which a step's 2,000 tokens name some rows: these rows
 * alone, and all of it.
 *
 *     bench_parameter_server [seconds a measurement, default 4]
 *     bench_parameter_server --turns      Async by the protocol of tests/bench/peers/turns.py, with processor seconds
 *
 * $BUILD says where the worker is. Rates are medians of rounds; GB are 1e9 bytes of tensors, pulled plus pushed.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/server.h"
#include "worker/parameter_server/servers_link.h"

#define ROWS 4096
#define ELEMENTS ((int64_t)ROWS * 4096)
#define BYTES ((size_t)ELEMENTS * sizeof(float))
#define LARGE_PAGE ((size_t)2 << 20)
#define ROUNDS_MAX 1000
#define TABLE_ROWS 50000
#define TABLE_WIDTH 64
#define TOKENS 2000

static double seconds = 4;
static struct parameter_tensor tensor = {.name = "w", .shape = {ROWS, 4096}, .rank = 2, .elements = ELEMENTS};
static const struct parameter_layout layer = {.tensors = &tensor, .tensor_count = 1, .elements = ELEMENTS};
static struct parameter_tensor table = {.name = "t",
                                        .shape = {TABLE_ROWS, TABLE_WIDTH},
                                        .rank = 2,
                                        .elements = (int64_t)TABLE_ROWS * TABLE_WIDTH,
                                        .by_rows = true};
static const struct parameter_layout embedding = {
    .tensors = &table, .tensor_count = 1, .elements = (int64_t)TABLE_ROWS * TABLE_WIDTH};
static const struct optimizer_spec sgd = {.type = OPTIMIZER_SGD, .learning_rate = 0.01};
static char host[32];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---------------------------------------------------------------- a raw stream */

static void drain(int descriptor)
{
    static char block[1 << 20];
    size_t got = 0;
    for (ssize_t n; (n = read(descriptor, block, sizeof block)) > 0;)
        if ((got += (size_t)n) >= BYTES)
            break;
}

static void pour(int descriptor, const char *bytes)
{
    for (size_t sent = 0; sent < BYTES;) {
        ssize_t n = write(descriptor, bytes + sent, BYTES - sent);
        if (n <= 0)
            exit(1);
        sent += (size_t)n;
    }
}

/* Memory of its own, in large pages as the worker's tensors: what was never written would be the kernel's one page of zeros, always
 * cached. */
static char *layer_of_bytes(void)
{
    char *bytes = aligned_alloc(LARGE_PAGE, BYTES);
    if (bytes == NULL)
        exit(1);
    madvise(bytes, BYTES, MADV_HUGEPAGE);
    memset(bytes, 1, BYTES);
    return bytes;
}

/* The child sends a layer and takes one, as a server does; the same bytes, read and forgotten. */
static double measure_raw(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, host, &address.sin_addr);
    if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        exit(1);
    char *bytes = layer_of_bytes();
    pid_t child = fork();
    if (child == 0) {
        int peer = accept(listener, NULL, NULL);
        for (;;) {
            pour(peer, bytes);
            drain(peer);
        }
    }
    int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(stream, (struct sockaddr *)&address, size) < 0)
        exit(1);
    double rates[ROUNDS_MAX];
    int rounds = 0;
    for (int64_t start = clock_monotonic_ns();
         rounds < ROUNDS_MAX && (double)(clock_monotonic_ns() - start) < seconds * 1e9;) {
        int64_t from = clock_monotonic_ns();
        drain(stream);
        pour(stream, bytes);
        rates[rounds++] = 2.0 * (double)BYTES / (double)(clock_monotonic_ns() - from);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(stream);
    close(listener);
    free(bytes);
    qsort(rates, (size_t)rounds, sizeof *rates, compare);
    return rates[rounds / 2];
}

/* ---------------------------------------------------------------- a server and a worker */

static int load(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    (void)context, (void)checkpoint, (void)variables, (void)error;
    return 0;
}

static void serve(const struct parameter_layout *layout, const struct crew_seat *seat, int ready)
{
    struct device *device;
    struct placement placement;
    struct ps_server *server;
    placement_init(&placement, layout, 1);
    if (device_open(&(struct device_options){.threads = 1}, &device, NULL) < 0)
        _exit(1);
    const struct ps_server_options options = {
        .job_uid = "bench",
        .listen_address = seat->host,
        .variables = {.device = device, .optimizer = &sgd, .placement = &placement},
        .load = load,
    };
    if (ps_server_start(&options, &server, NULL) < 0)
        _exit(1);
    uint16_t port = ps_server_port(server);
    if (write(ready, &port, sizeof port) != sizeof port)
        _exit(1);
    ps_server_wait(server, NULL);
    _exit(0);
}

static struct servers_link *links;
static atomic_bool linked;

static void tick(void *context)
{
    (void)context;
    if (atomic_load(&linked))
        servers_link_tick(links);
}

static void wake(void *context)
{
    rpc_wake(*(struct rpc **)context);
}

/* A server without its chief answers no call, so the chief must exist during the measurement. */
static struct dispatcher *lead(struct crew_seat *seats, unsigned count)
{
    struct dispatcher *dispatcher;
    struct server_standing standing[PS_SERVERS_MAX] = {0};
    struct server_start starts[PS_SERVERS_MAX] = {{.needed = true, .path = ""}, {.needed = true, .path = ""}};
    struct dispatcher_plan plan = {.starts = starts};
    int64_t lost;
    const struct dispatcher_options options = {.job_uid = "bench",
                                               .listen_address = host,
                                               .servers = seats,
                                               .server_count = count,
                                               .scheduler = {.tickets_per_step = 1, .end = 1000000}};
    if (dispatcher_start(&options, &dispatcher, NULL) < 0 || dispatcher_await_servers(dispatcher, standing, NULL) < 0 ||
        dispatcher_begin(dispatcher, &plan, &lost, NULL) < 0)
        exit(1);
    return dispatcher;
}

/* One kind of exchange: what is pulled and pushed, and how. */
struct kind {
    const struct parameter_layout *layout;
    const struct row_set *rows; /* NULL: all, and the values come with the acknowledgement */
    bool share;
    bool asks; /* for the values, as Synchronous and BoundedStaleness do: also where all are pulled */
};

static int push_and_pull(const struct kind *kind, int64_t ticket)
{
    bool outdated;
    uint64_t nonces[PS_SERVERS_MAX];
    const struct servers_push push = {
        .ticket = ticket, .rate = 0.01, .scale = 1, .pull = kind->rows == NULL && !kind->asks, .rows = kind->rows};
    if (servers_link_push(links, &push, &outdated, nonces, NULL) < 0)
        return -1;
    return push.pull ? 0 : servers_link_pull(links, kind->rows, NULL);
}

/* Median nanoseconds of an exchange; *ret_bytes: of tensors in one. */
static double exchange(struct rpc *rpc, struct address_book *book, struct crew_seat *seat,
                       const struct placement *placement, const struct kind *kind, const char **ret_way,
                       double *ret_bytes)
{
    static unsigned index;
    const struct servers_link_options options = {.rpc = rpc,
                                                 .book = book,
                                                 .servers = seat,
                                                 .placement = placement,
                                                 .elements = kind->layout->elements,
                                                 .job_uid = "bench",
                                                 .index = index++,
                                                 .share_memory = kind->share};
    static int64_t ticket;
    double times[ROUNDS_MAX];
    int rounds = 0;
    if (servers_link_new(&options, &links, NULL) < 0)
        exit(1);
    atomic_store(&linked, true);
    memset(servers_link_gradients(links), 0, (size_t)kind->layout->elements * sizeof(float));
    for (int64_t start = clock_monotonic_ns();
         rounds < ROUNDS_MAX && (double)(clock_monotonic_ns() - start) < seconds * 1e9;) {
        int64_t from = clock_monotonic_ns();
        if (push_and_pull(kind, ticket++) < 0)
            exit(1);
        times[rounds++] = (double)(clock_monotonic_ns() - from);
    }
    struct servers_traffic traffic = servers_link_traffic(links);
    *ret_way = traffic.shared ? "shared memory" : traffic.on_connection ? "TCP" : "gRPC";
    *ret_bytes = (double)(traffic.shared + traffic.on_connection + traffic.streamed) / rounds;
    atomic_store(&linked, false);
    qsort(times, (size_t)rounds, sizeof *times, compare);
    return times[rounds / 2];
}

/* A server of that layout in a process of its own: all are there before this process has threads. */
struct lone_server {
    const struct parameter_layout *layout;
    struct crew_seat seat;
    pid_t process;
};

static void start_lone(struct lone_server *server, const struct parameter_layout *layout)
{
    int pipes[2];
    *server = (struct lone_server){.layout = layout, .seat = {.role = "ps", .host = host}};
    if (pipe(pipes) < 0)
        exit(1);
    server->process = fork();
    if (server->process == 0)
        serve(layout, &server->seat, pipes[1]);
    if (read(pipes[0], &server->seat.port, sizeof server->seat.port) != sizeof server->seat.port)
        exit(1);
}

/* Runs a measurement against the server. */
typedef void measurement(struct rpc *rpc, struct address_book *book, struct crew_seat *seat,
                         const struct placement *placement);

static void measure_against(struct lone_server *server, measurement *measure)
{
    struct placement placement;
    struct rpc *rpc;
    struct address_book *book;
    struct dispatcher *dispatcher = lead(&server->seat, 1);
    placement_init(&placement, server->layout, 1);
    if (rpc_new(tick, NULL, 100, &rpc, NULL) < 0 || address_book_new(&server->seat, 1, wake, &rpc, &book, NULL) < 0)
        exit(1);
    rpc_start_ticks(rpc);
    measure(rpc, book, &server->seat, &placement);
    rpc_stop(rpc);
    dispatcher_free(dispatcher);
    kill(server->process, SIGKILL);
    waitpid(server->process, NULL, 0);
}

static void measure_layer(struct rpc *rpc, struct address_book *book, struct crew_seat *seat,
                          const struct placement *placement)
{
    for (int way_and_kind = 0; way_and_kind < 4; way_and_kind++) {
        const char *way;
        double bytes;
        const struct kind kind = {.layout = &layer, .share = way_and_kind >= 2, .asks = way_and_kind % 2};
        double before = measure_raw(); /* a machine's rate changes from second to second */
        double rate = 2.0 * (double)BYTES / exchange(rpc, book, seat, placement, &kind, &way, &bytes);
        double raw = (before + measure_raw()) / 2;
        printf("ps 67 MB layer, %-16s %-13s %6.2f GB/s, %3.0f %% of a raw loopback stream (%.2f GB/s)\n",
               kind.asks ? "push, then pull," : "push + pull,", way, rate, 100 * rate / raw, raw);
        fflush(stdout);
    }
}

/* The rows that drawn tokens name, each once. */
static void draw_rows(const struct placement *placement, struct row_set *rows)
{
    static bool marked[TABLE_ROWS];
    unsigned state = 7;
    for (int i = 0; i < TOKENS; i++) {
        state = state * 1664525u + 1013904223u;
        marked[(state >> 8) % TABLE_ROWS] = true;
    }
    placement_choose_rows(placement, &table, marked, rows);
}

static void measure_table(struct rpc *rpc, struct address_book *book, struct crew_seat *seat,
                          const struct placement *placement)
{
    static struct row_set rows; /* outlives the link */
    draw_rows(placement, &rows);
    for (int share = 0; share < 2; share++) {
        const char *way;
        double bytes[2], times[2];
        for (int listed = 0; listed < 2; listed++) {
            const struct kind kind = {.layout = &embedding, .rows = listed ? &rows : NULL, .share = share};
            times[listed] = exchange(rpc, book, seat, placement, &kind, &way, &bytes[listed]);
        }
        bytes[1] += 2.0 * rows.count * sizeof(uint32_t); /* the lists */
        printf("ps table of 50,000 x 64, 2,000 tokens, push + pull, %-13s %u rows: %.0f bytes, %.2f ms; "
               "all: %.0f bytes, %.2f ms (%.1f times the bytes, %.1f times as long)\n",
               way, rows.count, bytes[1], times[1] / 1e6, bytes[0], times[0] / 1e6, bytes[0] / bytes[1],
               times[0] / times[1]);
        fflush(stdout);
    }
}

/* ---------------------------------------------------------------- the real worker */

#define MEMBERS 3

static void start_member(const char *job, int network, int index, int output)
{
    char text[512], program[4096];
    snprintf(text, sizeof text,
             "{\"cluster\":{\"worker\":[\"127.79.%d.1:2222\",\"127.79.%d.2:2222\"],\"ps\":[\"127.79.%d.3:2222\"]},"
             "\"task\":{\"type\":\"%s\",\"index\":%d}}",
             network, network, network, index < 2 ? "worker" : "ps", index < 2 ? index : 0);
    setenv("TF_CONFIG", text, 1);
    snprintf(program, sizeof program, "%s/coxswain-worker", getenv("BUILD") ? getenv("BUILD") : "build");
    dup2(output, STDOUT_FILENO);
    execl(program, program, "--job", job, "--threads", "1", "--log-format", "json", (char *)NULL);
    _exit(127);
}

struct pace {
    double examples, wall_seconds, processor_seconds;
};

static double processor_seconds(const pid_t *members)
{
    double total = 0;
    for (int i = 0; i < MEMBERS; i++) {
        clockid_t clock;
        struct timespec spent;
        if (clock_getcpuclockid(members[i], &clock) == 0 && clock_gettime(clock, &spent) == 0)
            total += (double)spent.tv_sec + (double)spent.tv_nsec * 1e-9;
    }
    return total;
}

static struct pace follow(FILE *lines, const pid_t *members)
{
    char line[4096];
    double first_step = -1, last_step = 0, processor = 0;
    int64_t begun = 0, from = 0, to = 0;
    while (fgets(line, sizeof line, lines)) {
        const char *at = strstr(line, "{\"step\":");
        if (at == NULL)
            continue;
        int64_t now = clock_monotonic_ns();
        if (begun == 0)
            begun = now;
        last_step = strtod(at + 8, NULL);
        to = now;
        if (first_step < 0 && now - begun > 500000000) {
            first_step = last_step;
            from = now;
            processor = processor_seconds(members);
        }
        if (first_step >= 0 && last_step > first_step && (double)(now - begun) > seconds * 1e9 + 5e8)
            break;
    }
    if (first_step < 0 || to <= from)
        return (struct pace){0, 1, 1};
    return (struct pace){(last_step - first_step) * 128, (double)(to - from) * 1e-9,
                         processor_seconds(members) - processor};
}

static struct pace measure_worker(const char *mode)
{
    char job[] = "/tmp/bench_ps.XXXXXX";
    int pipes[2], silence = open("/dev/null", O_WRONLY | O_CLOEXEC), file = mkstemp(job);
    pid_t members[MEMBERS];
    if (file < 0 || silence < 0 || pipe2(pipes, O_CLOEXEC) < 0)
        exit(1);
    dprintf(file,
            "model: {preset: mlp}\ndata: {format: Synthetic, examples: 1024}\n"
            "training: {steps: 1000000, batchSize: 128, optimizer: {type: SGD, learningRate: \"0.05\"}, seed: 7}\n"
            "strategy: {type: ParameterServer, mode: %s}\n",
            mode);
    close(file);
    int network = (int)(getpid() % 250);
    for (int i = 0; i < MEMBERS; i++)
        if ((members[i] = fork()) == 0)
            start_member(job, network, i, i == 0 ? pipes[1] : silence);
    close(pipes[1]);
    FILE *lines = fdopen(pipes[0], "r");
    struct pace pace = follow(lines, members);
    for (int i = 0; i < MEMBERS; i++)
        kill(members[i], SIGKILL);
    for (int i = 0; i < MEMBERS; i++)
        waitpid(members[i], NULL, 0);
    fclose(lines);
    close(silence);
    unlink(job);
    return pace;
}

static void report_worker(const char *mode)
{
    struct pace pace = measure_worker(mode);
    printf("ps mlp, 2 workers of 1 thread + 1 ps, batch 64 a worker, %-17s %8.0f examples/s\n", mode,
           pace.examples / pace.wall_seconds);
    fflush(stdout);
}

static void take_turns(void)
{
    char line[64];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        seconds = strncmp(line, "SECONDS ", 8) == 0 ? strtod(line + 8, NULL) : 1;
        struct pace pace = measure_worker("Async");
        printf("%.9g %.9g %.9g\n", pace.examples, pace.wall_seconds, pace.processor_seconds);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--turns") == 0) {
        take_turns();
        return 0;
    }
    if (argc > 1)
        seconds = strtod(argv[1], NULL);
    snprintf(host, sizeof host, "127.80.%d.1", (int)(getpid() % 250));
    struct lone_server of_layer, of_table;
    start_lone(&of_layer, &layer);
    start_lone(&of_table, &embedding);
    measure_against(&of_layer, measure_layer);
    measure_against(&of_table, measure_table);
    report_worker("Async");
    report_worker("BoundedStaleness");
    report_worker("Synchronous");
    _exit(0); /* streams may still hold what they were sending */
}
