/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/job_entry.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/controller/plan/first_crew.h"
#include "operator/kube/informer.h"

#define OBSTACLE_BASE_MS 2000
#define OBSTACLE_DOUBLINGS_MAX 5
#define OUTAGE_DOUBLINGS_MAX 2 /* short, so that jobs continue soon after the API server is back */
#define ADOPTION_BASE_MS 10000
#define ADOPTION_DOUBLINGS_MAX 6 /* about ten minutes: the job can continue without the pod */

void own_write_note(uint64_t *write, const char *version)
{
    uint64_t number = resource_version_number(version);
    if (write && number > *write)
        *write = number;
}

struct job_entry *job_entry_new(const char *key)
{
    struct job_entry *entry = memory_allocate(1, sizeof *entry);
    entry->key = memory_copy_string(key);
    entry->memory.born_ms = entry->memory.counts_since_ms = entry->memory.pods_changed_ms = FIELD_UNSET;
    entry->memory.behind_since_ms = entry->informing_since_ms = entry->unanswered_since_ms = entry->replaced_since_ms =
        FIELD_UNSET;
    return entry;
}

static void forget_refused(struct job_entry *entry)
{
    for (size_t i = 0; i < entry->memory.refused_count; i++) {
        free(entry->memory.refused[i].uid);
        free(entry->memory.refused[i].words);
    }
    entry->memory.refused_count = 0;
}

#define NODE_KEPT_MS (10 * 60 * 1000)

void job_entry_note_node(struct job_entry *entry, const char *name, enum node_state state, int64_t now_ms)
{
    char *copy = memory_copy_string(name); /* the name may be that of a look that goes */
    size_t kept = 0;
    for (size_t i = 0; i < entry->memory.node_count; i++) {
        struct node_look look = entry->memory.nodes[i];
        if (strcmp(look.name, name) == 0 || look.at_ms > now_ms || look.at_ms <= now_ms - NODE_KEPT_MS)
            free((char *)look.name);
        else
            entry->memory.nodes[kept++] = look;
    }
    if (kept == entry->node_capacity) {
        entry->node_capacity = entry->node_capacity ? 2 * entry->node_capacity : 1;
        entry->memory.nodes = memory_resize(entry->memory.nodes, entry->node_capacity, sizeof *entry->memory.nodes);
    }
    entry->memory.nodes[kept] = (struct node_look){copy, state, now_ms};
    entry->memory.node_count = kept + 1;
}

static void forget_hang(struct job_entry *entry)
{
    for (size_t i = 0; i < entry->memory.hung_count; i++) {
        free((char *)entry->memory.hung[i].pod);
        free((char *)entry->memory.hung[i].message);
    }
    entry->memory.hung_count = 0;
}

static void forget_log(struct job_entry *entry)
{
    free(entry->log.ended_pod);
    free(entry->log.flaw);
    entry->log = (struct log_poll){0};
    free(entry->answers.pod);
    entry->answers = (struct progress_answers){0};
}

void job_entry_free(struct job_entry *entry)
{
    for (size_t i = 0; i < entry->memory.node_count; i++)
        free((char *)entry->memory.nodes[i].name);
    free(entry->memory.nodes);
    forget_refused(entry);
    dropped_fields_clear(&entry->dropped);
    free(entry->memory.refused);
    free(entry->pods);
    free(entry->pod_moves);
    free(entry->waits_since_ms);
    free(entry->status_moves);
    free(entry->memory.gone);
    free(entry->memory.unsure);
    free(entry->memory.finished);
    free((char *)entry->memory.obstacle.message);
    free(entry->document);
    free(entry->document_pod);
    free(entry->asked_pod);
    forget_log(entry);
    forget_hang(entry);
    free(entry->memory.hung);
    free(entry->job_uid);
    free(entry->key);
    free(entry);
}

static void forget_unsure(struct job_entry *entry, enum role role, int64_t index, int64_t incarnation)
{
    for (size_t i = 0; i < entry->memory.unsure_count; i++) {
        const struct unsure_pod *pod = &entry->memory.unsure[i];
        if (pod->role != role || pod->index != index || pod->incarnation != incarnation)
            continue;
        entry->memory.unsure[i] = entry->memory.unsure[--entry->memory.unsure_count];
        return;
    }
}

