/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cost/cost.h"

#define LINES_MAX 512
#define NEAR 0.2

bool cost_line_read(FILE *file, struct cost_line *ret_line)
{
    char text[256];
    struct cost_line line = {.collective.per_node = 1};
    while (fgets(text, sizeof(text), file))
        if (sscanf(text, "%15s %u processes %lf bytes %*f us (best %lf)", line.name, &line.collective.ranks,
                   &line.collective.bytes, &line.seconds) == 4 &&
            cost_algorithm_find(line.name, &line.collective.algorithm)) {
            line.seconds *= 1e-6;
            *ret_line = line;
            return true;
        }
    return false;
}

/* ---------------------------------------------------------------- parameters */

static const struct {
    const char *name;
    size_t at;
} parameters[] = {
    {"wake", offsetof(struct cost_software, wake)},
    {"message", offsetof(struct cost_software, message)},
    {"byte", offsetof(struct cost_software, byte)},
    {"add", offsetof(struct cost_software, add)},
    {"near-wake", offsetof(struct cost_software, near_wake)},
    {"near-byte", offsetof(struct cost_software, near_byte)},
    {"processor-flops", offsetof(struct cost_software, processor_flops)},
    {"gpu-flops", offsetof(struct cost_software, gpu_flops)},
    {"jitter", offsetof(struct cost_software, jitter)},
};
#define PARAMETERS (sizeof(parameters) / sizeof(*parameters))
#define FITTED 4 /* the first of them */

static double *parameter(const struct cost_software *software, size_t index)
{
    return (double *)((char *)software + parameters[index].at);
}

int cost_software_read(const char *path, struct cost_software *ret_software)
{
    struct cost_software software = {.wake = -1};
    char line[256], name[32];
    unsigned found = 0;
    double value;
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return -1;
    }
    while (fgets(line, sizeof(line), file))
        for (size_t i = 0; i < PARAMETERS && sscanf(line, "%31s %lf", name, &value) == 2; i++)
            if (strcmp(name, parameters[i].name) == 0) {
                *parameter(&software, i) = value;
                found++;
            }
    fclose(file);
    if (found != PARAMETERS) {
        fprintf(stderr, "cost_model: %s has %u of %zu parameters\n", path, found, PARAMETERS);
        return -1;
    }
    *ret_software = software;
    return 0;
}

void cost_software_print(const struct cost_software *software)
{
    for (size_t i = 0; i < PARAMETERS; i++)
        printf("%-16s %.3g\n", parameters[i].name, *parameter(software, i));
}

/* ---------------------------------------------------------------- fitting */

struct measurements {
    struct cost_line lines[LINES_MAX];
    size_t count;
    double processors;
};

static struct cost_network loopback(const struct measurements *measured, unsigned ranks)
{
    return (struct cost_network){.processors = measured->processors / ranks};
}

/* Mean of the relative errors as logarithms, so that twice and half weigh the same. Not their squares: on a busy machine
 * single lines are far off. */
static double misfit(const struct measurements *measured, const struct cost_software *software)
{
    double sum = 0;
    for (size_t i = 0; i < measured->count; i++) {
        struct cost_network network = loopback(measured, measured->lines[i].collective.ranks);
        sum +=
            fabs(log(cost_all_reduce(software, &network, &measured->lines[i].collective) / measured->lines[i].seconds));
    }
    return sum / (double)measured->count;
}

/* Each parameter in turn a little up or down while that helps, by ever smaller factors. */
static double improve(const struct measurements *measured, struct cost_software *software)
{
    double best = misfit(measured, software);
    for (double factor = 4; factor > 1.01; factor = sqrt(factor)) {
        for (bool better = true; better;) {
            better = false;
            for (size_t i = 0; i < 2 * (size_t)FITTED; i++) {
                struct cost_software tried = *software;
                *parameter(&tried, i / 2) *= i % 2 ? factor : 1 / factor;
                double now = misfit(measured, &tried);
                if (now < best * (1 - 1e-6)) {
                    best = now;
                    *software = tried;
                    better = true;
                }
            }
        }
    }
    return best;
}

