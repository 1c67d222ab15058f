/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the real coxswain-worker on files of noise, with one thread a process:
 * examples per second alone and in a MultiWorkerMirrored crew of two, from the step
 * lines; the time from exec to the first step line; and the private memory then.
 *
 *     bench_crew [seconds a measurement, default 4]
 *     bench_crew --turns MODEL [--apart]    a crew of two, with the protocol of tests/bench/peers/turns.py; apart: without shared
 *                                           memory, as on two nodes (needs the right to mount)
 *
 * The worker is in $BUILD. Rates are the mean of the steps after the first tenth, between the arrivals of the chief's step lines.
 * With --turns, an answer ends with the processor seconds of both workers and the larger peak of resident memory.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/bench/process_status.h"

#define CREW_MAX 2

static double seconds = 4;
static bool apart;

enum data { DATA_IMAGES, DATA_PICTURES, DATA_TEXT };

/* bench_train's and tests/bench/peers' works. */
struct work {
    const char *name, *model, *optimizer;
    enum data data;
    int batch, units; /* of an example */
};

#define SGD "SGD, learningRate: \"0.05\""
#define ADAMW "AdamW, learningRate: \"3e-4\""
static const struct work works[] = {
    {"mlp", "preset: mlp", SGD, DATA_IMAGES, 128, 1},
    {"lenet", "preset: lenet", SGD, DATA_IMAGES, 128, 1},
    {"resnet20", "preset: resnet20", SGD, DATA_PICTURES, 64, 1},
    {"gpt-bytes", "preset: gpt-bytes, depth: 4, width: 128, heads: 4, context: 256", ADAMW, DATA_TEXT, 16, 256},
    {"gpt-6x384", "preset: gpt-bytes, depth: 6, width: 384, heads: 6, context: 256", ADAMW, DATA_TEXT, 4, 256},
};

struct run {
    const struct work *work;
    int size;
    pid_t workers[CREW_MAX];
    double first_step_seconds; /* since exec */
    long anonymous_kilobytes;  /* of the chief after its first step line */
    double units, wall_seconds, processor_seconds;
    long peak_kilobytes; /* resident, of the larger process */
};

#define IMAGES 1024
#define PIXELS (28 * 28)
#define PICTURE_BYTES (1 + 32 * 32 * 3)

static char images_path[64], labels_path[64], pictures_path[64], text_path[64];

/* Noise, or classes, or pictures of one class each behind a class. */
static void write_file(const char *path, const unsigned char *header, size_t header_bytes, size_t data_bytes,
                       size_t class_every)
{
    unsigned char *data = calloc(data_bytes, 1);
    FILE *file = fopen(path, "wb");
    if (!file || !data)
        exit(1);
    for (size_t i = 0; i < data_bytes; i++)
        data[i] = (unsigned char)(class_every && i % class_every == 0 ? (int)(i / class_every % 10) : rand());
    fwrite(header, 1, header_bytes, file);
    fwrite(data, 1, data_bytes, file);
    fclose(file);
    free(data);
}

/* Writes files, because the synthetic format would be generated during the measurement. */
static void write_data(void)
{
    static const unsigned char images[] = {0, 0, 8, 3, 0, 0, IMAGES >> 8, IMAGES & 255, 0, 0, 0, 28, 0, 0, 0, 28};
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, IMAGES >> 8, IMAGES & 255};
    int process = (int)getpid();
    snprintf(images_path, sizeof images_path, "/tmp/bench_crew.%d.images", process);
    snprintf(labels_path, sizeof labels_path, "/tmp/bench_crew.%d.labels", process);
    snprintf(pictures_path, sizeof pictures_path, "/tmp/bench_crew.%d.pictures", process);
    snprintf(text_path, sizeof text_path, "/tmp/bench_crew.%d.text", process);
    write_file(images_path, images, sizeof images, (size_t)IMAGES * PIXELS, 0);
    write_file(labels_path, labels, sizeof labels, IMAGES, 1);
    write_file(pictures_path, NULL, 0, (size_t)IMAGES * PICTURE_BYTES, PICTURE_BYTES);
    write_file(text_path, NULL, 0, 1 << 20, 0);
}

static void remove_data(void)
{
    unlink(images_path);
    unlink(labels_path);
    unlink(pictures_path);
    unlink(text_path);
}

static void write_job(const char *path, const struct run *run)
{
    char data[256];
    if (run->work->data == DATA_IMAGES)
        snprintf(data, sizeof data, "format: IDX, train: {images: %s, labels: %s}", images_path, labels_path);
    else if (run->work->data == DATA_PICTURES)
        snprintf(data, sizeof data, "format: CIFAR10, train: {files: %s}", pictures_path);
    else
        snprintf(data, sizeof data, "format: Bytes, train: {text: %s}", text_path);
    FILE *file = fopen(path, "w");
    if (!file)
        exit(1);
    fprintf(file,
            "model: {%s}\n"
            "data: {%s}\n"
            "training: {steps: 1000000, batchSize: %d, optimizer: {type: %s}, seed: 7}\n"
            "strategy: {type: %s}\n",
            run->work->model, data, run->work->batch, run->work->optimizer,
            run->size > 1 ? "MultiWorkerMirrored" : "OneDevice");
    fclose(file);
}

/* Loopback addresses of this run's own: two benchmarks at once do not meet. */
static void name_crew(int size, int index)
{
    char text[256];
    int network = (int)(getppid() % 250);
    if (size == 1)
        return;
    snprintf(text, sizeof text,
             "{\"cluster\":{\"worker\":[\"127.78.%d.1:2222\",\"127.78.%d.2:2222\"]},"
             "\"task\":{\"type\":\"worker\",\"index\":%d}}",
             network, network, index);
    setenv("TF_CONFIG", text, 1);
}

