/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/curves.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/log_lines.h"
#include "operator/cli/log_position.h"
#include "operator/cli/log_read.h"
#include "operator/cli/log_source.h"
#include "operator/cli/pod_place.h"
#include "operator/cli/ui/version.h"

#define JOBS_MAX 8
#define LOGS_MAX 64
#define LINE_MAX_LENGTH 4096

/* How far a pod's log is read. */
struct read_log {
    char uid[64];
    struct log_position position;
    bool whole, failed; /* failed: could not be read this time */
};

struct curve {
    char uid[64]; /* the job's; "": free */
    uint64_t used;
    struct history history;
    struct read_log logs[LOGS_MAX];
    unsigned log_count;
};

struct ui_curves {
    struct curve *jobs[JOBS_MAX];
    uint64_t uses;
};

struct ui_curves *ui_curves_new(void)
{
    return memory_allocate(1, sizeof(struct ui_curves));
}

void ui_curves_free(struct ui_curves *curves)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        free(curves->jobs[i]);
    free(curves);
}

/* The job's curve, else a new one in the place of the one that nobody has looked at for longest. */
static struct curve *curve_of(struct ui_curves *curves, const char *uid)
{
    size_t oldest = 0;
    for (size_t i = 0; i < JOBS_MAX; i++) {
        if (curves->jobs[i] && strcmp(curves->jobs[i]->uid, uid) == 0)
            return curves->jobs[i];
        if (curves->jobs[oldest] && (!curves->jobs[i] || curves->jobs[i]->used < curves->jobs[oldest]->used))
            oldest = i;
    }
    free(curves->jobs[oldest]);
    struct curve *curve = curves->jobs[oldest] = memory_allocate(1, sizeof *curve);
    snprintf(curve->uid, sizeof curve->uid, "%s", uid);
    history_init(&curve->history);
    curve->history.version = random_version();
    return curve;
}

/* NULL: too many chiefs. */
static struct read_log *log_of(struct curve *curve, const struct json *pod)
{
    const char *uid = json_string_at(pod, "metadata.uid", "");
    for (unsigned i = 0; i < curve->log_count; i++)
        if (strcmp(curve->logs[i].uid, uid) == 0)
            return &curve->logs[i];
    if (curve->log_count == LOGS_MAX)
        return NULL;
    struct read_log *log = &curve->logs[curve->log_count++];
    *log = (struct read_log){.whole = false};
    snprintf(log->uid, sizeof log->uid, "%s", uid);
    history_begin_log(&curve->history);
    return log;
}

static void take_line(struct curve *curve, struct read_log *log, const char *line, size_t length)
{
    char text[LINE_MAX_LENGTH];
    if (length >= sizeof text || !log_position_take(&log->position, line, length))
        return;
    size_t skip = log_line_text(line, length);
    memcpy(text, line + skip, length - skip);
    text[length - skip] = '\0';
    history_take_line(&curve->history, text);
}

/* An incomplete line at the end comes again, longer. */
static void take_text(struct curve *curve, struct read_log *log, const struct buffer *text)
{
    const char *at = buffer_text(text), *end = at + text->length, *newline;
    log_position_cut(&log->position);
    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        take_line(curve, log, at, (size_t)(newline - at));
}

static int read_log(struct curve *curve, struct cluster *cluster, const struct json *pod, struct error *error)
{
    static const struct command_line line = {.index = -1, .tail = -1, .all_attempts = true};
    struct read_log *log = log_is_wanted(&line, pod) ? log_of(curve, pod) : NULL;
    if (!log || log->whole)
        return 0;
    SCOPED_BUFFER text;
    log->failed = log_text_read(cluster, &line, pod, log_position_since(&log->position), &text, error) < 0;
    if (log->failed)
        return -1;
    take_text(curve, log, &text);
    log->whole = !log_may_go_on(&line, pod);
    return 0;
}

static bool has_chief(const struct json *pods)
{
    for (const struct json *pod = json_first(pods); pod; pod = json_next(pod))
        if (pod_is_at(pod, "chief", 0))
            return true;
    return false;
}

/* The oldest pod of the seat that is younger than `after`; pods of a seat follow each other, and their times compare as text. */
static const struct json *next_chief(const struct json *pods, const char *role, const struct json *after)
{
    const struct json *next = NULL;
    const char *last = json_string_at(after, "metadata.creationTimestamp", ""),
               *name = json_string_at(after, "metadata.name", "");
    for (const struct json *pod = json_first(pods); pod; pod = json_next(pod)) {
        const char *created = json_string_at(pod, "metadata.creationTimestamp", "");
        bool is_later = strcmp(created, last) > 0 ||
                        (strcmp(created, last) == 0 && strcmp(json_string_at(pod, "metadata.name", ""), name) > 0);
        if (pod_is_at(pod, role, 0) && is_later &&
            (!next || strcmp(created, json_string_at(next, "metadata.creationTimestamp", "")) < 0))
            next = pod;
    }
    return next;
}

/* The log of an earlier chief may be on a node that is gone; the newest pod may be gone since, or have no log yet. */
static bool may_skip(const struct error *cause, bool newest)
{
    bool is_there = cause->http_status != 404 && cause->http_status != 400;
    return !access_is_denied(cause) && !(newest && is_there);
}

/* The newest log has been read: steps of earlier ones would come after its own, and a dead node would delay each answer. */
static void give_up_failed(struct curve *curve)
{
    for (unsigned i = 0; i + 1 < curve->log_count; i++)
        curve->logs[i].whole |= curve->logs[i].failed;
}

int ui_curves_read(struct ui_curves *curves, struct cluster *cluster, const struct json *job, const struct json *pods,
                   const struct history **ret_history, struct error *error)
{
    struct curve *curve = curve_of(curves, json_string_at(job, "metadata.uid", ""));
    const char *role = has_chief(pods) ? "chief" : "worker";
    const struct json *next;
    curve->used = ++curves->uses;
    for (const struct json *pod = next_chief(pods, role, NULL); pod && !cluster->interrupted; pod = next) {
        struct error cause = ERROR_INIT;
        next = next_chief(pods, role, pod);
        if (read_log(curve, cluster, pod, &cause) == 0 || may_skip(&cause, next == NULL))
            continue;
        *error = cause;
        return access_is_denied(&cause)
                   ? -1
                   : error_wrap(error, "the log of pod %s cannot be read", json_string_at(pod, "metadata.name", ""));
    }
    give_up_failed(curve);
    history_take_checkpoint(&curve->history, json_integer_at(job, "status.progress.lastCheckpointStep", -1));
    *ret_history = &curve->history;
    return 0;
}
