/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws a series of values as one line of text (▇▅▃▂▂▁), for the curve of the loss in the summary
 * at the end of a run. It keeps a bounded sample of a series of any length: when the sample is
 * full, neighbours are averaged in pairs, and each then stands for twice as many values.
 */
#ifndef COXSWAIN_REPORT_SPARKLINE_H
#define COXSWAIN_REPORT_SPARKLINE_H

#include <stddef.h>

#define SPARKLINE_SAMPLES 512

/* Initialise it with zeros. Needs no release. */
struct sparkline {
    double samples[SPARKLINE_SAMPLES];
    unsigned count;
    unsigned stride; /* values per sample; 0 at the start stands for 1 */
    unsigned pending_count;
    double pending_sum;
};

/* Adds a value. Ignores values that are not finite. */
void sparkline_add(struct sparkline *line, double value);

/* Draws at most `width` blocks; the lowest value is ▁, the highest █. `size` should be at least
 * 3 * width + 1. */
void sparkline_print(const struct sparkline *line, unsigned width, char *text, size_t size);

#endif
