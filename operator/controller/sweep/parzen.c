/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/parzen.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"

#define FULL_WEIGHT_TRIALS 25 /* the newest trials, which count in full */
#define NARROWEST 100.0       /* a Gaussian is at least this part of the range wide */
#define STEPS_MAX 60
#define NEAR_ENOUGH 1e-14 /* in widths */

/* The factor of one parameter in one kernel. */
struct factor {
    double center; /* NAN: of choices, all are equal */
    union {
        struct {
            double width;
            double mass;      /* the part of the Gaussian that lies in the range */
            double log_scale; /* the logarithm of what the density at the center is divided by */
        };
        struct {
            double elsewhere; /* the probability of each choice but the center */
            double log_center, log_elsewhere;
        };
    };
};

struct parzen {
    size_t parameters, kernels; /* the last kernel is the prior's */
    struct parzen_space *spaces;
    struct factor *factors; /* [kernel][parameter] */
    double *weights;        /* of the kernels; their sum is 1 */
    double *log_weights;
};

/* Trial `i` of `count`, before all weights are divided by their sum. */
static double weight_by_age(size_t i, size_t count)
{
    if (count <= FULL_WEIGHT_TRIALS || i >= count - FULL_WEIGHT_TRIALS)
        return 1;
    size_t faded = count - FULL_WEIGHT_TRIALS;
    double least = 1 / (double)count;
    return faded == 1 ? least : least + (1 - least) * (double)i / (double)(faded - 1);
}

static void fill_weights(struct parzen *parzen)
{
    size_t trials = parzen->kernels - 1;
    double sum = 1; /* the prior */
    for (size_t i = 0; i < trials; i++)
        sum += weight_by_age(i, trials);
    for (size_t i = 0; i < trials; i++)
        parzen->weights[i] = weight_by_age(i, trials) / sum;
    parzen->weights[trials] = 1 / sum;
    for (size_t i = 0; i <= trials; i++)
        parzen->log_weights[i] = log(parzen->weights[i]);
}

/* ---------------------------------------------------------------- choices */

/* `own`: how many trials had the parameter. */
static void fill_choices(const struct parzen_space *space, struct factor *factor, size_t own)
{
    double choices = (double)space->choices;
    factor->elsewhere = isnan(factor->center) ? 1 / choices : 1 / ((double)own + 1 + choices);
    factor->log_elsewhere = log(factor->elsewhere);
    factor->log_center = log(1 - factor->elsewhere * (choices - 1));
}

static double draw_choice(const struct parzen_space *space, const struct factor *factor, double place)
{
    double choice = floor(place / factor->elsewhere), last = (double)space->choices - 1;
    if (choice <= last || isnan(factor->center))
        return fmin(choice, last);
    return factor->center;
}

/* ---------------------------------------------------------------- Gaussians */

static double normal_below(double distance)
{
    return erfc(-distance * M_SQRT1_2) / 2;
}

static double lower_end(const struct parzen_space *space)
{
    return space->low - space->step / 2;
}

static double upper_end(const struct parzen_space *space)
{
    return space->high + space->step / 2;
}

/* The part of a Gaussian that lies between two numbers. */
static double mass_between(const struct factor *factor, double from, double to)
{
    return normal_below((to - factor->center) / factor->width) - normal_below((from - factor->center) / factor->width);
}

static void fill_gaussian(const struct parzen_space *space, struct factor *factor, double width)
{
    factor->width = width;
    factor->mass = mass_between(factor, lower_end(space), upper_end(space));
    factor->log_scale = log(factor->mass) + (space->step > 0 ? 0 : log(width * sqrt(2 * M_PI)));
}

static int by_center(const void *one, const void *other)
{
    const struct factor *const *a = one, *const *b = other;
    if ((*a)->center != (*b)->center)
        return (*a)->center < (*b)->center ? -1 : 1;
    return (*a > *b) - (*a < *b);
}

/* The distance of value `i` of `count` to the farther neighbour. Outermost values have one only; a lone one has the ends of the
 * range. */
static double distance_of(const struct parzen_space *space, struct factor *const *sorted, size_t i, size_t count)
{
    bool first = i == 0, last = i + 1 == count;
    double below = sorted[i]->center - (first ? lower_end(space) : sorted[i - 1]->center);
    double above = (last ? upper_end(space) : sorted[i + 1]->center) - sorted[i]->center;
    if (first && !last)
        return above;
    if (last && !first)
        return below;
    return fmax(below, above);
}

/* Returns the number in the range below which the part `place` of the Gaussian's mass lies, by Newton's method from the center. The
 * integral is convex below the center and concave above it, so only rounding makes a step go too far; then the remaining interval is
 * halved. */
static double place_in(const struct parzen_space *space, const struct factor *factor, double place)
{
    double low = lower_end(space), high = upper_end(space), number = factor->center;
    double below = normal_below((low - factor->center) / factor->width);
    for (int i = 0; i < STEPS_MAX; i++) {
        double distance = (number - factor->center) / factor->width;
        double missing = place * factor->mass - (normal_below(distance) - below);
        double next = number + missing * factor->width * sqrt(2 * M_PI) * exp(distance * distance / 2);
        if (missing > 0)
            low = number;
        else
            high = number;
        next = next >= low && next <= high ? next : (low + high) / 2;
        if (fabs(next - number) <= NEAR_ENOUGH * factor->width)
            return next;
        number = next;
    }
    return number;
}