/* Memory to share that no other process sees: what the crew exchanges travels over TCP. */
static void leave_shared_memory(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, NULL) < 0) {
        perror("bench_crew --apart");
        _exit(1);
    }
}

static pid_t start_worker(const char *job, const struct run *run, int index, int output)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    char program[4096];
    snprintf(program, sizeof program, "%s/coxswain-worker", getenv("BUILD") ? getenv("BUILD") : "build");
    name_crew(run->size, index);
    if (apart)
        leave_shared_memory();
    dup2(output, STDOUT_FILENO);
    execl(program, program, "--job", job, "--threads", "1", "--log-format", "json", (char *)NULL);
    perror(program);
    _exit(127);
}

/* The number behind "key": in a step line. */
static double number_in(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? strtod(at + strlen(key), NULL) : -1;
}

static double processor_seconds(const struct run *run)
{
    double total = 0;
    for (int i = 0; i < run->size; i++) {
        clockid_t clock;
        struct timespec spent;
        if (clock_getcpuclockid(run->workers[i], &clock) == 0 && clock_gettime(clock, &spent) == 0)
            total += (double)spent.tv_sec + (double)spent.tv_nsec * 1e-9;
    }
    return total;
}

static void take_peaks(struct run *run)
{
    for (int i = 0; i < run->size; i++) {
        long peak = process_status_kb(run->workers[i], "VmHWM:");
        run->peak_kilobytes = peak > run->peak_kilobytes ? peak : run->peak_kilobytes;
    }
}

/* Steps are counted between the first line after a tenth of the time and the first line behind its end. */
static void follow(FILE *lines, int64_t start, struct run *run)
{
    char line[4096];
    double from_step = -1, to_step = 0, from_processor = 0;
    int64_t from = 0, to = 0, first = 0;
    while (fgets(line, sizeof line, lines)) {
        double step = number_in(line, "{\"step\":");
        if (step < 0)
            continue;
        int64_t now = clock_monotonic_ns();
        if (first == 0) {
            first = now;
            run->anonymous_kilobytes = process_status_kb(run->workers[0], "RssAnon:");
        }
        if (from_step < 0 && (double)(now - first) * 1e-9 > seconds / 10) {
            from_step = step;
            from = now;
            from_processor = processor_seconds(run);
        }
        to_step = step;
        to = now;
        if (from_step >= 0 && to_step > from_step && (double)(now - first) * 1e-9 > seconds * 1.1)
            break;
    }
    if (to_step <= from_step || from_step < 0) {
        fprintf(stderr, "bench_crew: the worker gave no step lines\n");
        exit(1);
    }
    run->processor_seconds = processor_seconds(run) - from_processor;
    take_peaks(run);
    run->first_step_seconds = (double)(first - start) * 1e-9;
    run->units = (to_step - from_step) * run->work->batch * run->work->units;
    run->wall_seconds = (double)(to - from) * 1e-9;
}

static void measure(struct run *run)
{
    char job[] = "/tmp/bench_crew.XXXXXX";
    int pipes[2], silence = open("/dev/null", O_WRONLY | O_CLOEXEC), file = mkstemp(job);
    if (file < 0 || silence < 0 || pipe2(pipes, O_CLOEXEC) < 0)
        exit(1);
    close(file);
    write_job(job, run);
    int64_t start = clock_monotonic_ns();
    for (int i = 0; i < run->size; i++)
        run->workers[i] = start_worker(job, run, i, i == 0 ? pipes[1] : silence);
    close(pipes[1]);
    FILE *lines = fdopen(pipes[0], "r");
    follow(lines, start, run);
    for (int i = 0; i < run->size; i++)
        kill(run->workers[i], SIGKILL);
    for (int i = 0; i < run->size; i++)
        waitpid(run->workers[i], NULL, 0);
    fclose(lines);
    close(silence);
    unlink(job);
}

static void report(struct run *run)
{
    measure(run);
    printf("crew %-6s %d process%s of 1 thread %8.0f examples/s, first step line %.2f s after exec, RssAnon %.1f MB\n",
           run->work->name, run->size, run->size == 1 ? "  " : "es", run->units / run->wall_seconds,
           run->first_step_seconds, (double)run->anonymous_kilobytes / 1024);
    fflush(stdout);
}

/* A fresh crew each turn: it is there in a tenth of a second. */
static void take_turns(const struct work *work)
{
    char line[64];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        struct run run = {.work = work, .size = CREW_MAX};
        seconds = strncmp(line, "SECONDS ", 8) == 0 ? strtod(line + 8, NULL) : 1;
        measure(&run);
        printf("%.9g %.9g %.9g %.1f\n", run.units, run.wall_seconds, run.processor_seconds,
               (double)run.peak_kilobytes / 1024);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    bool turns = argc >= 3 && strcmp(argv[1], "--turns") == 0;
    apart = turns && argc == 4 && strcmp(argv[3], "--apart") == 0;
    if (argc > 1 && !turns)
        seconds = strtod(argv[1], NULL);
    write_data();
    atexit(remove_data);
    for (size_t i = 0; turns && i < sizeof works / sizeof *works; i++)
        if (strcmp(argv[2], works[i].name) == 0)
            take_turns(&works[i]);
    for (size_t i = 0; !turns && i < 2; i++)
        for (int size = 1; size <= CREW_MAX; size++)
            report(&(struct run){.work = &works[i], .size = size});
    return 0;
}
