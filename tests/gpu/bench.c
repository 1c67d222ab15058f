/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu-bench: trains a work (bench_trainee.c) on a GPU like OneDevice: forward, backward, norm, update, the batch's copy from pinned
 * memory, and the report of each step to the host. Reading examples is not measured. It takes turns with other frameworks, as
 * tests/gpu/peers/bench.py decides.
 *
 *     gpu-bench WORK [MICRO [SHARE [graphs|launches|waits|profile]]]
 *
 * MICRO: examples of a pass; 0: as many as fit SHARE (0.9) of the GPU's free memory. It prints `first` when its first step is done,
 * then `ready {…}`, and then, for each line `SECONDS s` that it reads, the units (tokens or images) that it trained on, the seconds,
 * the steps, and the MiB of the GPU's memory in use by all processes.
 * `profile` takes no turns: it prints where a step's time goes (bench_profile.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/gpu/bench_profile.h"
#include "tests/gpu/bench_trainee.h"

#define WARM_UP 6 /* plain launches, then each buffer's capture, and a replay of each */

static void must(int result, const struct error *error)
{
    if (result == 0)
        return;
    fprintf(stderr, "gpu-bench: %s\n", error->message);
    exit(1);
}

static double taken_mebibytes(struct device *device)
{
    struct error error = ERROR_INIT;
    int64_t total, free;
    must(device_memory_room(device, &total, &free, &error), &error);
    return (double)(total - free) / (1 << 20);
}

static void take_steps(struct bench_trainee *trainee, int count)
{
    struct error error = ERROR_INIT;
    for (int i = 0; i < count; i++)
        must(bench_trainee_step(trainee, &error), &error);
    must(bench_trainee_settle(trainee, &error), &error);
}

static void take_turn(struct bench_trainee *trainee, double seconds)
{
    struct error error = ERROR_INIT;
    int64_t steps = 0, start = clock_monotonic_ns();
    for (; steps == 0 || (double)(clock_monotonic_ns() - start) < seconds * 1e9; steps++)
        must(bench_trainee_step(trainee, &error), &error);
    must(bench_trainee_settle(trainee, &error), &error);
    double taken = (double)(clock_monotonic_ns() - start) * 1e-9;
    printf("%lld %.6f %lld %.0f\n", (long long)(steps * bench_trainee_units(trainee)), taken, (long long)steps,
           taken_mebibytes(trainee->device));
    fflush(stdout);
}

static enum device_peak peak_of(const struct bench_work *work)
{
    return work->precision == PRECISION_FLOAT32 ? DEVICE_PEAK_FLOAT32 : DEVICE_PEAK_HALF;
}

static void tell(const struct bench_trainee *trainee)
{
    const struct bench_work *work = &trainee->work;
    printf(
        "ready {\"gpu\": \"%s\", \"batch\": %lld, \"micro\": %lld, \"unit\": \"%s\", \"units\": %lld, \"flops\": %.6g, "
        "\"peak\": %.6g}\n",
        device_description(trainee->device), (long long)work->batch, (long long)trainee->micro,
        trainee->dataset.format.input_type == ELEMENT_INT32 ? "tokens" : "images",
        (long long)bench_trainee_units(trainee), graph_flops_per_example(trainee->graph) * (double)work->batch,
        device_peak_flops(trainee->device, peak_of(work)));
    fflush(stdout);
}

static void train(const struct bench_work *work, struct device *device, int64_t micro, double share,
                  enum bench_pace pace)
{
    struct bench_trainee trainee;
    struct error error = ERROR_INIT;
    char line[64];
    must(bench_trainee_open(&trainee, work, device, micro, share, pace, &error), &error);
    take_steps(&trainee, 1);
    puts("first");
    fflush(stdout);
    take_steps(&trainee, WARM_UP);
    tell(&trainee);
    while (fgets(line, sizeof line, stdin) != NULL)
        if (strncmp(line, "SECONDS ", 8) == 0)
            take_turn(&trainee, strtod(line + 8, NULL));
    bench_trainee_close(&trainee);
}

/* ---- where a step's time goes */

#define STEPS 5

static double milliseconds_a_step(const struct bench_work *work, struct device *device, int64_t *micro, double share)
{
    struct bench_trainee trainee;
    struct error error = ERROR_INIT;
    must(bench_trainee_open(&trainee, work, device, *micro, share, BENCH_GRAPHS, &error), &error);
    take_steps(&trainee, WARM_UP);
    int64_t start = clock_monotonic_ns();
    take_steps(&trainee, STEPS);
    double taken = (double)(clock_monotonic_ns() - start) * 1e-6 / STEPS;
    *micro = trainee.micro;
    bench_trainee_close(&trainee);
    return taken;
}

static void profile(const struct bench_work *work, struct device *device, int64_t micro, double share)
{
    struct error error = ERROR_INIT;
    struct bench_trainee trainee;
    double plain = milliseconds_a_step(work, device, &micro, share);
    struct bench_profile *launches = bench_profile_new(device);
    must(bench_trainee_open(&trainee, work, device, micro, share, BENCH_WAITS, &error), &error);
    take_steps(&trainee, 2);
    bench_profile_clear(launches);
    take_steps(&trainee, STEPS);
    printf("%s, %s: passes of %lld examples, %.3f ms a step in CUDA graphs\n", device_description(device), work->name,
           (long long)micro, plain);
    double all = bench_profile_print(launches, STEPS, device_peak_flops(device, peak_of(work)));
    printf("all launches, waited for one by one: %.3f ms a step\n", all);
    bench_trainee_close(&trainee);
    bench_profile_free(launches);
}

static bool read_pace(const char *word, enum bench_pace *ret_pace)
{
    static const char *const words[] = {
        [BENCH_GRAPHS] = "graphs", [BENCH_LAUNCHES] = "launches", [BENCH_WAITS] = "waits"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret_pace = (enum bench_pace)i;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    const struct bench_work *work = argc > 1 ? bench_work_find(argv[1]) : NULL;
    enum bench_pace pace = BENCH_GRAPHS;
    const bool profiles = argc > 4 && strcmp(argv[4], "profile") == 0;
    if (work == NULL || (argc > 4 && !profiles && !read_pace(argv[4], &pace))) {
        fprintf(stderr, "gpu-bench: WORK [MICRO [SHARE [graphs|launches|waits|profile]]], WORK one of "
                        "tests/gpu/bench_trainee.c\n");
        return 2;
    }
    struct device *device = NULL;
    struct error error = ERROR_INIT;
    const int64_t micro = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    const double share = argc > 3 ? strtod(argv[3], NULL) : 0.9;
    must(device_open(&(struct device_options){.type = DEVICE_TYPE_GPU}, &device, &error), &error);
    if (profiles)
        profile(work, device, micro, share);
    else
        train(work, device, micro, share, pace);
    device_close(device);
    return 0;
}