static void see_unsure(struct job_entry *entry, const struct pod_record *pod)
{
    struct pod_room room;
    if (entry->memory.unsure_count == 0)
        return;
    struct pod_view view = pod_record_view(pod, &room);
    if (view.member && pod_view_is_of(&view, entry->job_uid))
        forget_unsure(entry, view.role, view.index, view.incarnation);
}

void job_entry_note_sure(struct job_entry *entry, const char *uid, const struct action *action)
{
    if (job_entry_is_about(entry, uid))
        forget_unsure(entry, action->role, action->index, action->incarnation);
}

void job_entry_note_unsure(struct job_entry *entry, const char *uid, const struct action *action)
{
    if (!job_entry_is_about(entry, uid))
        return;
    forget_unsure(entry, action->role, action->index, action->incarnation);
    if (entry->memory.unsure_count == entry->unsure_capacity) {
        entry->unsure_capacity = entry->unsure_capacity ? 2 * entry->unsure_capacity : 4;
        entry->memory.unsure =
            memory_resize(entry->memory.unsure, entry->unsure_capacity, sizeof *entry->memory.unsure);
    }
    entry->memory.unsure[entry->memory.unsure_count++] =
        (struct unsure_pod){.role = action->role, .index = action->index, .incarnation = action->incarnation};
}

void job_entry_add_pod(struct job_entry *entry, const struct pod_record *pod)
{
    see_unsure(entry, pod);
    if (entry->pod_count == entry->pod_capacity) {
        entry->pod_capacity = entry->pod_capacity ? 2 * entry->pod_capacity : 4;
        entry->pods = memory_resize(entry->pods, entry->pod_capacity, sizeof *entry->pods);
        if (entry->pod_moves)
            entry->pod_moves = memory_resize(entry->pod_moves, entry->pod_capacity, sizeof *entry->pod_moves);
        if (entry->waits_since_ms)
            entry->waits_since_ms =
                memory_resize(entry->waits_since_ms, entry->pod_capacity, sizeof *entry->waits_since_ms);
    }
    if (entry->waits_since_ms)
        entry->waits_since_ms[entry->pod_count] = FIELD_UNSET;
    if (entry->pod_moves)
        entry->pod_moves[entry->pod_count] = (struct pod_moves){0};
    entry->pods[entry->pod_count++] = pod;
}

static size_t position(const struct job_entry *entry, const struct pod_record *pod)
{
    size_t i = 0;
    while (i < entry->pod_count && entry->pods[i] != pod)
        i++;
    return i;
}

void job_entry_change_pod(struct job_entry *entry, const struct pod_record *old, const struct pod_record *pod)
{
    size_t i = position(entry, old);
    if (i == entry->pod_count)
        return;
    if (entry->pod_moves) {
        struct pod_room rooms[2];
        struct pod_view before = pod_record_view(old, &rooms[0]), after = pod_record_view(pod, &rooms[1]);
        pod_moves_change(&entry->pod_moves[i], &before, &after);
    }
    entry->pods[i] = pod;
}

static void begin_waits(struct job_entry *entry)
{
    entry->waits_since_ms = memory_allocate(entry->pod_capacity, sizeof *entry->waits_since_ms);
    for (size_t i = 0; i < entry->pod_count; i++)
        entry->waits_since_ms[i] = FIELD_UNSET;
}

void job_entry_note_wait(struct job_entry *entry, const struct pod_record *pod, int64_t now_ms)
{
    struct pod_room room;
    struct pod_view view = pod_record_view(pod, &room);
    bool waits = pod_view_waits_in_vain(&view);
    size_t i = waits || entry->waits_since_ms ? position(entry, pod) : entry->pod_count;
    if (i == entry->pod_count)
        return;
    if (!entry->waits_since_ms)
        begin_waits(entry);
    if (!waits)
        entry->waits_since_ms[i] = FIELD_UNSET;
    else if (entry->waits_since_ms[i] == FIELD_UNSET)
        entry->waits_since_ms[i] = now_ms;
}

