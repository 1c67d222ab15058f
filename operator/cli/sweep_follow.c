/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/sweep_print.h"
#include "operator/cli/view_print.h"
#include "operator/kube/informer.h"

#define LAST_TRIALS_MS 2000
#define DECISION_MS 10000 /* how long the operator may take to decide whether a sweep goes on */
/* A sweep that is shown again tells of all its trials at once. */
#define EVENTS_MAX (8 * 1024 * 1024)

struct sweep_follow {
    struct training_sweep sweep;
    char *name_space, *field, *selector;
    struct informer *sweeps, *trials;
    struct access to_sweeps, to_trials;
    bool deleted, was_over;
    bool holds_events;                    /* `continues`, and it is not known yet whether the sweep goes on */
    int64_t over_ms;                      /* when the sweep was first seen to be over; 0: it is not */
    char *obstacle;                       /* why trials cannot be created, as told; NULL: nothing was told */
    bool told[SWEEP_TRIALS_MAX];          /* trials that were printed as stopped early, or as failed without a job */
    int64_t pauses;                       /* how many were printed */
    int64_t told_pause[SWEEP_TRIALS_MAX]; /* the step of the pause that was printed; 0: none was */
    struct buffer events;                 /* whole lines that are still to be printed */
};

/* ---------------------------------------------------------------- the sweep */

/* Tells it once, and anew when it has changed. */
static void take_obstacle(struct sweep_follow *follow)
{
    const struct condition *running = &follow->sweep.status.conditions[SWEEP_RUNNING];
    bool blocked = running->reason && strcmp(running->reason, "TrialNotCreated") == 0;
    if (blocked && (!follow->obstacle || strcmp(follow->obstacle, running->message) != 0))
        buffer_format(&follow->events, "%s\n", running->message);
    free(follow->obstacle);
    follow->obstacle = blocked ? memory_copy_string(running->message) : NULL;
}

static bool is_news(struct sweep_follow *follow, unsigned trial)
{
    const struct trial_record *result = &follow->sweep.status.results[trial];
    if (result->state == TRIAL_PAUSED)
        return result->step != FIELD_UNSET && result->step != follow->told_pause[trial];
    return (result->state == TRIAL_STOPPED || result->state == TRIAL_FAILED) && !follow->told[trial];
}

/* Prints the trials that were stopped early or paused, whose jobs say only that they are suspended, and those that have failed because their
 * values make no valid job. The sweep's results tell both. */
static void take_results(struct sweep_follow *follow)
{
    const struct sweep_status *status = &follow->sweep.status;
    for (unsigned i = 0; i < status->result_count && i < SWEEP_TRIALS_MAX; i++) {
        if (!is_news(follow, i))
            continue;
        struct trial_line *line = trial_line_of_result(&follow->sweep, i);
        if (!line->failed || *line->message)
            sweep_print_end(&follow->sweep, line, &follow->events);
        follow->pauses += line->paused;
        if (line->paused)
            follow->told_pause[i] = line->step;
        else
            follow->told[i] = true;
        trial_line_free(line);
    }
}

/* An older or newer operator may have accepted what this version does not; it is shown all the same. */
static void take_sweep(struct sweep_follow *follow, const struct json *object)
{
    training_sweep_release(&follow->sweep);
    training_sweep_parse(object, &follow->sweep, NULL);
}

static void sweep_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)key, (void)old;
    struct sweep_follow *follow = context;
    take_sweep(follow, item);
    take_obstacle(follow);
    take_results(follow);
    follow->was_over &= sweep_is_over(&follow->sweep);
}

static void sweep_seen(void *context, const char *key, const void *item)
{
    struct sweep_follow *follow = context;
    sweep_changed(context, key, NULL, item);
    follow->was_over = sweep_is_over(&follow->sweep);
}

static void sweep_gone(void *context, const char *key, const void *item)
{
    (void)key;
    (void)item;
    ((struct sweep_follow *)context)->deleted = true;
}

/* ---------------------------------------------------------------- the trials */

static void *trial_parse(void *context, const struct json *object)
{
    struct trial_line *line = trial_line_new(&((struct sweep_follow *)context)->sweep, object);
    if (line->number >= 0)
        return line;
    trial_line_free(line);
    return NULL;
}

static void trial_release(void *item)
{
    trial_line_free(item);
}

static void trial_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)key;
    struct sweep_follow *follow = context;
    if (trial_line_is_over(item) && !(old && trial_line_is_over(old)))
        sweep_print_end(&follow->sweep, item, &follow->events);
}

static void trial_seen(void *context, const char *key, const void *item)
{
    trial_changed(context, key, NULL, item);
}

/* ---------------------------------------------------------------- both */

struct sweep_follow *sweep_follow_start(struct kube_client *client, const struct json *manifest, const char *name_space,
                                        bool continues)
{
    struct sweep_follow *follow = memory_allocate(1, sizeof *follow);
    training_sweep_parse(manifest, &follow->sweep, NULL);
    follow->holds_events = continues;
    follow->name_space = memory_copy_string(name_space);
    follow->field = memory_format("metadata.name=%s", follow->sweep.name);
    follow->selector = memory_format("%s=%s", LABEL_SWEEP_NAME, follow->sweep.name);
    buffer_init(&follow->events, EVENTS_MAX);
    struct informer_options sweeps = {
        .resource = {API_GROUP, API_VERSION, TRAINING_SWEEP_PLURAL},
        .name_space = follow->name_space,
        .field_selector = follow->field,
        .parse = informer_item_copy,
        .item_free = informer_item_free,
        .on_added = sweep_seen,
        .on_changed = sweep_changed,
        .on_deleted = sweep_gone,
        .context = follow,
    };
    struct informer_options trials = {
        .resource = {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL},
        .name_space = follow->name_space,
        .label_selector = follow->selector,
        .parse = trial_parse,
        .item_free = trial_release,
        .on_added = trial_seen,
        .on_changed = trial_changed,
        .context = follow,
    };
    follow->sweeps = informer_start(client, &sweeps);
    follow->trials = informer_start(client, &trials);
    return follow;
}

