/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model's program.
 *
 *     cost_model tables PARAMETERS               prints efficiency, failures, the fastest collective
 *     cost_model picture PARAMETERS              prints efficiency against workers, as SVG
 *     cost_model fit PARAMETERS PROCESSORS       fits the parameters, beginning with these, to lines of bench_allreduce --crew over
 *                                                loopback on stdin
 *     cost_model check PARAMETERS PROCESSORS MBITS DELAY_US
 *                                                prints such lines from a network with such links, with predictions
 *     cost_model steps PARAMETERS PROCESSORS MBITS DELAY_US BATCH LOCAL_STEPS
 *                                                prints whole steps of an MLP there (tests/cost/check), with predictions
 */
#include <stdlib.h>
#include <string.h>

#include "tests/cost/cost.h"

#define BUCKET 1e4 /* that tests/cost/network.sh gives each link */

static int usage(void)
{
    fprintf(stderr, "usage: cost_model tables|picture|fit|check|steps PARAMETERS [PROCESSORS [MBITS DELAY_US "
                    "[BATCH LOCAL_STEPS]]]\n");
    return 2;
}

static double number(int argc, char **argv, int index)
{
    return index < argc ? strtod(argv[index], NULL) : 0;
}

static int check(const char *what, const struct cost_software *software, int argc, char **argv)
{
    double processors = number(argc, argv, 3);
    struct cost_network network = {.latency = number(argc, argv, 5) * 1e-6,
                                   .byte = cost_link_byte(number(argc, argv, 4) * 1e6),
                                   .bucket = BUCKET,
                                   .processors = 1};
    struct cost_model model = cost_model_mlp;
    model.batch = number(argc, argv, 6);
    struct cost_crew crew = {.software = software,
                             .network = &network,
                             .model = &model,
                             .on_processor = true,
                             .slots = 1,
                             .local_steps = (unsigned)number(argc, argv, 7)};
    return strcmp(what, "check") == 0 ? cost_check(stdin, software, &network, processors)
                                      : cost_check_steps(stdin, &crew);
}

int main(int argc, char **argv)
{
    struct cost_software software;
    if (argc < 3)
        return usage();
    if (cost_software_read(argv[2], &software) < 0)
        return 1;
    if (strcmp(argv[1], "tables") == 0)
        cost_print_tables(&software);
    else if (strcmp(argv[1], "picture") == 0)
        cost_print_picture(&software);
    else if (strcmp(argv[1], "fit") == 0 && argc > 3)
        return cost_fit(stdin, strtod(argv[3], NULL), &software);
    else if ((strcmp(argv[1], "check") == 0 && argc > 5) || (strcmp(argv[1], "steps") == 0 && argc > 7))
        return check(argv[1], &software, argc, argv);
    else
        return usage();
    return 0;
}