/* Keeps the fastest of several lines about the same measurement. */
static void add_line(struct measurements *measured, const struct cost_line *line)
{
    for (size_t i = 0; i < measured->count; i++) {
        struct cost_line *known = &measured->lines[i];
        if (known->collective.ranks == line->collective.ranks && known->collective.bytes == line->collective.bytes &&
            strcmp(known->name, line->name) == 0) {
            if (line->seconds < known->seconds)
                *known = *line;
            return;
        }
    }
    if (measured->count < LINES_MAX)
        measured->lines[measured->count++] = *line;
}

int cost_fit(FILE *file, double processors, const struct cost_software *start)
{
    static struct measurements measured;
    struct cost_software software = *start;
    measured.processors = processors;
    for (struct cost_line line; cost_line_read(file, &line);)
        add_line(&measured, &line);
    if (measured.count == 0) {
        fprintf(stderr, "cost_model: no lines of bench_allreduce --crew\n");
        return 1;
    }
    double error = improve(&measured, &software);
    cost_software_print(&software);
    printf("# %zu measurements on %g processors; off by a factor of %.2f in the mean\n", measured.count, processors,
           exp(error));
    return 0;
}

/* ---------------------------------------------------------------- holding it against measurements */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct verdict {
    double errors[LINES_MAX];
    size_t count, near;
};

static void judge(struct verdict *verdict, double measured, double predicted)
{
    double error = predicted / measured - 1;
    printf(" %14.2f %14.2f %+7.0f%%\n", measured * 1e3, predicted * 1e3, error * 100);
    if (verdict->count < LINES_MAX)
        verdict->errors[verdict->count++] = fabs(error);
    verdict->near += fabs(error) <= NEAR;
}

/* Fails when less than half are near. */
static int conclude(struct verdict *verdict)
{
    if (verdict->count == 0)
        return 1;
    qsort(verdict->errors, verdict->count, sizeof(*verdict->errors), compare);
    double middle = verdict->errors[verdict->count / 2];
    printf("%zu of %zu within %.0f %%; error in the middle %.0f %%, at most %.0f %%\n", verdict->near, verdict->count,
           NEAR * 100, middle * 100, verdict->errors[verdict->count - 1] * 100);
    return middle > NEAR;
}

int cost_check(FILE *file, const struct cost_software *software, const struct cost_network *network, double processors)
{
    struct verdict verdict = {.count = 0};
    struct cost_line line;
    printf("%-10s %5s %9s %14s %14s %8s\n", "algorithm", "ranks", "bytes", "measured, ms", "predicted, ms", "error");
    while (cost_line_read(file, &line)) {
        struct cost_network here = *network;
        here.processors = processors / line.collective.ranks;
        printf("%-10s %5u %9.0f", line.name, line.collective.ranks, line.collective.bytes);
        judge(&verdict, line.seconds, cost_all_reduce(software, &here, &line.collective));
    }
    return conclude(&verdict);
}

int cost_check_steps(FILE *file, const struct cost_crew *crew)
{
    struct verdict verdict = {.count = 0};
    char text[256], name[48];
    double seconds;
    struct cost_crew here = *crew;
    printf("%-30s %7s %14s %14s %8s\n", "strategy", "workers", "measured, ms", "predicted, ms", "error");
    while (fgets(text, sizeof(text), file)) {
        if (sscanf(text, "step|%47[^|]|%u|%lf|%lf", name, &here.workers, &seconds, &here.computation) != 4)
            continue;
        for (size_t i = 0; i < cost_strategy_count; i++)
            if (strcmp(cost_strategies[i].name, name) == 0) {
                printf("%-30s %7u", name, here.workers);
                judge(&verdict, seconds, cost_strategies[i].step(&here));
            }
    }
    return conclude(&verdict);
}