static void forget_gone(struct job_entry *entry, int64_t incarnation)
{
    entry->memory.gone_count = 0;
    entry->memory.gone_incarnation = incarnation;
}

static void add_gone(struct job_entry *entry, struct gone_pod pod, int64_t incarnation)
{
    if (incarnation < entry->memory.gone_incarnation)
        return;
    if (incarnation > entry->memory.gone_incarnation)
        forget_gone(entry, incarnation);
    if (entry->memory.gone_count == entry->gone_capacity) {
        entry->gone_capacity = entry->gone_capacity ? 2 * entry->gone_capacity : 4;
        entry->memory.gone = memory_resize(entry->memory.gone, entry->gone_capacity, sizeof *entry->memory.gone);
    }
    entry->memory.gone[entry->memory.gone_count++] = pod;
}

static void add_finished(struct job_entry *entry, const struct pod_view *pod)
{
    if (entry->memory.finished_count == entry->finished_capacity) {
        entry->finished_capacity = entry->finished_capacity ? 2 * entry->finished_capacity : 4;
        entry->memory.finished =
            memory_resize(entry->memory.finished, entry->finished_capacity, sizeof *entry->memory.finished);
    }
    entry->memory.finished[entry->memory.finished_count++] =
        (struct finished_pod){.role = pod->role, .index = pod->index, .attempt = pod->attempt};
}

void job_entry_forget_finished(struct job_entry *entry, size_t count)
{
    if (count >= entry->memory.finished_count) {
        entry->memory.finished_count = 0;
        return;
    }
    entry->memory.finished_count -= count;
    memmove(entry->memory.finished, entry->memory.finished + count,
            entry->memory.finished_count * sizeof *entry->memory.finished);
}

void job_entry_note_lost(struct job_entry *entry, const char *uid, const struct action *action, int64_t incarnation)
{
    if (job_entry_is_about(entry, uid))
        add_gone(entry, (struct gone_pod){.role = action->role, .index = action->index}, incarnation);
}

/* Returns whether the pod belongs to the job. A pod without an owner does only if adopt_plan would
 * adopt it; a pod created by somebody else does not count when it vanishes. */
static bool is_of_job(const struct job_entry *entry, const struct pod_view *pod)
{
    if (!entry->job_uid)
        return false;
    return pod_view_is_of(pod, entry->job_uid) ||
           (pod_view_is_orphan_of(pod, entry->job_uid) && pod->adoptable &&
            first_crew_or_recorded(pod, entry->recorded_incarnation, entry->recorded_attempt));
}

void job_entry_note_deleting(struct job_entry *entry, const char *uid, const struct pod_view *pod)
{
    bool counts = job_entry_is_about(entry, uid) && pod->member && pod->role != ROLE_EVALUATOR;
    if (counts && pod->attempt > entry->deleted_attempt)
        entry->deleted_attempt = pod->attempt;
}

void job_entry_note_hang(struct job_entry *entry, int64_t attempt)
{
    if (attempt != entry->hung_attempt)
        forget_hang(entry);
    entry->hung_attempt = attempt;
}

static void keep_hung(struct job_entry *entry, const struct pod_view *pod)
{
    if (entry->memory.hung_count == HUNG_PODS_MAX)
        return;
    if (entry->memory.hung_count == entry->hung_capacity) {
        entry->hung_capacity = entry->hung_capacity ? 2 * entry->hung_capacity : 4;
        entry->memory.hung = memory_resize(entry->memory.hung, entry->hung_capacity, sizeof *entry->memory.hung);
    }
    entry->memory.hung[entry->memory.hung_count++] =
        (struct hung_pod){memory_copy_string(pod->name), memory_copy_string(pod->termination_message)};
}

/* Pods that had ended by themselves, and pods of attempts of which we have deleted pods, count only
 * if they were disrupted. */
void job_entry_note_vanished(struct job_entry *entry, const struct pod_record *pod, int64_t now_ms)
{
    struct pod_room room;
    struct pod_view view = pod_record_view(pod, &room);
    bool of_its_own_accord = pod_view_ended(&view) && !pod_view_was_asked_to_end(&view);
    if (!view.member || view.role == ROLE_EVALUATOR || !is_of_job(entry, &view))
        return;
    if (entry->hung_attempt > 0 && view.attempt == entry->hung_attempt)
        keep_hung(entry, &view);
    if (!pod_view_was_disrupted(&view) && (of_its_own_accord || view.attempt <= entry->deleted_attempt))
        return;
    entry->memory.vanished_ms = now_ms;
    entry->memory.vanished_attempt = view.attempt;
}

