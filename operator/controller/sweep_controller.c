/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep_controller.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/log.h"
#include "common/memory.h"
#include "operator/controller/execute/sweep_execute.h"
#include "operator/controller/plan/plan.h"
#include "operator/controller/sweep/early_stopping.h"
#include "operator/controller/sweep/trial_build.h"
#include "operator/kube/hash_map.h"
#include "operator/kube/informer.h"

/* An own write that the cache does not show brings its event as a rule; this is for when it does not. */
#define UNSEEN_RETRY_MS 2000
#define FAILED_RETRY_MS 200
#define FAILED_DOUBLINGS_MAX 8

struct sweep_controller {
    struct kube_client *client;
    const char *controller_name;
    struct informer *sweeps, *trials;
    struct hash_map entries; /* "namespace/name" -> struct sweep_entry */
    struct event_recorder *recorder;
    struct sweep_executor executor;
    const struct trial_view **views; /* of the reconcile that is under way */
    size_t view_capacity;
    bool refused; /* the log says already that the API server does not serve or show sweeps */
    bool stopped;
};

/* A sweep in the cache. */
struct sweep_record {
    struct training_sweep sweep;
    char *invalid; /* what is wrong with its spec; NULL: nothing */
};

/* ---------------------------------------------------------------- waking */

static void reconcile_due(void *context);

static struct sweep_entry *entry_of(struct sweep_controller *controller, const char *key)
{
    struct sweep_entry *entry = hash_map_get(&controller->entries, key);
    if (!entry) {
        entry = sweep_entry_new(key, controller);
        hash_map_set(&controller->entries, entry->key, entry);
    }
    return entry;
}

static int64_t now(void)
{
    return clock_monotonic_ns() / 1000000;
}

static int64_t pace_ms(const struct sweep_controller *controller, const struct sweep_entry *entry)
{
    const struct sweep_record *record = informer_get(controller->sweeps, entry->key);
    return record ? sweep_entry_pace_ms(entry, record->sweep.status.result_count, now()) : 0;
}

/* Reconciles after `delay_ms`, or earlier where that is due already. */
static void look_after(struct sweep_entry *entry, int64_t delay_ms)
{
    struct sweep_controller *controller = entry->controller;
    int64_t due_ms = now() + delay_ms;
    if (controller->stopped || (entry->timer && entry->due_ms <= due_ms))
        return;
    if (entry->timer)
        event_timer_cancel(entry->timer);
    entry->due_ms = due_ms;
    entry->timer = event_timer_start(kube_client_loop(controller->client), delay_ms, reconcile_due, entry);
}

static void look(struct sweep_controller *controller, const char *key)
{
    struct sweep_entry *entry = entry_of(controller, key);
    entry->dirty = true;
    look_after(entry, pace_ms(controller, entry));
}

/* ---------------------------------------------------------------- reconcile */

static void add_view(struct sweep_controller *controller, size_t *count, const struct trial_view *trial)
{
    if (*count == controller->view_capacity) {
        controller->view_capacity = controller->view_capacity ? 2 * controller->view_capacity : 64;
        controller->views = memory_resize(controller->views, controller->view_capacity, sizeof *controller->views);
    }
    controller->views[(*count)++] = trial;
}

static size_t trials_of(struct sweep_controller *controller, const struct sweep_entry *entry)
{
    size_t count = 0;
    const char *key;
    const void *item;
    for (size_t at = 0; informer_next(controller->trials, &at, &key, &item);)
        if (strcmp(((const struct trial_view *)item)->sweep_uid, entry->uid) == 0)
            add_view(controller, &count, item);
    for (size_t i = 0; i < entry->ended_count; i++)
        add_view(controller, &count, entry->ended[i]);
    return count;
}

static void reconcile(struct sweep_controller *controller, struct sweep_entry *entry, const struct sweep_record *record)
{
    struct sweep_plan plan = {0};
    sweep_entry_set_sweep(entry, record->sweep.uid);
    if (entry->ended_count > 0)
        sweep_entry_forget_counted(entry, &record->sweep);
    size_t trial_count = trials_of(controller, entry);
    struct sweep_input input = {
        .sweep = &record->sweep,
        .invalid = record->invalid,
        .trials = controller->views,
        .trial_count = trial_count,
        .notes = entry->notes,
        .note_count = entry->note_count,
        .obstacle = entry->obstacle,
        .now_ms = clock_now_ms(),
    };
    plan_sweep(&input, &plan);
    entry->planned_ms = now();
    entry->dirty = false;
    if (plan.again_ms > 0)
        look_after(entry, plan.again_ms - input.now_ms);
    if (plan.action_count > 0 || plan.write_status) {
        entry->executing = true;
        sweep_execute(&controller->executor, entry, &record->sweep, &plan);
    }
    sweep_plan_release(&plan);
}

