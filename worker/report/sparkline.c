/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/sparkline.h"

#include <math.h>
#include <string.h>

#define LEVELS 8
#define BLOCK_BYTES 3 /* each of ▁ … █ in UTF-8 */

static void halve(struct sparkline *line)
{
    for (unsigned i = 0; i < line->count / 2; i++)
        line->samples[i] = (line->samples[2 * i] + line->samples[2 * i + 1]) / 2;
    line->count /= 2;
    line->stride *= 2;
}

void sparkline_add(struct sparkline *line, double value)
{
    if (!isfinite(value))
        return;
    if (line->stride == 0)
        line->stride = 1;
    line->pending_sum += value;
    if (++line->pending_count < line->stride)
        return;
    if (line->count == SPARKLINE_SAMPLES)
        halve(line);
    line->samples[line->count++] = line->pending_sum / line->pending_count;
    line->pending_count = 0;
    line->pending_sum = 0;
}

/* Mean of the samples that fall into column `column` of `width`. */
static double column_mean(const struct sparkline *line, unsigned column, unsigned width)
{
    unsigned begin = column * line->count / width, end = (column + 1) * line->count / width;
    double sum = 0;
    for (unsigned i = begin; i < end; i++)
        sum += line->samples[i];
    return sum / (end - begin);
}

void sparkline_print(const struct sparkline *line, unsigned width, char *text, size_t size)
{
    static const char blocks[] = "▁▂▃▄▅▆▇█";
    double low = INFINITY, high = -INFINITY;
    if (width > line->count)
        width = line->count;
    for (unsigned i = 0; i < width; i++) {
        double mean = column_mean(line, i, width);
        low = fmin(low, mean);
        high = fmax(high, mean);
    }
    size_t used = 0;
    for (unsigned i = 0; i < width && used + BLOCK_BYTES < size; i++, used += BLOCK_BYTES) {
        double share = high > low ? (column_mean(line, i, width) - low) / (high - low) : 0;
        unsigned level = (unsigned)(share * LEVELS);
        memcpy(text + used, blocks + (size_t)(level < LEVELS ? level : LEVELS - 1) * BLOCK_BYTES, BLOCK_BYTES);
    }
    text[used] = '\0';
}