void job_entry_remove_pod(struct job_entry *entry, const struct pod_record *pod)
{
    struct pod_room room;
    struct pod_view view = pod_record_view(pod, &room);
    size_t i = position(entry, pod);
    if (i < entry->pod_count) {
        entry->pods[i] = entry->pods[--entry->pod_count];
        if (entry->pod_moves)
            entry->pod_moves[i] = entry->pod_moves[entry->pod_count];
        if (entry->waits_since_ms)
            entry->waits_since_ms[i] = entry->waits_since_ms[entry->pod_count];
    }
    if (!view.member || !is_of_job(entry, &view))
        return;
    add_gone(entry, (struct gone_pod){.role = view.role, .index = view.index}, view.incarnation);
    if (!entry->over && view.current && pod_view_finished(&view))
        add_finished(entry, &view);
}

bool job_entry_has_sent(const struct job_entry *entry, const struct training_job *job)
{
    return entry->push_attempt > 0 && entry->push_attempt >= job->status.attempt;
}

bool job_entry_sent_before(const struct job_entry *entry, const struct training_job *job)
{
    return entry->push_attempt > 0 && entry->push_attempt < job->status.attempt;
}

void job_entry_note_document(struct job_entry *entry, const struct plan *plan)
{
    entry->document_fresh |= !plan->took_progress;
    entry->document_planned = plan->took_progress && plan->write_status;
}

void job_entry_end_document(struct job_entry *entry, const struct plan *plan, bool failed)
{
    bool begins_attempt = plan->status.attempt != plan->attempt;
    entry->document_fresh |= entry->document_planned && failed && !begins_attempt;
    entry->document_planned = false;
}

bool job_entry_is_about(const struct job_entry *entry, const char *uid)
{
    return uid && entry->job_uid && strcmp(entry->job_uid, uid) == 0;
}

void job_entry_set_job(struct job_entry *entry, const char *uid)
{
    if (job_entry_is_about(entry, uid))
        return;
    job_entry_clear_obstacle(entry);
    forget_refused(entry);
    dropped_fields_clear(&entry->dropped);
    free(entry->document);
    free(entry->document_pod);
    free(entry->asked_pod);
    free(entry->job_uid);
    forget_log(entry);
    forget_hang(entry);
    entry->hung_attempt = entry->memory.hang_reported_attempt = 0;
    entry->document = NULL;
    entry->document_pod = entry->asked_pod = NULL;
    entry->unanswered_since_ms = FIELD_UNSET;
    entry->voice = CHIEF_HEARD;
    entry->memory.notice = NOTICE_OPEN;
    entry->document_is_evaluators = false;
    entry->document_fresh = entry->document_planned = entry->push_secret_sent = false;
    entry->push_attempt = entry->push_free_ms = 0;
    entry->memory.born_ms = entry->memory.counts_since_ms = entry->memory.pods_changed_ms =
        entry->memory.behind_since_ms = FIELD_UNSET;
    entry->memory.foreign_reported = 0;
    entry->quota_retry_ms = 0;
    entry->replaced_since_ms = FIELD_UNSET;
    entry->memory.queue_change_reported = entry->fields_ignored = false;
    free(entry->status_moves);
    entry->status_moves = NULL;
    entry->memory.certificate.number = FIELD_UNSET;
    entry->memory.key_look = (struct crew_key_look){0};
    forget_gone(entry, 0);
    entry->memory.unsure_count = 0;
    entry->memory.vanished_attempt = entry->deleted_attempt = 0;
    entry->memory.finished_count = 0;
    entry->over = false;
    entry->memory.inherited_incarnation = 0;
    entry->recorded_incarnation = entry->recorded_attempt = 0;
    entry->lists = 0;
    entry->job_uid = uid ? memory_copy_string(uid) : NULL;
}