static bool is_ours(const struct sweep_controller *controller, const struct sweep_record *record)
{
    const char *managed_by = json_string_at(record->sweep.template, "managedBy", NULL);
    return plan_is_managed_by(managed_by, controller->controller_name);
}

static void reconcile_due(void *context)
{
    struct sweep_entry *entry = context;
    struct sweep_controller *controller = entry->controller;
    entry->timer = NULL;
    if (controller->stopped || entry->executing || !informer_synced(controller->sweeps) ||
        !informer_synced(controller->trials))
        return;
    const struct sweep_record *record = informer_get(controller->sweeps, entry->key);
    if (!record) {
        hash_map_remove(&controller->entries, entry->key);
        sweep_entry_free(entry);
    } else if (!is_ours(controller, record)) {
        entry->dirty = false;
    } else if (!informer_has_seen(controller->sweeps, entry->sweep_write) ||
               !informer_has_seen(controller->trials, entry->trial_write)) {
        look_after(entry, UNSEEN_RETRY_MS);
    } else {
        reconcile(controller, entry, record);
    }
}

static void executed(void *context, struct sweep_entry *entry, const struct error *failed, bool moved)
{
    struct sweep_controller *controller = context;
    entry->executing = false;
    if (!failed) {
        entry->failures = 0;
    } else if (failed->kind != ERROR_CONFLICT && failed->kind != ERROR_CANCELLED) {
        log_warning("the API server refused a write", "sweep", entry->key, "kind", error_kind_name(failed->kind), "why",
                    failed->message, NULL);
    }
    if (controller->stopped)
        return;
    if (failed)
        look_after(entry, (int64_t)FAILED_RETRY_MS
                              << (entry->failures < FAILED_DOUBLINGS_MAX ? entry->failures++ : FAILED_DOUBLINGS_MAX));
    else if (moved || entry->dirty)
        look_after(entry, pace_ms(controller, entry));
}

/* ---------------------------------------------------------------- informers */

static void *parse_sweep(void *context, const struct json *object)
{
    (void)context;
    struct error error = ERROR_INIT;
    struct sweep_record *record = memory_allocate(1, sizeof *record);
    if (training_sweep_parse(object, &record->sweep, &error) < 0)
        record->invalid = memory_copy_string(error.message);
    return record;
}

static void free_sweep(void *item)
{
    struct sweep_record *record = item;
    training_sweep_release(&record->sweep);
    free(record->invalid);
    free(record);
}

static void sweep_event(void *context, const char *key, const void *item)
{
    (void)item;
    look(context, key);
}

static void sweep_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    (void)item;
    look(context, key);
}

static void *parse_trial(void *context, const struct json *object)
{
    (void)context;
    return trial_view_new(object);
}

static void free_trial(void *item)
{
    trial_view_free(item);
}

/* "namespace/trial" and the sweep's name make the sweep's key. NULL: the job belongs to no sweep. */
static char *sweep_key(const char *key, const struct trial_view *trial)
{
    size_t length = strcspn(key, "/");
    return *trial->sweep_name == '\0' ? NULL : memory_format("%.*s/%s", (int)length, key, trial->sweep_name);
}

static void look_at_sweep_of(struct sweep_controller *controller, const char *key, const struct trial_view *trial)
{
    SCOPED_FREE char *sweep = sweep_key(key, trial);
    if (sweep)
        look(controller, sweep);
}

static void trial_added(void *context, const char *key, const void *item)
{
    look_at_sweep_of(context, key, item);
}

static bool has_reached_a_rung(struct sweep_controller *controller, const char *key, const struct trial_view *before,
                               const struct trial_view *after)
{
    SCOPED_FREE char *name = sweep_key(key, after);
    const struct sweep_record *record = name ? informer_get(controller->sweeps, name) : NULL;
    if (!record)
        return false;
    const struct training_sweep *sweep = &record->sweep;
    const char *metric = sweep->objective.metric;
    return early_stopping_rung(sweep, trial_view_steps(after, metric)) >
           early_stopping_rung(sweep, trial_view_steps(before, metric));
}

static void trial_changed(void *context, const char *key, const void *old, const void *item)
{
    if (!trial_view_has_moved(old, item) && !has_reached_a_rung(context, key, old, item))
        return;
    look_at_sweep_of(context, key, old);
    look_at_sweep_of(context, key, item);
}

