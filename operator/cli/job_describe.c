/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/job/enum_words.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_score.h"
#include "operator/cli/job_table.h"
#include "operator/cli/job_view.h"
#include "operator/cli/pod_place.h"

#define EVENTS_SHOWN 20
#define SCORE_MAX 128

static const char *text_at(const struct json *object, const char *path)
{
    return json_string_at(object, path, "");
}

static void line(struct buffer *out, const char *title, const char *value)
{
    if (*value)
        buffer_format(out, "%-13s %s\n", title, value);
}

static void print_age(const struct json *object, const char *path, int64_t now_ms, struct buffer *out)
{
    int64_t ms;
    char text[24] = "-";
    if (clock_parse(text_at(object, path), &ms))
        clock_format_duration(now_ms > ms ? now_ms - ms : 0, text, sizeof text);
    buffer_format(out, "%-7s", text);
}

/* ---------------------------------------------------------------- what was asked for */

static void print_roles(const struct json *job, struct buffer *out)
{
    const struct json *spec = json_member(job, "spec");
    buffer_format(out, "%-13s worker %" PRId64, "Crew", spec_role_count(spec, ROLE_WORKER));
    for (int role = 0; role < ROLE_COUNT; role++)
        if (role != ROLE_WORKER && spec_role_count(spec, (enum role)role) > 0)
            buffer_format(out, ", %s %" PRId64, role_name((enum role)role), spec_role_count(spec, (enum role)role));
    if (json_at(spec, "workers.maxReplicas"))
        buffer_format(out, " (elastic, %" PRId64 " to %" PRId64 " workers)",
                      json_integer_at(spec, "workers.minReplicas", 1), json_integer_at(spec, "workers.maxReplicas", 1));
    buffer_format(out, "; %s %" PRId64 " a worker\n", json_string_at(job, "spec.devices.type", "CPU"),
                  json_integer_at(job, "spec.devices.count", 1));
}

/* An invalid job is printed as far as it can be read. */
static void print_checkpoints(const struct json *job, struct buffer *out)
{
    SCOPED(training_job_release) struct training_job parsed;
    struct error ignored = ERROR_INIT;
    training_job_parse(job, &parsed, &ignored);
    const struct checkpoint_spec *checkpoint = &parsed.document.checkpoint;
    if (checkpoint->enabled && checkpoint->storage)
        buffer_format(out, "%-13s %s:%s\n", "Checkpoints", checkpoint->storage, checkpoint->path);
}

static void print_spec(const struct json *job, struct buffer *out)
{
    line(out, "Name", text_at(job, "metadata.name"));
    line(out, "Namespace", text_at(job, "metadata.namespace"));
    line(out, "Framework", framework_words[spec_framework(json_member(job, "spec"))]);
    line(out, "Image", text_at(job, "spec.image"));
    line(out, "Strategy", text_at(job, "spec.coxswain.strategy.type"));
    line(out, "Model", text_at(job, "spec.coxswain.model.preset"));
    print_roles(job, out);
    print_checkpoints(job, out);
}

/* ---------------------------------------------------------------- where it stands */

/* Shares as per cent, as everywhere; what is none as it was told. */
static void print_figure(const char *name, const char *value, struct buffer *out)
{
    static const char accuracy[] = "Accuracy";
    size_t length = strlen(name), end = strlen(accuracy);
    bool is_share = strcmp(name, "goodput") == 0 || strcmp(name, "accuracy") == 0 ||
                    (length > end && strcmp(name + length - end, accuracy) == 0);
    char *rest;
    double number = strtod(value, &rest);
    if (is_share && rest != value && !*rest && isfinite(number))
        buffer_format(out, "  %-24s %.1f %%\n", name, 100 * number);
    else
        buffer_format(out, "  %-24s %s\n", name, value);
}

static void print_step(const struct json *job, const struct json *progress, struct buffer *out)
{
    char left[24];
    buffer_format(out, "%-13s step %" PRId64, "Progress", json_integer_at(progress, "step", 0));
    if (json_integer_at(progress, "totalSteps", -1) >= 0)
        buffer_format(out, " of %" PRId64, json_integer_at(progress, "totalSteps", 0));
    if (*text_at(progress, "examplesPerSecond"))
        buffer_format(out, ", %s examples/s", text_at(progress, "examplesPerSecond"));
    job_time_left(job, left, sizeof left);
    if (*left)
        buffer_format(out, ", %s left", left);
    buffer_append_byte(out, '\n', NULL);
}

static void print_score(const struct json *job, struct buffer *out)
{
    const struct job_score score = job_score(job);
    SCOPED_BUFFER text = BUFFER_INIT(SCORE_MAX);
    job_score_print(&score, &text);
    if (score.best_step >= 0)
        buffer_format(out, "  %-24s %s\n", job_exports(job) ? "exported weights" : "best weights", buffer_text(&text));
}