bool job_entry_find_pod(const struct job_entry *entry, const struct training_job *job, enum role role,
                        struct pod_room *room, struct pod_view *ret_pod)
{
    const struct pod_record *found = NULL;
    int64_t incarnation = 0;
    for (size_t i = 0; i < entry->pod_count; i++) {
        if (!pod_record_holds(entry->pods[i], role, 0))
            continue;
        struct pod_view pod = pod_record_view(entry->pods[i], room);
        if (!pod_view_is_of(&pod, job->uid) || (found && pod.incarnation <= incarnation))
            continue;
        found = entry->pods[i];
        incarnation = pod.incarnation;
    }
    if (found)
        *ret_pod = pod_record_view(found, room);
    return found != NULL;
}

static void move_pods(struct job_entry *entry, int64_t by_ms)
{
    if (!entry->pod_moves && entry->pod_capacity > 0)
        entry->pod_moves = memory_allocate(entry->pod_capacity, sizeof *entry->pod_moves);
    for (size_t i = 0; i < entry->pod_count; i++) {
        struct pod_room room;
        struct pod_view pod = pod_record_view(entry->pods[i], &room);
        pod_moves_clock_set(&entry->pod_moves[i], &pod, by_ms);
        if (entry->waits_since_ms && entry->waits_since_ms[i] != FIELD_UNSET)
            entry->waits_since_ms[i] += by_ms;
    }
}

void job_entry_see_status(struct job_entry *entry, const struct job_status *status)
{
    if (!first_crew_may_lie_ahead(status))
        entry->memory.born_ms = FIELD_UNSET;
    entry->over = status_terminal(status);
    entry->recorded_incarnation =
        status->incarnation > entry->recorded_incarnation ? status->incarnation : entry->recorded_incarnation;
    entry->recorded_attempt = status->attempt > entry->recorded_attempt ? status->attempt : entry->recorded_attempt;
}

/* Notes that pods of attempts before `attempt` are deleted by whichever operator began that
 * attempt. */
static void sent_away_below(struct job_entry *entry, int64_t attempt)
{
    if (attempt - 1 > entry->deleted_attempt)
        entry->deleted_attempt = attempt - 1;
}

void job_entry_see_lists(struct job_entry *entry, uint64_t lists, const struct job_status *status)
{
    if (lists != entry->born_lists && entry->pod_write > 0)
        entry->memory.born_ms = FIELD_UNSET;
    if (lists != entry->lists) {
        entry->memory.inherited_incarnation = status->incarnation;
        sent_away_below(entry, status->attempt);
    }
    entry->lists = lists;
}

void job_entry_clock_set(struct job_entry *entry, int64_t by_ms, const struct job_status *status)
{
    int64_t *const noted[] = {&entry->memory.born_ms,         &entry->memory.counts_since_ms,
                              &entry->memory.pods_changed_ms, &entry->memory.behind_since_ms,
                              &entry->informing_since_ms,     &entry->unanswered_since_ms,
                              &entry->replaced_since_ms};
    for (size_t i = 0; i < sizeof noted / sizeof *noted; i++)
        if (*noted[i] != FIELD_UNSET)
            *noted[i] += by_ms;
    for (size_t i = 0; i < entry->memory.refused_count; i++)
        entry->memory.refused[i].retry_ms += by_ms;
    entry->memory.obstacle.retry_ms += by_ms;
    entry->quota_retry_ms += by_ms;
    entry->memory.vanished_ms += by_ms;
    entry->poll_ms += by_ms;
    entry->log.turn_ms += by_ms;
    entry->log.ended_ms += by_ms;
    entry->answers.newest.asked_ms += by_ms;
    entry->answers.newest.since_ms += by_ms;
    entry->memory.certificate.from_ms += by_ms;
    entry->memory.key_look.at_ms += by_ms;
    for (size_t i = 0; i < entry->memory.node_count; i++)
        entry->memory.nodes[i].at_ms += by_ms;
    move_pods(entry, by_ms);
    if (status && !entry->status_moves)
        entry->status_moves = memory_allocate(1, sizeof *entry->status_moves);
    if (status)
        status_moves_clock_set(entry->status_moves, status, by_ms);
}