static double draw_number(const struct parzen_space *space, const struct factor *factor, double place)
{
    double number = place_in(space, factor, place);
    return fmin(fmax(space->step > 0 ? floor(number + 0.5) : number, space->low), space->high);
}

/* ---------------------------------------------------------------- both */

/* Fills the factors of one parameter in all kernels. Their centers are set: NAN stands for the factor of the prior. */
static void fill_factors(struct parzen *parzen, size_t parameter)
{
    const struct parzen_space *space = &parzen->spaces[parameter];
    SCOPED_FREE struct factor **own = memory_allocate(parzen->kernels, sizeof *own);
    size_t count = 0;
    double range = upper_end(space) - lower_end(space);
    for (size_t i = 0; i < parzen->kernels; i++) {
        struct factor *factor = &parzen->factors[i * parzen->parameters + parameter];
        if (!isnan(factor->center)) {
            own[count++] = factor;
        } else if (space->choices == 0) {
            factor->center = (space->low + space->high) / 2;
            fill_gaussian(space, factor, range);
        }
    }
    if (space->choices > 0) {
        for (size_t i = 0; i < parzen->kernels; i++)
            fill_choices(space, &parzen->factors[i * parzen->parameters + parameter], count);
        return;
    }
    qsort(own, count, sizeof(struct factor *), by_center);
    double narrowest = range / fmin(NARROWEST, (double)count + 2);
    for (size_t i = 0; i < count; i++)
        fill_gaussian(space, own[i], fmin(fmax(distance_of(space, own, i, count), narrowest), range));
}

struct parzen *parzen_new(const struct parzen_space *spaces, size_t parameters, const double *const *points,
                          size_t count)
{
    struct parzen *parzen = memory_allocate(1, sizeof *parzen);
    *parzen = (struct parzen){.parameters = parameters, .kernels = count + 1};
    parzen->spaces = memory_allocate(parameters, sizeof *parzen->spaces);
    parzen->factors = memory_allocate(parzen->kernels * parameters, sizeof *parzen->factors);
    parzen->weights = memory_allocate(parzen->kernels, sizeof *parzen->weights);
    parzen->log_weights = memory_allocate(parzen->kernels, sizeof *parzen->log_weights);
    memcpy(parzen->spaces, spaces, parameters * sizeof *spaces);
    fill_weights(parzen);
    for (size_t i = 0; i < parzen->kernels; i++)
        for (size_t j = 0; j < parameters; j++)
            parzen->factors[i * parameters + j].center = i < count ? points[i][j] : NAN;
    for (size_t j = 0; j < parameters; j++)
        fill_factors(parzen, j);
    return parzen;
}

void parzen_free(struct parzen *parzen)
{
    free(parzen->spaces);
    free(parzen->factors);
    free(parzen->weights);
    free(parzen->log_weights);
    free(parzen);
}

void parzen_draw(const struct parzen *parzen, const double *draws, double *ret_point)
{
    size_t kernel = 0;
    double drawn = draws[0];
    for (; kernel + 1 < parzen->kernels && drawn >= parzen->weights[kernel]; kernel++)
        drawn -= parzen->weights[kernel];
    for (size_t j = 0; j < parzen->parameters; j++) {
        const struct parzen_space *space = &parzen->spaces[j];
        const struct factor *factor = &parzen->factors[kernel * parzen->parameters + j];
        ret_point[j] = (space->choices > 0 ? draw_choice : draw_number)(space, factor, draws[j + 1]);
    }
}

static double log_density_of(const struct parzen_space *space, const struct factor *factor, double value)
{
    if (space->choices > 0)
        return value == factor->center ? factor->log_center : factor->log_elsewhere;
    double half = space->step / 2, distance = (value - factor->center) / factor->width;
    return (half > 0 ? log(mass_between(factor, value - half, value + half)) : -distance * distance / 2) -
           factor->log_scale;
}

/* The logarithm of what kernel `i` adds to the density. */
static double log_term(const struct parzen *parzen, size_t i, const double *point)
{
    double term = parzen->log_weights[i];
    for (size_t j = 0; j < parzen->parameters; j++)
        if (!isnan(point[j]))
            term += log_density_of(&parzen->spaces[j], &parzen->factors[i * parzen->parameters + j], point[j]);
    return term;
}

/* The sum is kept divided by its largest term so far: a product of many factors may be too small for a number. */
double parzen_log_density(const struct parzen *parzen, const double *point)
{
    double largest = log_term(parzen, 0, point), sum = 1;
    for (size_t i = 1; i < parzen->kernels; i++) {
        double term = log_term(parzen, i, point);
        if (term > largest) {
            sum = sum * exp(largest - term) + 1;
            largest = term;
        } else if (isfinite(term)) {
            sum += exp(term - largest);
        }
    }
    return largest + log(sum);
}
