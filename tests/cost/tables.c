/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/cost/cost.h"
#include "worker/comm/operation.h"

#define FABRIC_LATENCY 10e-6 /* one way, between machines of one hall */
#define PROCESSORS 16
#define LOCAL_STEPS 100

static const double rates[] = {10e9, 25e9, 100e9};
static const unsigned crews[] = {8, 16, 32, 64, 128, 256, 512, 1024};
#define RATES (sizeof(rates) / sizeof(*rates))
#define CREWS (sizeof(crews) / sizeof(*crews))

static struct cost_network network_of(double bits)
{
    return (struct cost_network){.latency = FABRIC_LATENCY, .byte = cost_link_byte(bits), .processors = PROCESSORS};
}

/* A GPU a worker. */
static struct cost_crew crew_of(const struct cost_software *software, const struct cost_network *network,
                                const struct cost_model *model)
{
    return (struct cost_crew){.software = software,
                              .network = network,
                              .model = model,
                              .computation = model->flops * model->batch / (model->gpu_share * software->gpu_flops),
                              .local_steps = LOCAL_STEPS,
                              .slots = 2};
}

static void print_crews(const char *first)
{
    printf("\n| %s |", first);
    for (size_t i = 0; i < CREWS; i++)
        printf(" %u |", crews[i]);
    printf("\n|---|");
    for (size_t i = 0; i < CREWS; i++)
        printf("---|");
    printf("\n");
}

static bool is_there(const struct cost_strategy *strategy, bool on_processor)
{
    return on_processor || !strategy->is_for_processors;
}

static void print_efficiencies(struct cost_crew crew)
{
    print_crews("strategy");
    for (size_t i = 0; i < cost_strategy_count; i++) {
        if (!is_there(&cost_strategies[i], crew.on_processor))
            continue;
        printf("| %s |", cost_strategies[i].name);
        for (size_t j = 0; j < CREWS; j++) {
            crew.workers = crews[j];
            printf(" %.0f |", 100 * cost_efficiency(&cost_strategies[i], &crew));
        }
        printf("\n");
    }
    if (!crew.on_processor)
        return;
    printf("| (age of a change, PeerToPeer, in steps) |");
    for (size_t j = 0; j < CREWS; j++) {
        crew.workers = crews[j];
        printf(" %.0f |", cost_send_to_all_age(&crew));
    }
    printf("\n");
}

static void print_crew_tables(const struct cost_software *software, const struct cost_model *model, double bits)
{
    struct cost_network network = network_of(bits);
    struct cost_crew crew = crew_of(software, &network, model);
    printf(
        "\n### %s, batch %g a worker, %g Gbit/s\n\nAn H200 a worker, %.3g ms of computation; efficiency in per cent:\n",
        model->name, model->batch, bits / 1e9, crew.computation * 1e3);
    print_efficiencies(crew);
    crew.on_processor = true;
    crew.computation = model->flops * model->batch / (PROCESSORS * software->processor_flops);
    printf("\n%d processors a worker, %.3g ms of computation:\n", PROCESSORS, crew.computation * 1e3);
    print_efficiencies(crew);
}

static void print_failures(void)
{
    struct cost_failures failures = {.rate = 1.0 / 86400, .step = 0.5, .save = 0.05, .save_least = 10};
    double interval;
    const double recoveries[] = {0.13, 0.9, 10};
    printf("\n### Preemptions: one a day and worker; share of the time that is not lost, in per cent\n");
    print_crews("");
    for (size_t i = 0; i < sizeof(recoveries) / sizeof(*recoveries); i++) {
        printf("| in place, %g s |", failures.recovery = recoveries[i]);
        for (size_t j = 0; j < CREWS; j++)
            printf(" %.1f |", 100 * cost_goodput_in_place(&failures, crews[j]));
        printf("\n");
    }
    failures.recovery = 30;
    printf("| all anew in 30 s, best interval |");
    for (size_t j = 0; j < CREWS; j++) {
        double goodput = cost_goodput_restart(&failures, crews[j], &interval);
        printf(" %.1f (%.0f s) |", 100 * goodput, interval);
    }
    failures.save_least = 1800;
    printf("\n| all anew in 30 s, every 30 min |");
    for (size_t j = 0; j < CREWS; j++)
        printf(" %.1f |", 100 * cost_goodput_restart(&failures, crews[j], &interval));
    printf("\n");
}

void cost_print_tables(const struct cost_software *software)
{
    for (size_t i = 0; i < cost_model_count; i++)
        for (size_t j = 0; j < RATES; j++)
            print_crew_tables(software, &cost_models[i], rates[j]);
    print_failures();
    cost_print_choice(software);
}

/* ---------------------------------------------------------------- what Auto should take */

static enum collective_algorithm quickest(const struct cost_software *software, const struct cost_network *network,
                                          struct cost_collective collective, double *ret_seconds)
{
    static const enum collective_algorithm candidates[] = {COLLECTIVE_ALGORITHM_DIRECT, COLLECTIVE_ALGORITHM_OWNED,
                                                           COLLECTIVE_ALGORITHM_DOUBLING, COLLECTIVE_ALGORITHM_HALVING};
    enum collective_algorithm best = candidates[0];
    *ret_seconds = 1e9;
    for (size_t i = 0; i < (cost_has_pairs(collective.ranks) ? 4 : 2); i++) {
        collective.algorithm = candidates[i];
        double seconds = cost_all_reduce(software, network, &collective);
        if (seconds < *ret_seconds) {
            *ret_seconds = seconds;
            best = candidates[i];
        }
    }
    return best;
}