/* It may still stand in the status as one that was never seen. */
static void trial_deleted(void *context, const char *key, const void *item)
{
    struct sweep_controller *controller = context;
    const struct trial_view *trial = item;
    SCOPED_FREE char *sweep = sweep_key(key, trial);
    const struct sweep_record *record = sweep ? informer_get(controller->sweeps, sweep) : NULL;
    if (!record || strcmp(record->sweep.uid, trial->sweep_uid) != 0 ||
        record->sweep.status.completion_ms != FIELD_UNSET)
        return;
    struct sweep_entry *entry = entry_of(controller, sweep);
    int64_t number = trial_number(&record->sweep, trial->name);
    sweep_entry_set_sweep(entry, record->sweep.uid);
    if (number >= 0)
        sweep_entry_note(entry, number, TRIAL_NOTE_SEEN, NULL);
    if (number >= 0 && (trial->succeeded || trial->failed))
        sweep_entry_keep_ended(entry, trial);
    look(controller, sweep);
}

static void look_at_all(void *context)
{
    struct sweep_controller *controller = context;
    const char *key;
    void *entry;
    for (size_t at = 0; hash_map_next(&controller->entries, &at, &key, &entry);)
        look_after(entry, 0);
}

/* Jobs can be trained without sweeps: the definition may be missing, or the operator's role older than it. */
static void trouble(void *context, const struct error *error)
{
    struct sweep_controller *controller = context;
    bool refusal = error->http_status == 401 || error->http_status == 403 || error->http_status == 404;
    if (!refusal || !controller->refused)
        log_warning(refusal ? "sweeps cannot be watched; jobs are not affected"
                            : "watching sweeps failed, trying again",
                    "why", error->message, NULL);
    controller->refused |= refusal;
}

static void access_restored(void *context)
{
    struct sweep_controller *controller = context;
    controller->refused = false;
    look_at_all(controller);
}

static struct informer_options options_of(struct sweep_controller *controller, const char *plural,
                                          const char *name_space)
{
    return (struct informer_options){
        .resource = {API_GROUP, API_VERSION, plural},
        .name_space = name_space,
        .on_synced = look_at_all,
        .on_access_restored = access_restored,
        .on_failure = trouble,
        .context = controller,
    };
}

static void start_informers(struct sweep_controller *controller, const char *name_space)
{
    struct informer_options sweeps = options_of(controller, TRAINING_SWEEP_PLURAL, name_space);
    sweeps.parse = parse_sweep;
    sweeps.item_free = free_sweep;
    sweeps.on_added = sweep_event;
    sweeps.on_changed = sweep_changed;
    sweeps.on_deleted = sweep_event;
    struct informer_options trials = options_of(controller, TRAINING_JOB_PLURAL, name_space);
    trials.label_selector = LABEL_SWEEP_NAME;
    trials.parse = parse_trial;
    trials.item_free = free_trial;
    trials.on_added = trial_added;
    trials.on_changed = trial_changed;
    trials.on_deleted = trial_deleted;
    controller->sweeps = informer_start(controller->client, &sweeps);
    controller->trials = informer_start(controller->client, &trials);
}

/* ---------------------------------------------------------------- life cycle */

struct sweep_controller *sweep_controller_start(struct kube_client *client, const char *name_space,
                                                const char *controller_name, const char *instance)
{
    struct sweep_controller *controller = memory_allocate(1, sizeof *controller);
    controller->client = client;
    controller->controller_name = controller_name;
    hash_map_init_keys_in_values(&controller->entries);
    struct event_recorder_options events = {.controller = API_GROUP "/operator", .instance = instance};
    controller->recorder = event_recorder_new(client, &events);
    controller->executor = (struct sweep_executor){
        .client = client, .recorder = controller->recorder, .done = executed, .context = controller};
    start_informers(controller, name_space);
    return controller;
}

void sweep_controller_stop(struct sweep_controller *controller)
{
    controller->stopped = true;
    informer_free(controller->sweeps);
    informer_free(controller->trials);
    event_recorder_stop(controller->recorder);
}

void sweep_controller_free(struct sweep_controller *controller)
{
    const char *key;
    void *entry;
    event_recorder_free(controller->recorder);
    for (size_t at = 0; hash_map_next(&controller->entries, &at, &key, &entry);)
        sweep_entry_free(entry);
    hash_map_release(&controller->entries, NULL);
    free(controller->views);
    free(controller);
}
