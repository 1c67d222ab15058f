/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/script_progress.h"

#include <string.h>

#include "common/contract/script_report.h"
#include "common/failure_line.h"
#include "operator/controller/plan/finishing.h"
#include "operator/controller/plan/progress_status.h"

/* The chief's pod, if it has finished and is still there; else NULL. */
static const struct pod_view *finished_chief(const struct planning *planning)
{
    const struct slot *chief = crew_chief(&planning->crew, planning->job);
    bool finished = chief && chief->occupant && finishing_slot_done(planning, chief);
    return finished && pod_view_succeeded(chief->occupant) ? chief->occupant : NULL;
}

static void warn_of_flaw(struct planning *planning, const struct pod_view *pod, bool nothing_used,
                         const struct error *flaw)
{
    SCOPED_BUFFER words = BUFFER_INIT(FAILURE_LINE_MAX);
    failure_line_clean(flaw->message, strlen(flaw->message), FAILURE_LINE_MAX, &words);
    planning_event(planning, true, "ProgressUnreadable", "ReadProgress",
                   planning_format(planning, "%s report in the termination message of pod %s %s be used: %s",
                                   nothing_used ? "the" : "not all of the", pod->name, nothing_used ? "cannot" : "can",
                                   buffer_text(&words)));
}

static void read_report(struct planning *planning, const struct pod_view *pod)
{
    struct job_status *next = planning->next;
    struct status_document report;
    struct error flaw;
    script_report_read(pod->termination_message, &report, &flaw);
    if (flaw.kind != ERROR_NONE && condition_is(next, CONDITION_SUCCEEDED, CONDITION_TRUE))
        warn_of_flaw(planning, pod, !status_document_has_progress(&report), &flaw);
    if (!status_document_has_progress(&report))
        return;
    if (pod->finished_ms != FIELD_UNSET)
        report.updated_at_ms = pod->finished_ms;
    next->progress = progress_from_document(&report, &next->progress, false, &planning->plan->arena);
}

static void warn_of_log(struct planning *planning)
{
    SCOPED_BUFFER words = BUFFER_INIT(FAILURE_LINE_MAX);
    const char *flaw = planning->input->log.flaw;
    failure_line_clean(flaw, strlen(flaw), FAILURE_LINE_MAX, &words);
    planning->plan->reports_log_flaw = true;
    planning_event_of_action(
        planning, "ProgressUnreadable", "ReadProgress",
        planning_format(planning, "the progress of the script cannot be read: %s", buffer_text(&words)));
}

static void forget(struct progress *progress)
{
    progress->metric_count = 0;
    progress->step = progress->data_epoch = progress->percent = progress->updated_at_ms = FIELD_UNSET;
}

void script_progress_update(struct planning *planning)
{
    const struct pod_view *chief;
    if (planning->job->framework == FRAMEWORK_COXSWAIN || status_terminal(planning->old))
        return;
    if (planning->input->log.flaw && !planning->input->log.flaw_reported)
        warn_of_log(planning);
    if (planning->next->attempt != planning->old->attempt)
        forget(&planning->next->progress);
    else if ((chief = finished_chief(planning)))
        read_report(planning, chief);
}
