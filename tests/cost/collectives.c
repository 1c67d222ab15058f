/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tests/cost/cost.h"
#include "worker/comm/collective_parts.h"
#include "worker/comm/operation.h"

#define PHASES_MAX 4

/* The work of the busiest rank, `times` times in sequence. */
struct phase {
    double times;
    double messages; /* sent and received */
    double out, in;  /* bytes */
    double added;    /* bytes */
    double crew;     /* how many times that much all ranks together do */
    bool near;       /* through shared memory */
};

struct plan {
    struct phase phases[PHASES_MAX];
    unsigned count;
};

static const struct {
    enum collective_algorithm algorithm;
    const char *name;
} names[] = {
    {COLLECTIVE_ALGORITHM_AUTO, "auto"},         {COLLECTIVE_ALGORITHM_DIRECT, "direct"},
    {COLLECTIVE_ALGORITHM_DOUBLING, "doubling"}, {COLLECTIVE_ALGORITHM_HALVING, "halving"},
    {COLLECTIVE_ALGORITHM_OWNED, "owned"},       {COLLECTIVE_ALGORITHM_RING, "ring"},
    {COLLECTIVE_ALGORITHM_REDUCE_TO_ONE, "one"}, {COLLECTIVE_ALGORITHM_HIERARCHICAL, "hierarchical"},
};

const char *cost_algorithm_name(enum collective_algorithm algorithm)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].algorithm == algorithm)
            return names[i].name;
    return "?";
}

bool cost_algorithm_find(const char *name, enum collective_algorithm *ret_algorithm)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i].name, name) == 0) {
            *ret_algorithm = names[i].algorithm;
            return true;
        }
    return false;
}

double cost_link_byte(double bits)
{
    return 8 / bits * 9014 / 8948;
}

bool cost_has_pairs(unsigned ranks)
{
    return ranks >= OPERATION_PAIRS_RANKS_MIN && (ranks & (ranks - 1)) == 0;
}

enum collective_algorithm cost_auto(unsigned ranks, double bytes)
{
    bool pairs = cost_has_pairs(ranks);
    if (bytes <= (double)OPERATION_DIRECT_BYTES)
        return pairs ? COLLECTIVE_ALGORITHM_DOUBLING : COLLECTIVE_ALGORITHM_DIRECT;
    if (pairs && (bytes <= (double)OPERATION_HALVING_BYTES || ranks >= OPERATION_HALVING_RANKS_MIN))
        return COLLECTIVE_ALGORITHM_HALVING;
    return COLLECTIVE_ALGORITHM_OWNED;
}

/* ---------------------------------------------------------------- one operation */

static struct phase *add_phase(struct plan *plan, struct phase phase)
{
    plan->phases[plan->count] = phase;
    return &plan->phases[plan->count++];
}

static void plan_direct(struct plan *plan, double ranks, double bytes)
{
    double others = ranks - 1;
    add_phase(plan, (struct phase){1, 2 * others, others * bytes, others * bytes, others * bytes, ranks, false});
}

static void plan_doubling(struct plan *plan, double ranks, double bytes)
{
    add_phase(plan, (struct phase){log2(ranks), 2, bytes, bytes, bytes, ranks, false});
}

/* Each half of the way moves (ranks - 1) / ranks of the vector, in log2 ranks steps of falling length. */
static void plan_halving(struct plan *plan, double ranks, double bytes)
{
    double steps = log2(ranks), length = (ranks - 1) / ranks * bytes / steps;
    add_phase(plan, (struct phase){steps, 2, length, length, length, ranks, false});
    add_phase(plan, (struct phase){steps, 2, length, length, 0, ranks, false});
}

static void plan_owned(struct plan *plan, double ranks, double bytes)
{
    double others = ranks - 1, length = others / ranks * bytes;
    add_phase(plan, (struct phase){1, 2 * others, length, length, length, ranks, false});
    add_phase(plan, (struct phase){1, 2 * others, length, length, 0, ranks, false});
}

static void plan_ring(struct plan *plan, double ranks, double bytes)
{
    double part = bytes / ranks;
    add_phase(plan, (struct phase){ranks - 1, 2, part, part, part, ranks, false});
    add_phase(plan, (struct phase){ranks - 1, 2, part, part, 0, ranks, false});
}

