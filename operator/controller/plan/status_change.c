/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/status_change.h"

#include <string.h>

#include "operator/controller/plan/progress_status.h"

static bool same_text(const char *left, const char *right)
{
    return strcmp(left ? left : "", right ? right : "") == 0;
}

static bool is_decided(const struct condition *before, const struct condition *after, bool *messages_differ)
{
    if (before->status != after->status)
        return true;
    if (after->status == CONDITION_ABSENT)
        return false;
    *messages_differ |= !same_text(before->message, after->message) || !same_text(before->reason, after->reason) ||
                        before->observed_generation != after->observed_generation;
    return false;
}

static bool numbers_decided(const struct job_status *before, const struct job_status *after)
{
    return before->observed_generation != after->observed_generation || before->workers != after->workers ||
           before->attempt != after->attempt || before->incarnation != after->incarnation ||
           before->restart_count != after->restart_count || before->restarts.failures != after->restarts.failures ||
           before->restarts.disruptions != after->restarts.disruptions ||
           before->restarts.out_of_memory != after->restarts.out_of_memory ||
           before->restarts.ignored != after->restarts.ignored || before->charged_ms != after->charged_ms ||
           before->charged_attempt != after->charged_attempt || before->start_ms != after->start_ms ||
           before->completion_ms != after->completion_ms || before->chief_finish_ms != after->chief_finish_ms ||
           before->suspended_ms != after->suspended_ms ||
           before->certificate_generation != after->certificate_generation ||
           before->certificate_from_ms != after->certificate_from_ms ||
           before->notice_since_ms != after->notice_since_ms || before->admitted_workers != after->admitted_workers ||
           before->training_class.generation != after->training_class.generation ||
           !same_text(before->training_class.uid, after->training_class.uid) ||
           before->recovered_restarts != after->recovered_restarts ||
           before->recovered_failures != after->recovered_failures ||
           before->backoff_until_ms != after->backoff_until_ms || !same_text(before->selector, after->selector);
}

static bool node_failures_differ(const struct job_status *before, const struct job_status *after)
{
    unsigned count = after->node_failure_count;
    if (before->node_failure_count != count)
        return true;
    for (unsigned i = 0; i < count; i++)
        if (before->node_failures[i].at_ms != after->node_failures[i].at_ms ||
            !same_text(before->node_failures[i].node, after->node_failures[i].node))
            return true;
    return false;
}

static bool replacements_differ(const struct job_status *before, const struct job_status *after)
{
    unsigned count = after->straggler_replacement_count;
    if (before->straggler_replacement_count != count)
        return true;
    for (unsigned i = 0; i < count; i++)
        if (!same_text(before->straggler_replacements[i].pod, after->straggler_replacements[i].pod))
            return true;
    return false;
}

static bool counts_differ(const struct job_status *before, const struct job_status *after)
{
    bool differ = !same_text(before->ready_summary, after->ready_summary) ||
                  (before->progressed_ms == FIELD_UNSET) != (after->progressed_ms == FIELD_UNSET);
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct replica_status *left = &before->replicas[role], *right = &after->replicas[role];
        differ |= left->active != right->active || left->ready != right->ready || left->succeeded != right->succeeded ||
                  left->failed != right->failed || !same_text(left->pending, right->pending) ||
                  !same_text(left->completed, right->completed) || !same_text(left->restarting, right->restarting) ||
                  !same_text(left->backing_off, right->backing_off) ||
                  left->backoff_until_ms != right->backoff_until_ms;
    }
    return differ;
}

static bool same_progress(const struct progress *before, const struct progress *after)
{
    return !progress_moved(before, after) && before->total_steps == after->total_steps &&
           before->seconds_remaining == after->seconds_remaining &&
           before->last_checkpoint_step == after->last_checkpoint_step &&
           before->updated_at_ms == after->updated_at_ms &&
           same_text(before->examples_per_second, after->examples_per_second) &&
           same_text(before->goodput, after->goodput);
}

enum status_change status_compare(const struct job_status *before, const struct job_status *after)
{
    bool counts = counts_differ(before, after);
    bool decided =
        numbers_decided(before, after) || node_failures_differ(before, after) || replacements_differ(before, after);
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++) {
        bool changed = is_decided(&before->conditions[type], &after->conditions[type], &counts);
        if (type == CONDITION_SCHEDULED) /* a step on the way, told along with the next write */
            counts |= changed;
        else
            decided |= changed;
    }
    if (decided)
        return STATUS_DECISION;
    if (counts)
        return STATUS_COUNTS;
    bool same = before->progressed_ms == after->progressed_ms && same_progress(&before->progress, &after->progress);
    return same ? STATUS_SAME : STATUS_PROGRESS;
}