void sweep_follow_free(struct sweep_follow *follow)
{
    informer_free(follow->sweeps);
    informer_free(follow->trials);
    training_sweep_release(&follow->sweep);
    buffer_release(&follow->events);
    free(follow->name_space);
    free(follow->field);
    free(follow->selector);
    free(follow->obstacle);
    free(follow);
}

int sweep_follow_check(struct sweep_follow *follow, struct error *error)
{
    int64_t now_ms = clock_now_ms();
    if (access_check(&follow->to_sweeps, follow->sweeps, now_ms, error) < 0)
        return -1;
    return access_check(&follow->to_trials, follow->trials, now_ms, error);
}

static int64_t count_ends(const struct sweep_follow *follow)
{
    int64_t count = 0;
    const char *key;
    const void *item;
    for (size_t at = 0; informer_next(follow->trials, &at, &key, &item);)
        count += trial_line_is_over(item);
    return count;
}

/* The spec of a sweep that had ended was changed, and the operator has yet to decide whether it goes on. */
static bool awaits_decision(const struct sweep_follow *follow, int64_t now_ms)
{
    return follow->sweep.status.observed_generation < follow->sweep.generation &&
           now_ms - follow->over_ms < DECISION_MS;
}

bool sweep_follow_is_over(struct sweep_follow *follow, int64_t now_ms)
{
    const struct sweep_status *status = &follow->sweep.status;
    if (follow->deleted)
        return true;
    if (!sweep_is_over(&follow->sweep)) {
        follow->over_ms = 0;
        return false;
    }
    if (follow->over_ms == 0)
        follow->over_ms = now_ms;
    if (awaits_decision(follow, now_ms))
        return false;
    return (informer_synced(follow->trials) &&
            count_ends(follow) >= status->trials.succeeded + status->trials.failed + status->trials.diverged) ||
           now_ms - follow->over_ms > LAST_TRIALS_MS;
}

bool sweep_follow_deleted(const struct sweep_follow *follow)
{
    return follow->deleted;
}

bool sweep_follow_synced(const struct sweep_follow *follow)
{
    return informer_synced(follow->sweeps) && informer_synced(follow->trials);
}

bool sweep_follow_was_over(const struct sweep_follow *follow)
{
    return follow->was_over;
}

const struct training_sweep *sweep_follow_sweep(const struct sweep_follow *follow)
{
    return &follow->sweep;
}

void sweep_follow_view(const struct sweep_follow *follow, struct sweep_view *ret_view)
{
    *ret_view = (struct sweep_view){.sweep = &follow->sweep};
    const char *key;
    const void *item;
    for (size_t at = 0; informer_next(follow->trials, &at, &key, &item);)
        sweep_view_add(ret_view, item);
    sweep_view_complete(ret_view);
}

/* ---------------------------------------------------------------- what is shown */

static void show_block(struct sweep_follow *follow, struct terminal *terminal, int64_t now_ms)
{
    SCOPED(sweep_view_release) struct sweep_view view;
    SCOPED_BUFFER block = BUFFER_INIT(VIEW_PRINT_MAX);
    sweep_follow_view(follow, &view);
    if (follow->events.length > 0)
        terminal_clear(terminal);
    terminal_print_events(terminal, &follow->events);
    buffer_append_byte(&block, '\n', NULL);
    sweep_print_block(&view, now_ms, terminal_width(terminal), &block);
    terminal_draw(terminal, buffer_text(&block));
}

static void show_line(struct sweep_follow *follow, struct terminal *terminal, int64_t now_ms)
{
    const struct sweep_status *status = &follow->sweep.status;
    int64_t done = sweep_done(&follow->sweep);
    terminal_print_events(terminal, &follow->events);
    if (status->start_ms != FIELD_UNSET &&
        terminal_line_due(terminal, done + follow->pauses, done == status->trials.total, now_ms)) {
        SCOPED(sweep_view_release) struct sweep_view view;
        SCOPED_BUFFER line = BUFFER_INIT(VIEW_PRINT_MAX);
        sweep_follow_view(follow, &view);
        sweep_print_line(&view, now_ms, &line);
        puts(buffer_text(&line));
    }
    fflush(stdout);
}

/* Once it is known whether the sweep goes on, counts the trials that an earlier command has printed, instead of printing them again. */
static void release_events(struct sweep_follow *follow, int64_t now_ms)
{
    (void)sweep_follow_is_over(follow, now_ms); /* notes since when */
    bool is_over = sweep_is_over(&follow->sweep);
    if (!follow->holds_events || !sweep_follow_synced(follow) || (is_over && awaits_decision(follow, now_ms)))
        return;
    follow->holds_events = false;
    if (is_over || follow->events.length == 0)
        return;
    buffer_clear(&follow->events);
    buffer_format(&follow->events, "%lld of %lld trials were done before this command\n",
                  (long long)sweep_done(&follow->sweep), (long long)follow->sweep.status.trials.total);
    if (follow->obstacle)
        buffer_format(&follow->events, "%s\n", follow->obstacle);
}

void sweep_follow_show(struct sweep_follow *follow, struct terminal *terminal, int64_t now_ms)
{
    release_events(follow, now_ms);
    if (follow->holds_events)
        return;
    if (terminal->live)
        show_block(follow, terminal, now_ms);
    else
        show_line(follow, terminal, now_ms);
}