/* A script of another framework may report metrics alone. */
static void print_progress(const struct json *job, struct buffer *out)
{
    const struct json *progress = json_at(job, "status.progress"), *metrics = json_member(progress, "metrics");
    if (json_integer_at(progress, "step", -1) >= 0)
        print_step(job, progress, out);
    else if (json_count(metrics) > 0)
        buffer_append_string(out, "Progress\n", NULL);
    else
        return;
    for (const struct json *item = json_first(metrics); item; item = json_next(item))
        print_figure(text_at(item, "name"), text_at(item, "value"), out);
    print_score(job, out);
    if (json_integer_at(progress, "lastCheckpointStep", -1) >= 0)
        buffer_format(out, "  %-24s step %" PRId64 "\n", "last checkpoint",
                      json_integer_at(progress, "lastCheckpointStep", 0));
    if (*text_at(progress, "goodput"))
        print_figure("goodput", text_at(progress, "goodput"), out);
}

/* Without fractions of a second. */
static void time_line(struct buffer *out, const char *name, const char *time)
{
    int64_t ms;
    char seconds[CLOCK_TEXT_MAX];
    if (!clock_parse(time, &ms))
        return;
    clock_format_seconds(ms, seconds);
    line(out, name, seconds);
}

static void print_status(const struct json *job, struct buffer *out)
{
    const char *state = job_state_shown(job);
    buffer_format(out, "%-13s %s, %s ready\n", "State", *state ? state : "not seen yet",
                  json_string_at(job, "status.readySummary", "0"));
    int64_t attempt = json_integer_at(job, "status.controllerState.attempt", 0);
    if (attempt > 0)
        buffer_format(out, "%-13s %" PRId64 ", incarnation %" PRId64 "\n", "Attempt", attempt,
                      json_integer_at(job, "status.controllerState.incarnation", 0));
    buffer_format(
        out,
        "%-13s %" PRId64 " (failures %" PRId64 " of %" PRId64 ", disruptions %" PRId64 ", out of memory %" PRId64 ")\n",
        "Restarts", json_integer_at(job, "status.restarts.total", 0),
        json_integer_at(job, "status.restarts.failures", 0), json_integer_at(job, "spec.runPolicy.backoffLimit", 6),
        json_integer_at(job, "status.restarts.disruptions", 0), json_integer_at(job, "status.restarts.outOfMemory", 0));
    time_line(out, "Started", text_at(job, "status.startTime"));
    time_line(out, "Finished", text_at(job, "status.completionTime"));
    print_progress(job, out);
}

static void print_conditions(const struct why_input *input, struct buffer *out)
{
    buffer_append_string(out, "Conditions\n", NULL);
    const struct json *conditions = json_at(input->job, "status.conditions");
    for (const struct json *item = json_first(conditions); item; item = json_next(item)) {
        buffer_format(out, "  %-18s %-6s ", text_at(item, "type"), text_at(item, "status"));
        print_age(item, "lastTransitionTime", input->now_ms, out);
        buffer_format(out, " %s: %s\n", text_at(item, "reason"), text_at(item, "message"));
    }
}

/* ---------------------------------------------------------------- pods and events */

static void print_pods(const struct why_input *input, struct buffer *out)
{
    buffer_append_string(out, "Pods\n", NULL);
    for (const struct json *pod = json_first(input->pods); pod; pod = json_next(pod)) {
        struct pod_line state = {.index = 0};
        pod_line_describe(&state, pod);
        buffer_format(out, "  %-32s %-14s ", text_at(pod, "metadata.name"), state.words);
        print_age(pod, "metadata.creationTimestamp", input->now_ms, out);
        buffer_format(out, " %s%s\n", text_at(pod, "spec.nodeName"), pod_is_current(pod) ? "" : " (replaced)");
    }
}

/* The newest; they come in the order of time. */
static void print_events(const struct why_input *input, struct buffer *out)
{
    size_t count = json_count(input->events), at = 0;
    buffer_format(out, "Events%s\n", count == 0 ? " none" : "");
    for (const struct json *event = json_first(input->events); event; event = json_next(event), at++) {
        if (at + EVENTS_SHOWN < count)
            continue;
        buffer_append_string(out, "  ", NULL);
        print_age(event, "metadata.creationTimestamp", input->now_ms, out);
        buffer_format(out, " %-8s %-16s %s: %s\n", text_at(event, "type"), text_at(event, "reason"),
                      text_at(event, "regarding.name"), text_at(event, "note"));
    }
}

void job_describe(const struct why_input *input, struct buffer *out)
{
    print_spec(input->job, out);
    buffer_append_byte(out, '\n', NULL);
    print_status(input->job, out);
    buffer_append_byte(out, '\n', NULL);
    print_conditions(input, out);
    buffer_append_byte(out, '\n', NULL);
    print_pods(input, out);
    buffer_append_byte(out, '\n', NULL);
    print_events(input, out);
    buffer_append_byte(out, '\n', NULL);
    why_print(input, out);
    buffer_append_byte(out, '\n', NULL);
}
