/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/parzen.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/memory.h"

#define FULL_WEIGHT_VALUES 25 /* the newest values, which count in full */
#define NARROWEST 100.0       /* a Gaussian is at least this part of the range wide */
#define BISECTIONS 60

struct kernel {
    double center, width;
    double weight;
    double mass; /* the part of the Gaussian that lies in the range */
    size_t age;  /* its place among the values */
};

struct parzen {
    struct parzen_space space;
    struct kernel *kernels; /* of the values by center, then the prior's; NULL: choices */
    size_t kernel_count;
    double *chances; /* of each choice; NULL: a range */
};

/* Value `i` of `count`, before all weights are divided by their sum. */
static double weight_by_age(size_t i, size_t count)
{
    if (count <= FULL_WEIGHT_VALUES || i >= count - FULL_WEIGHT_VALUES)
        return 1;
    size_t faded = count - FULL_WEIGHT_VALUES;
    double least = 1 / (double)count;
    return faded == 1 ? least : least + (1 - least) * (double)i / (double)(faded - 1);
}

static double weight_sum(size_t count)
{
    double sum = 1; /* the prior */
    for (size_t i = 0; i < count; i++)
        sum += weight_by_age(i, count);
    return sum;
}

/* ---------------------------------------------------------------- choices */

static void fill_chances(struct parzen *parzen, const double *values, size_t count)
{
    size_t choices = parzen->space.choices;
    double sum = weight_sum(count), elsewhere = 1 / (double)(count + 1);
    double whole = 1 + elsewhere * (double)choices;
    parzen->chances = memory_allocate(choices, sizeof *parzen->chances);
    double everywhere = (sum - 1) / sum * elsewhere / whole + 1 / sum / (double)choices;
    for (size_t i = 0; i < choices; i++)
        parzen->chances[i] = everywhere;
    for (size_t i = 0; i < count; i++)
        parzen->chances[(size_t)values[i]] += weight_by_age(i, count) / sum / whole;
}

static double draw_choice(const struct parzen *parzen, double drawn)
{
    size_t choice = 0;
    for (; choice + 1 < parzen->space.choices && drawn >= parzen->chances[choice]; choice++)
        drawn -= parzen->chances[choice];
    return (double)choice;
}

/* ---------------------------------------------------------------- Gaussians */

static double normal_below(double distance)
{
    return erfc(-distance * M_SQRT1_2) / 2;
}

static double lower_end(const struct parzen *parzen)
{
    return parzen->space.low - parzen->space.step / 2;
}

static double upper_end(const struct parzen *parzen)
{
    return parzen->space.high + parzen->space.step / 2;
}

/* The part of a Gaussian that lies between two numbers. */
static double mass_between(const struct kernel *kernel, double from, double to)
{
    return normal_below((to - kernel->center) / kernel->width) - normal_below((from - kernel->center) / kernel->width);
}

static int by_center(const void *one, const void *other)
{
    const struct kernel *a = one, *b = other;
    if (a->center != b->center)
        return a->center < b->center ? -1 : 1;
    return (a->age > b->age) - (a->age < b->age);
}

/* The distance of value `i` of `count` to the farther neighbour. Outermost values have one only; a lone one has the ends of the
 * range. */
static double distance_of(const struct parzen *parzen, size_t i, size_t count)
{
    const struct kernel *kernels = parzen->kernels;
    bool first = i == 0, last = i + 1 == count;
    double below = kernels[i].center - (first ? lower_end(parzen) : kernels[i - 1].center);
    double above = (last ? upper_end(parzen) : kernels[i + 1].center) - kernels[i].center;
    if (first && !last)
        return above;
    if (last && !first)
        return below;
    return fmax(below, above);
}

static void fill_kernels(struct parzen *parzen, const double *values, size_t count)
{
    const struct parzen_space *space = &parzen->space;
    double range = upper_end(parzen) - lower_end(parzen), sum = weight_sum(count);
    parzen->kernel_count = count + 1;
    parzen->kernels = memory_allocate(count + 1, sizeof *parzen->kernels);
    for (size_t i = 0; i < count; i++)
        parzen->kernels[i] = (struct kernel){.center = values[i], .weight = weight_by_age(i, count) / sum, .age = i};
    qsort(parzen->kernels, count, sizeof *parzen->kernels, by_center);
    double narrowest = range / fmin(NARROWEST, (double)count + 2);
    for (size_t i = 0; i < count; i++)
        parzen->kernels[i].width = fmin(fmax(distance_of(parzen, i, count), narrowest), range);
    parzen->kernels[count] =
        (struct kernel){.center = (space->low + space->high) / 2, .width = range, .weight = 1 / sum};
    for (size_t i = 0; i <= count; i++)
        parzen->kernels[i].mass = mass_between(&parzen->kernels[i], lower_end(parzen), upper_end(parzen));
}

/* The number below which `place` of what a kernel has in the range lies. */
static double place_in(const struct parzen *parzen, const struct kernel *kernel, double place)
{
    double from = lower_end(parzen), to = upper_end(parzen), wanted = place * kernel->mass;
    double low = from, high = to;
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        if (mass_between(kernel, from, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double draw_number(const struct parzen *parzen, double drawn, double place)
{
    const struct parzen_space *space = &parzen->space;
    size_t i = 0;
    for (; i + 1 < parzen->kernel_count && drawn >= parzen->kernels[i].weight; i++)
        drawn -= parzen->kernels[i].weight;
    double number = place_in(parzen, &parzen->kernels[i], place);
    return fmin(fmax(space->step > 0 ? floor(number + 0.5) : number, space->low), space->high);
}

static double density(const struct parzen *parzen, double value)
{
    double sum = 0, half = parzen->space.step / 2;
    for (size_t i = 0; i < parzen->kernel_count; i++) {
        const struct kernel *kernel = &parzen->kernels[i];
        double distance = (value - kernel->center) / kernel->width;
        double there = half > 0 ? mass_between(kernel, value - half, value + half)
                                : exp(-distance * distance / 2) / (kernel->width * sqrt(2 * M_PI));
        sum += kernel->weight * there / kernel->mass;
    }
    return sum;
}

/* ---------------------------------------------------------------- both */

struct parzen *parzen_new(const struct parzen_space *space, const double *values, size_t count)
{
    struct parzen *parzen = memory_allocate(1, sizeof *parzen);
    parzen->space = *space;
    if (space->choices > 0)
        fill_chances(parzen, values, count);
    else
        fill_kernels(parzen, values, count);
    return parzen;
}

void parzen_free(struct parzen *parzen)
{
    free(parzen->kernels);
    free(parzen->chances);
    free(parzen);
}

double parzen_draw(const struct parzen *parzen, double kernel, double place)
{
    return parzen->chances ? draw_choice(parzen, kernel) : draw_number(parzen, kernel, place);
}

double parzen_log_density(const struct parzen *parzen, double value)
{
    return log(parzen->chances ? parzen->chances[(size_t)value] : density(parzen, value));
}
