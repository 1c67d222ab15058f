/* SPDX-License-Identifier: Apache-2.0
 *
 * What it is worth that a crew sums its gradients while the backward pass goes on: two real workers over a loopback that
 * is slow (a token bucket, tc, in a network namespace of the benchmark's own), in turns with COXSWAIN_OVERLAP 1 and 0.
 *
 *     bench_overlap [rounds, default 3]
 *
 * $BUILD says where the worker is. The link is as slow as makes the sums of a step take about as long as its computation.
 * Prints the medians of both and their ratio; says what this machine lacks where it cannot.
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
#include <unistd.h>

#include "common/clock.h"

#define CREW 2
#define ROUNDS_MAX 25
#define STEPS_SKIPPED 5
#define STEPS_MEASURED 15
#define UNITS 512
#define LAYERS 8
#define BATCH 1024
#define BYTES (4.0 * (784 * UNITS + (LAYERS - 1) * UNITS * UNITS)) /* of gradients, about */

static char job_path[] = "/tmp/bench_overlap.XXXXXX";

static void write_job(void)
{
    int file = mkstemp(job_path);
    FILE *job = file < 0 ? NULL : fdopen(file, "w");
    if (job == NULL)
        exit(1);
    fprintf(job, "model: {inputShape: [28, 28, 1], layers: [{type: Flatten}");
    for (int i = 0; i < LAYERS; i++)
        fprintf(job, ", {type: Dense, units: %d}, {type: ReLU}", UNITS);
    fprintf(job,
            ", {type: Dense, units: 10}]}\n"
            "data: {format: Synthetic, examples: 4096}\n"
            "training: {steps: %d, batchSize: %d, optimizer: {type: SGD, learningRate: \"0.01\"}, seed: 7}\n"
            "strategy: {type: MultiWorkerMirrored}\n",
            STEPS_SKIPPED + STEPS_MEASURED + 1, BATCH);
    fclose(job);
}

static void remove_job(void)
{
    unlink(job_path);
}

/* ---------------------------------------------------------------- the network */

static void write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        (void)!write(file, text, strlen(text));
        close(file);
    }
}

/* In namespaces of our own: as root, or as the root of a new user namespace. */
static bool enter_namespaces(void)
{
    char text[64];
    unsigned user = getuid();
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) == 0)
        return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) < 0)
        return false;
    snprintf(text, sizeof text, "0 %u 1", user);
    write_text("/proc/self/uid_map", text);
    return true;
}

/* tc's answer; nothing is said where it cannot. */
static bool set_rate(double megabits)
{
    char command[256];
    snprintf(command, sizeof command,
             "ip link set lo up 2>/dev/null && tc qdisc replace dev lo root tbf rate %.0fkbit burst 128kb limit 64mb "
             "2>/dev/null",
             megabits * 1000);
    return system(command) == 0;
}

/* ---------------------------------------------------------------- a crew */

static pid_t start_worker(int index, const char *overlap, int output)
{
    char text[256], program[4096];
    pid_t child = fork();
    if (child != 0)
        return child;
    snprintf(text, sizeof text,
             "{\"cluster\":{\"worker\":[\"127.0.0.1:2222\",\"127.0.0.2:2222\"]},\"task\":{\"type\":\"worker\","
             "\"index\":%d}}",
             index);
    setenv("TF_CONFIG", text, 1);
    setenv("COXSWAIN_OVERLAP", overlap, 1);
    snprintf(program, sizeof program, "%s/coxswain-worker", getenv("BUILD") ? getenv("BUILD") : "build");
    dup2(output, STDOUT_FILENO);
    /* Memory of its own: what it sends goes over the network. */
    if (unshare(CLONE_NEWNS) == 0 && mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0)
        execl(program, program, "--job", job_path, "--threads", "1", "--log-format", "json", (char *)NULL);
    perror(program);
    _exit(127);
}

/* Seconds a step, by the chief's lines. */
static double follow(FILE *lines)
{
    char line[4096];
    int64_t begin = 0, now = 0;
    int steps = 0;
    while (steps <= STEPS_SKIPPED + STEPS_MEASURED && fgets(line, sizeof line, lines)) {
        const char *at = strstr(line, "{\"step\":");
        if (at == NULL)
            continue;
        now = clock_monotonic_ns();
        steps = (int)strtol(at + 8, NULL, 10);
        if (steps <= STEPS_SKIPPED)
            begin = now;
    }
    if (steps <= STEPS_SKIPPED || begin == 0) {
        fprintf(stderr, "bench_overlap: the worker gave no step lines\n");
        exit(1);
    }
    return (double)(now - begin) * 1e-9 / (steps - STEPS_SKIPPED);
}

static double measure(const char *overlap)
{
    int pipes[2], silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t workers[CREW];
    if (silence < 0 || pipe2(pipes, O_CLOEXEC) < 0)
        exit(1);
    for (int i = 0; i < CREW; i++)
        workers[i] = start_worker(i, overlap, i == 0 ? pipes[1] : silence);
    close(pipes[1]);
    FILE *lines = fdopen(pipes[0], "r");
    double seconds = follow(lines);
    for (int i = 0; i < CREW; i++)
        kill(workers[i], SIGKILL);
    for (int i = 0; i < CREW; i++)
        waitpid(workers[i], NULL, 0);
    fclose(lines);
    close(silence);
    return seconds;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    double with[ROUNDS_MAX], without[ROUNDS_MAX];
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 3;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    if (!enter_namespaces() || !set_rate(40000)) {
        printf("overlap  skipped: this machine has no network namespaces, ip, tc or token bucket for us\n");
        return 0;
    }
    write_job();
    atexit(remove_job);
    /* Both directions share the loopback. The first measurement, on a fast link, is nearly the computation only. */
    double computation = measure("1"), megabits = 2 * BYTES * 8e-6 / computation;
    set_rate(megabits);
    for (int i = 0; i < rounds; i++) {
        with[i] = measure("1");
        without[i] = measure("0");
    }
    double beside = median(with, rounds), behind = median(without, rounds);
    printf("overlap  %.1f MB of gradients, %.0f ms of computation, %.0f Mbit/s: a step of two workers takes %.0f ms "
           "with sums "
           "beside the backward pass, %.0f ms with sums behind it: %.2f times as long\n",
           BYTES * 1e-6, computation * 1e3, megabits, beside * 1e3, behind * 1e3, behind / beside);
    return 0;
}