/* Everybody's to one, and back: what one end does, the other ends do once more. */
static void plan_one(struct plan *plan, double ranks, double bytes, bool near)
{
    double others = ranks - 1;
    add_phase(plan, (struct phase){1, others, 0, others * bytes, others * bytes, 2, near});
    struct phase *back = add_phase(plan, (struct phase){1, others, others * bytes, 0, 0, 2, near});
    if (others < 1)
        back->times = plan->phases[plan->count - 2].times = 0;
}

static void plan_hierarchical(struct plan *plan, double ranks, double per_node, double bytes)
{
    double near = ranks < per_node ? ranks : per_node;
    plan_one(plan, near, bytes, true);
    if (ranks > near)
        plan_owned(plan, ranks / near, bytes);
}

static struct plan make_plan(const struct cost_collective *collective, double bytes)
{
    struct plan plan = {.count = 0};
    double ranks = collective->ranks;
    enum collective_algorithm algorithm = collective->algorithm;
    if (algorithm == COLLECTIVE_ALGORITHM_AUTO)
        algorithm = cost_auto(collective->ranks, bytes);
    bool direct = algorithm == COLLECTIVE_ALGORITHM_DIRECT;
    if (algorithm == COLLECTIVE_ALGORITHM_RING && bytes <= (double)OPERATION_DIRECT_BYTES)
        direct = true;
    if (direct)
        plan_direct(&plan, ranks, bytes);
    else if (algorithm == COLLECTIVE_ALGORITHM_DOUBLING)
        plan_doubling(&plan, ranks, bytes);
    else if (algorithm == COLLECTIVE_ALGORITHM_HALVING)
        plan_halving(&plan, ranks, bytes);
    else if (algorithm == COLLECTIVE_ALGORITHM_RING)
        plan_ring(&plan, ranks, bytes);
    else if (algorithm == COLLECTIVE_ALGORITHM_REDUCE_TO_ONE)
        plan_one(&plan, ranks, bytes, false);
    else if (algorithm == COLLECTIVE_ALGORITHM_HIERARCHICAL)
        plan_hierarchical(&plan, ranks, collective->per_node, bytes);
    else
        plan_owned(&plan, ranks, bytes);
    return plan;
}

/* ---------------------------------------------------------------- times */

static double processor_seconds(const struct cost_software *software, const struct phase *phase)
{
    double byte = phase->near ? software->near_byte : software->byte;
    return phase->messages * software->message + (phase->out + phase->in) * byte + phase->added * software->add;
}

/* Where ranks share processors, all of their work has to fit on these. */
static double elapsed(double work, double crew, const struct cost_network *network, double ranks)
{
    double shared = work * crew / (ranks * network->processors);
    return shared > work ? shared : work;
}

static double longer(double a, double b)
{
    return a > b ? a : b;
}

double cost_all_reduce(const struct cost_software *software, const struct cost_network *network,
                       const struct cost_collective *collective)
{
    if (collective->ranks < 2 || collective->bytes <= 0)
        return 0;
    double operations = ceil(collective->bytes / (double)OPERATION_BYTES), bytes = collective->bytes / operations;
    struct plan plan = make_plan(collective, bytes);
    double alone = 0, out = 0, in = 0, work = 0;
    for (unsigned i = 0; i < plan.count; i++) {
        const struct phase *phase = &plan.phases[i];
        double latency = phase->near ? software->near_wake : network->latency + software->wake;
        double wire = phase->near ? 0 : longer(longer(phase->out, phase->in) - network->bucket, 0) * network->byte;
        double busy = elapsed(processor_seconds(software, phase), phase->crew, network, collective->ranks);
        alone += phase->times * (latency + longer(wire, busy));
        out += phase->near ? 0 : phase->times * phase->out;
        in += phase->near ? 0 : phase->times * phase->in;
        work += phase->times * busy;
    }
    double window = operations < COLLECTIVE_WINDOW ? operations : COLLECTIVE_WINDOW;
    double interval = longer(longer(out, in) * network->byte, longer(work, alone / window));
    return alone + (operations - 1) * interval;
}

double cost_all_reduce_processor(const struct cost_software *software, const struct cost_collective *collective)
{
    if (collective->ranks < 2)
        return 0;
    double operations = ceil(collective->bytes / (double)OPERATION_BYTES), work = 0;
    struct plan plan = make_plan(collective, collective->bytes / operations);
    for (unsigned i = 0; i < plan.count; i++)
        work += plan.phases[i].times * processor_seconds(software, &plan.phases[i]);
    return operations * work;
}