static void print_choices(const struct cost_software *software, double bits)
{
    static const unsigned ranks[] = {2, 3, 4, 8, 16, 32, 64, 256, 1024};
    struct cost_network network = network_of(bits);
    printf(
        "\n### What is quickest at %g Gbit/s, and how many times longer Auto takes where it takes another\n\n| bytes |",
        bits / 1e9);
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
        printf(" %u |", ranks[i]);
    printf("\n|---|");
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
        printf("---|");
    for (double bytes = 256; bytes <= 64 << 20; bytes *= 4) {
        printf("\n| %.0f |", bytes);
        for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
            struct cost_collective collective = {.ranks = ranks[i], .per_node = 1, .bytes = bytes};
            double best, ours;
            enum collective_algorithm algorithm = quickest(software, &network, collective, &best);
            collective.algorithm = COLLECTIVE_ALGORITHM_AUTO;
            ours = cost_all_reduce(software, &network, &collective);
            printf(" %s", cost_algorithm_name(algorithm));
            printf(ours > 1.1 * best ? " %.1f |" : " |", ours / best);
        }
    }
    printf("\n");
}

void cost_print_choice(const struct cost_software *software)
{
    for (size_t i = 0; i < RATES; i++)
        print_choices(software, rates[i]);
}

/* ---------------------------------------------------------------- a picture */

#define CHART_WIDTH 250
#define CHART_HEIGHT 170
#define MARGIN_LEFT 46
#define MARGIN_TOP 54
#define GAP 44

static void draw_axes(const char *title, double left, double top)
{
    printf("<text x=\"%g\" y=\"%g\" font-weight=\"bold\">%s</text>\n", left, top - 8, title);
    for (int per_cent = 0; per_cent <= 100; per_cent += 25) {
        double y = top + CHART_HEIGHT * (1 - per_cent / 100.0);
        printf("<path d=\"M%g %gh%d\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%g\" text-anchor=\"end\">%d</text>\n", left,
               y, CHART_WIDTH, left - 5, y + 4, per_cent);
    }
    for (size_t i = 0; i < CREWS; i++)
        printf("<text x=\"%g\" y=\"%d\" text-anchor=\"middle\">%u</text>\n",
               left + CHART_WIDTH * (double)i / (CREWS - 1), (int)top + CHART_HEIGHT + 15, crews[i]);
}

static void draw_lines(struct cost_crew crew, double left, double top)
{
    for (size_t i = 0; i < cost_strategy_count; i++) {
        if (!is_there(&cost_strategies[i], crew.on_processor))
            continue;
        printf("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", cost_strategies[i].colour);
        for (size_t j = 0; j < CREWS; j++) {
            crew.workers = crews[j];
            printf("%s%.1f,%.1f", j ? " " : "", left + CHART_WIDTH * (double)j / (CREWS - 1),
                   top + CHART_HEIGHT * (1 - cost_efficiency(&cost_strategies[i], &crew)));
        }
        printf("\"/>\n");
    }
}

static void draw_legend(double top)
{
    size_t place = 0;
    for (size_t i = 0; i < cost_strategy_count; i++) {
        if (!is_there(&cost_strategies[i], false))
            continue;
        double x = MARGIN_LEFT + (double)(place % 4) * 215, y = top + (double)(place / 4) * 18;
        place++;
        printf("<path d=\"M%g %gh18\" stroke=\"%s\" stroke-width=\"3\"/><text x=\"%g\" y=\"%g\">%s</text>\n", x, y,
               cost_strategies[i].colour, x + 23, y + 4, cost_strategies[i].name);
    }
}

void cost_print_picture(const struct cost_software *software)
{
    double width = MARGIN_LEFT + RATES * (CHART_WIDTH + GAP);
    double height = MARGIN_TOP + (double)cost_model_count * (CHART_HEIGHT + GAP + 14) + 60;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" font-family=\"sans-serif\" "
           "font-size=\"11\">\n"
           "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
           "<text x=\"%d\" y=\"22\" font-size=\"14\">Predicted efficiency in per cent against workers, an H200 each "
           "(float32), "
           "the batch of a worker fixed</text>\n",
           width, height, MARGIN_LEFT);
    for (size_t i = 0; i < cost_model_count; i++)
        for (size_t j = 0; j < RATES; j++) {
            struct cost_network network = network_of(rates[j]);
            const struct cost_model *model = &cost_models[i];
            struct cost_crew crew = crew_of(software, &network, model);
            double left = MARGIN_LEFT + (double)j * (CHART_WIDTH + GAP);
            double top = MARGIN_TOP + (double)i * (CHART_HEIGHT + GAP + 14);
            char title[64];
            snprintf(title, sizeof(title), "%s, batch %g, %g Gbit/s", model->name, model->batch, rates[j] / 1e9);
            draw_axes(title, left, top);
            draw_lines(crew, left, top);
        }
    draw_legend(height - 50);
    printf("</svg>\n");
}
