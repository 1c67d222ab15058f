/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/progress_status.h"

#include <stdio.h>
#include <string.h>

#define NUMBER_TEXT_MAX 32

static int64_t known(int64_t value, int64_t otherwise)
{
    return value == STATUS_UNKNOWN ? otherwise : value;
}

static const char *decimal(double number, struct arena *arena)
{
    char text[NUMBER_TEXT_MAX];
    snprintf(text, sizeof text, "%.6g", number);
    return arena_copy_string(arena, text);
}

static struct progress_metric metric_from_document(const struct status_metric *metric, struct arena *arena)
{
    return (struct progress_metric){.name = arena_copy_string(arena, metric->name),
                                    .value = decimal(metric->value, arena),
                                    .step = metric->step > 0 ? metric->step : FIELD_UNSET};
}

static struct progress_metric *find_metric(struct progress *progress, const char *name)
{
    for (unsigned i = 0; i < progress->metric_count; i++)
        if (strcmp(progress->metrics[i].name, name) == 0)
            return &progress->metrics[i];
    return NULL;
}

static void copy_metrics(struct progress *progress, const struct status_document *document, bool is_whole,
                         struct arena *arena)
{
    const unsigned room = sizeof progress->metrics / sizeof *progress->metrics;
    if (is_whole)
        progress->metric_count = 0;
    for (unsigned i = 0; i < document->metric_count; i++) {
        struct progress_metric *earlier = find_metric(progress, document->metrics[i].name);
        if (earlier)
            *earlier = metric_from_document(&document->metrics[i], arena);
        else if (progress->metric_count < room)
            progress->metrics[progress->metric_count++] = metric_from_document(&document->metrics[i], arena);
    }
}

/* A chief may say anything: of more steps than there are all are done. A percentage that a script reported stays where steps give none. */
static void set_percent(struct progress *progress, bool may_stay)
{
    bool both = progress->step != FIELD_UNSET && progress->total_steps > 0;
    int64_t step = progress->step < progress->total_steps ? progress->step : progress->total_steps;
    if (both)
        progress->percent = (int64_t)(100.0 * (double)step / (double)progress->total_steps);
    else if (!may_stay)
        progress->percent = FIELD_UNSET;
}

struct progress progress_from_document(const struct status_document *document, const struct progress *before,
                                       bool is_whole, struct arena *arena)
{
    struct progress progress = *before;
    progress.step = known(document->step, before->step);
    progress.total_steps = known(document->total_steps, before->total_steps);
    progress.data_epoch = known(document->data_epoch, before->data_epoch);
    progress.seconds_remaining = known(document->seconds_remaining, FIELD_UNSET);
    progress.last_checkpoint_step = known(document->last_checkpoint_step, before->last_checkpoint_step);
    progress.updated_at_ms = known(document->updated_at_ms, before->updated_at_ms);
    if (document->metric_count > 0)
        copy_metrics(&progress, document, is_whole, arena);
    if (document->examples_per_second > STATUS_UNKNOWN)
        progress.examples_per_second = decimal(document->examples_per_second, arena);
    if (document->goodput > STATUS_UNKNOWN)
        progress.goodput = decimal(document->goodput, arena);
    set_percent(&progress, !is_whole);
    progress.percent = known(document->percent, progress.percent);
    return progress;
}

static bool same_metrics(const struct progress *before, const struct progress *after)
{
    bool same = before->metric_count == after->metric_count;
    for (unsigned i = 0; same && i < after->metric_count; i++)
        same = strcmp(before->metrics[i].name, after->metrics[i].name) == 0 &&
               strcmp(before->metrics[i].value, after->metrics[i].value) == 0 &&
               before->metrics[i].step == after->metrics[i].step;
    return same;
}

bool progress_moved(const struct progress *before, const struct progress *after)
{
    return before->step != after->step || before->data_epoch != after->data_epoch ||
           before->percent != after->percent || !same_metrics(before, after);
}

void progress_rest(struct progress *progress)
{
    progress->examples_per_second = NULL;
    progress->seconds_remaining = FIELD_UNSET;
}

void progress_complete(struct progress *progress)
{
    if (progress->total_steps == FIELD_UNSET)
        return;
    progress->step = progress->total_steps;
    progress->seconds_remaining = 0;
    set_percent(progress, false);
}
