/* SPDX-License-Identifier: Apache-2.0
 *
 * The real coxswain-worker on IDX files of noise, one thread a process: examples per
 * second alone and in a MultiWorkerMirrored crew of two (global batch 128), from
 * its step lines; from exec to the first step line; memory of its own then.
 *
 *     bench_crew [seconds a measurement, default 4] [--plain]
 *
 * --plain prints "model processes examples/s" only, for tests/bench/peers. $BUILD says where the worker is. Rates are
 * the mean of the steps behind the first tenth, over what the chief says each took.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

#define CREW_MAX 2
#define BATCH 128

static double seconds = 4;

struct run {
    const char *model;
    int size;
    double first_step_seconds; /* since exec */
    long anonymous_kilobytes;  /* of the chief after its first step line */
    double examples_per_second;
};

#define IMAGES 1024
#define PIXELS (28 * 28)

static char images_path[64], labels_path[64];

static void write_idx(const char *path, const unsigned char *header, size_t header_bytes, size_t data_bytes)
{
    unsigned char *data = calloc(data_bytes, 1);
    FILE *file = fopen(path, "wb");
    if (!file || !data)
        exit(1);
    for (size_t i = 0; i < data_bytes; i++)
        data[i] = (unsigned char)(data_bytes > IMAGES ? rand() : (int)(i % 10));
    fwrite(header, 1, header_bytes, file);
    fwrite(data, 1, data_bytes, file);
    fclose(file);
    free(data);
}

/* Files rather than the synthetic format, whose making would be measured with the rest. */
static void write_data(void)
{
    static const unsigned char images[] = {0, 0, 8, 3, 0, 0, IMAGES >> 8, IMAGES & 255, 0, 0, 0, 28, 0, 0, 0, 28};
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, IMAGES >> 8, IMAGES & 255};
    snprintf(images_path, sizeof images_path, "/tmp/bench_crew.%d.images", (int)getpid());
    snprintf(labels_path, sizeof labels_path, "/tmp/bench_crew.%d.labels", (int)getpid());
    write_idx(images_path, images, sizeof images, (size_t)IMAGES * PIXELS);
    write_idx(labels_path, labels, sizeof labels, IMAGES);
}

static void remove_data(void)
{
    unlink(images_path);
    unlink(labels_path);
}

static void write_job(const char *path, const struct run *run)
{
    FILE *file = fopen(path, "w");
    if (!file)
        exit(1);
    fprintf(file,
            "model: {preset: %s}\n"
            "data: {format: idx, train: {images: %s, labels: %s}}\n"
            "training: {steps: 1000000, batchSize: %d, optimizer: {type: sgd, learningRate: \"0.05\"}, seed: 7}\n"
            "strategy: {type: %s}\n",
            run->model, images_path, labels_path, BATCH, run->size > 1 ? "MultiWorkerMirrored" : "OneDevice");
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

static pid_t start_worker(const char *job, const struct run *run, int index, int output)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    char program[4096];
    snprintf(program, sizeof program, "%s/coxswain-worker", getenv("BUILD") ? getenv("BUILD") : "build");
    name_crew(run->size, index);
    dup2(output, STDOUT_FILENO);
    execl(program, program, "--job", job, "--threads", "1", "--log-format", "json", (char *)NULL);
    perror(program);
    _exit(127);
}

static long anonymous_kilobytes(pid_t process)
{
    long kilobytes = -1;
    char line[128], path[64];
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "RssAnon: %ld", &kilobytes);
    if (file)
        fclose(file);
    return kilobytes;
}

/* The number behind "key": in a step line. */
static double number_in(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? strtod(at + strlen(key), NULL) : -1;
}

/* Steps are counted between the first line after a tenth of the time and the last line before its end. */
static void follow(FILE *lines, pid_t chief, int64_t start, struct run *run)
{
    char line[4096];
    double from_step = -1, to_step = 0;
    int64_t from = 0, to = 0, first = 0;
    while (fgets(line, sizeof line, lines)) {
        double step = number_in(line, "{\"step\":");
        if (step < 0)
            continue;
        int64_t now = clock_monotonic_ns();
        if (first == 0) {
            first = now;
            run->anonymous_kilobytes = anonymous_kilobytes(chief);
        }
        if (from_step < 0 && (double)(now - first) * 1e-9 > seconds / 10) {
            from_step = step;
            from = now;
        }
        to_step = step;
        to = now;
        if ((double)(now - first) * 1e-9 > seconds * 1.1)
            break;
    }
    if (to_step <= from_step || from_step < 0) {
        fprintf(stderr, "bench_crew: the worker gave no step lines\n");
        exit(1);
    }
    run->first_step_seconds = (double)(first - start) * 1e-9;
    run->examples_per_second = (to_step - from_step) * BATCH / ((double)(to - from) * 1e-9);
}

static void measure(struct run *run)
{
    char job[] = "/tmp/bench_crew.XXXXXX";
    int pipes[2], silence = open("/dev/null", O_WRONLY | O_CLOEXEC), file = mkstemp(job);
    pid_t workers[CREW_MAX];
    if (file < 0 || silence < 0 || pipe2(pipes, O_CLOEXEC) < 0)
        exit(1);
    close(file);
    write_job(job, run);
    int64_t start = clock_monotonic_ns();
    for (int i = 0; i < run->size; i++)
        workers[i] = start_worker(job, run, i, i == 0 ? pipes[1] : silence);
    close(pipes[1]);
    FILE *lines = fdopen(pipes[0], "r");
    follow(lines, workers[0], start, run);
    for (int i = 0; i < run->size; i++)
        kill(workers[i], SIGKILL);
    for (int i = 0; i < run->size; i++)
        waitpid(workers[i], NULL, 0);
    fclose(lines);
    close(silence);
    unlink(job);
}

static void report(struct run *run, bool plain)
{
    measure(run);
    if (plain)
        printf("%s %d %.0f\n", run->model, run->size, run->examples_per_second);
    else
        printf(
            "crew %-6s %d process%s of 1 thread %8.0f examples/s, first step line %.2f s after exec, RssAnon %.1f MB\n",
            run->model, run->size, run->size == 1 ? "  " : "es", run->examples_per_second, run->first_step_seconds,
            (double)run->anonymous_kilobytes / 1024);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct run runs[] = {{.model = "mlp", .size = 1},
                                {.model = "mlp", .size = 2},
                                {.model = "lenet", .size = 1},
                                {.model = "lenet", .size = 2}};
    bool plain = argc > 1 && strcmp(argv[argc - 1], "--plain") == 0;
    if (argc > 1 + plain)
        seconds = strtod(argv[1], NULL);
    write_data();
    atexit(remove_data);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        report(&runs[i], plain);
    return 0;
}
