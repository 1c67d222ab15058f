/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks each rank of a crew before the first step (coxswain.training.preflight), and finds the ranks that compute wrong values or are
 * much slower than the rest. Every rank measures:
 * - a product of matrices of whole numbers, whose sums float32 represents exactly, repeated on each device. So the right result is known,
 *   whatever the arithmetic, and a wrong bit shows a sick processor or GPU;
 * - copies of a pattern to each device and back: wrong bytes, and the rate (of a CPU's memory, or of the path to a GPU and its memory);
 * - bytes received from both neighbours in rank order, all ranks at once, over the connections that training uses. Ranks that share memory
 *   are not measured.
 * The best of several repetitions counts, because other programs may take the processor away. The ranks exchange what they have measured,
 * so all of them reach the same verdict. It takes 64 MiB of memory, which is freed afterwards, and a few seconds.
 *
 * The rates are judged only in crews of three ranks or more. A rank's connection is slow if both directions that it sends in, or
 * both that it receives in, are: one slow connection between two ranks says nothing about either. A rank
 * whose slow connections all lead to ranks that are slow themselves passes.
 */
#ifndef COXSWAIN_STRATEGY_PREFLIGHT_H
#define COXSWAIN_STRATEGY_PREFLIGHT_H

#include "worker/strategy/strategy.h"

#define PREFLIGHT_SHARE 4 /* a rate below the median divided by this is too low */
#define PREFLIGHT_TEXT_MAX 256

/* What a rank has measured. Rates are in bytes a second; 0: not measured. */
struct preflight_figures {
    double wrong_products; /* elements of all repetitions that were wrong */
    double wrong_bytes;
    double copy_rate;
    double from_previous, from_next; /* received from the ranks before and after, in a circle */
};

/* Measures the own devices, without the connections. Fails only if a device does (ERROR_DEVICE); too little memory leaves out the copies.
 * `fault` makes the figures wrong for tests: "product", "memory" or "copies"; NULL: none. */
int preflight_measure(const struct strategy_device *devices, unsigned device_count, const char *fault,
                      struct preflight_figures *ret_figures, struct error *error);
/* Fills from_previous and from_next. All ranks must call it. `group` NULL: does nothing. */
int preflight_measure_links(struct collective *group, unsigned rank, unsigned size, struct preflight_figures *figures,
                            struct error *error);

/* Returns whether the rank has failed, and describes why: "computes wrong values: …". */
bool preflight_judge(const struct preflight_figures *figures, unsigned size, unsigned rank,
                     char text[PREFLIGHT_TEXT_MAX]);

#endif