bool job_entry_has_pod_on(const struct job_entry *entry, const char *node)
{
    struct pod_room room;
    for (size_t i = 0; i < entry->pod_count; i++)
        if (strcmp(pod_record_view(entry->pods[i], &room).node, node) == 0)
            return true;
    return false;
}

const struct pod_view **job_entry_views(const struct job_entry *entry, struct arena *arena)
{
    const struct pod_view **views = pod_record_views(entry->pods, entry->pod_count, arena);
    for (size_t i = 0; (entry->pod_moves || entry->waits_since_ms) && i < entry->pod_count; i++) {
        struct pod_view *moved = arena_allocate(arena, 1, sizeof *moved);
        *moved = *views[i];
        if (entry->pod_moves)
            pod_moves_apply(&entry->pod_moves[i], moved);
        if (entry->waits_since_ms)
            moved->waiting_ms = entry->waits_since_ms[i];
        views[i] = moved;
    }
    return views;
}

void job_entry_forget_reported(struct job_entry *entry, const struct plan *plan)
{
    if (plan->foreign < entry->memory.foreign_reported)
        entry->memory.foreign_reported = plan->foreign;
    entry->memory.queue_change_reported &= plan->queue_change_waits;
}

void job_entry_note_reported(struct job_entry *entry, const struct plan *plan)
{
    entry->memory.foreign_reported = plan->foreign;
    entry->memory.queue_change_reported = plan->queue_change_waits;
    entry->log.flaw_reported |= plan->reports_log_flaw;
    if (plan->reports_hang) {
        entry->memory.hang_reported_attempt = plan->hung_attempt;
        job_entry_note_hang(entry, 0);
    }
}

static struct refused_pod *refused_pod(struct job_entry *entry, const char *pod_uid)
{
    for (size_t i = 0; i < entry->memory.refused_count; i++)
        if (strcmp(entry->memory.refused[i].uid, pod_uid) == 0)
            return &entry->memory.refused[i];
    if (entry->memory.refused_count == entry->refused_capacity) {
        entry->refused_capacity = entry->refused_capacity ? 2 * entry->refused_capacity : 4;
        entry->memory.refused =
            memory_resize(entry->memory.refused, entry->refused_capacity, sizeof *entry->memory.refused);
    }
    struct refused_pod *pod = &entry->memory.refused[entry->memory.refused_count++];
    *pod = (struct refused_pod){.uid = memory_copy_string(pod_uid)};
    return pod;
}

void job_entry_refuse_adoption(struct job_entry *entry, const char *pod_uid, const char *words, int64_t now_ms)
{
    struct refused_pod *pod = refused_pod(entry, pod_uid);
    unsigned doublings = pod->count < ADOPTION_DOUBLINGS_MAX ? pod->count : ADOPTION_DOUBLINGS_MAX;
    pod->count++;
    pod->retry_ms = now_ms + ((int64_t)ADOPTION_BASE_MS << doublings);
    char *copy = memory_copy_string(words);
    free(pod->words);
    pod->words = copy;
}

void job_entry_set_obstacle(struct job_entry *entry, const char *uid, enum obstacle_kind kind, const char *plural,
                            const char *message, int64_t now_ms)
{
    if (!job_entry_is_about(entry, uid))
        return;
    entry->obstacle_count = entry->memory.obstacle.kind == kind ? entry->obstacle_count + 1 : 0;
    unsigned most = kind == OBSTACLE_OUTAGE ? OUTAGE_DOUBLINGS_MAX : OBSTACLE_DOUBLINGS_MAX;
    unsigned doublings = entry->obstacle_count < most ? entry->obstacle_count : most;
    char *copy = memory_copy_string(message);
    free((char *)entry->memory.obstacle.message);
    int64_t retry_ms = now_ms + ((int64_t)OBSTACLE_BASE_MS << doublings);
    entry->memory.obstacle = (struct obstacle){kind, copy, retry_ms, plural};
}

void job_entry_clear_obstacle(struct job_entry *entry)
{
    free((char *)entry->memory.obstacle.message);
    entry->memory.obstacle = (struct obstacle){.kind = OBSTACLE_NONE};
    entry->obstacle_count = 0;
}
