/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the plan against a model of a cluster: pods start, fail, are deleted and vanish at random, caches lag, and the operator is killed
 * before or after any single write, with a create still under way. The rules of the contract are checked at every write, including a
 * second classification of each end and of its successor's delay, and every job must reach its end.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/controller/objects/queue_build.h"
#include "operator/controller/plan/ending.h"
#include "operator/controller/plan/first_crew.h"
#include "operator/controller/plan/index_set.h"
#include "operator/controller/plan/restart_delay.h"
#include "tests/unit/operator/controller/plan/scene.h"
#include "tests/unit/sanitized.h"

#define SCHEDULES (IS_SANITIZED ? 500 : 5000)
#define STEPS 160
#define CALM_STEPS 400
#define WORKERS 3
#define HOUR_MS (3600 * (int64_t)1000)
#define JUMP_MS 1800000
#define DELETIONS (IS_SANITIZED ? 10000 / 10 : 10000)
#define PODS_MAX SCENE_PODS_MAX
#define LET_OFF 139 /* an exit code, by a rule of failurePolicy */

/* Where pods may be; whether they are is the job's choice. */
static const struct place {
    enum role role;
    int64_t index;
} places[] = {{ROLE_WORKER, 0}, {ROLE_WORKER, 1}, {ROLE_WORKER, 2}, {ROLE_PS, 0}, {ROLE_EVALUATOR, 0}};
#define PLACES (sizeof places / sizeof *places)

static const char *const nodes[] = {"node-a", "node-b"};

struct model_pod {
    struct pod_view view;
    char name[64], uid[32];
    bool exists, judged;
    bool settled;   /* a status knows that it was there: it promises it no longer */
    bool seen;      /* by this operator, since it was started */
    bool finished;  /* a status knows that it has: it has ended well, and nobody had asked it to */
    bool told_gone; /* the watch has told of its end, or never will */
    bool ended_by_operator;
    bool finds_no_node; /* while the world is not calm */
    bool node_dead;     /* nobody will end it but by force */
    int key;            /* which it has mounted; 0: none yet */
    bool late;          /* its create was on the wire when its operator was killed */
    bool foreign;       /* a copy that somebody else made */
    bool stray;         /* its create came late, when it was wanted no longer */
};

struct snapshot {
    struct pod_view pods[PODS_MAX];
    const struct pod_view *list[PODS_MAX];
    size_t count;
};

struct model {
    uint64_t random;
    uint64_t seed;
    int64_t now_ms;
    struct scene scene; /* its job is the one on the server */
    struct model_pod pods[PODS_MAX];
    size_t pod_count;
    struct training_job cached_job;
    struct snapshot cache;
    struct gone_pod gone[PODS_MAX]; /* what the operator remembers */
    size_t gone_count;
    int64_t gone_incarnation;
    struct finished_pod done[PODS_MAX];
    size_t done_count;
    int64_t inherited_incarnation;
    bool must_see_job, must_see_pods; /* own writes, not yet in the cache */
    bool service, calm;
    bool born;        /* this operator saw the job come into being */
    bool taken_over;  /* the first status was written by one that knew not what came before */
    bool group_there; /* the PodGroup, of jobs with a gang scheduler */
    struct group_view group;
    bool key_there;
    int key; /* the number of the newest */
    struct crew_key_look key_look;
    int key_lost_in;                  /* turns until somebody removes it; below 0: nobody does */
    bool workload_there, slice_there; /* Kueue's, of jobs with a queue */
    struct workload_view workload, slice;
    int64_t replaced_since_ms;
    struct {
        bool there;
        struct place place;
        int64_t incarnation, attempt;
    } on_the_wire;
    bool class_there; /* of jobs that name one */
    struct class_view class;
    struct json *class_spec;
    int64_t counts_since_ms;
    bool clock_is_set; /* now and then */
    struct failure_rule rule;
    struct plan_options options;
};

static struct model model;

static uint64_t draw(uint64_t below)
{
    model.random ^= model.random << 13;
    model.random ^= model.random >> 7;
    model.random ^= model.random << 17;
    return model.random % below;
}

static bool chance(unsigned percent)
{
    return draw(100) < percent;
}

#define CHECK(condition, text) cr_assert((condition), "schedule %" PRIu64 ": %s", model.seed, (text))

static void see_job(void)
{
    struct training_job *job = &model.cached_job;
    *job = model.scene.job;
    if (job->elastic.enabled && job->status.admitted_workers > 0 &&
        job->status.admitted_workers < job->document.workers)
        job->document.workers = job->status.admitted_workers; /* as training_job_parse does */
    model.born &= first_crew_may_lie_ahead(&model.cached_job.status);
    model.must_see_job = false;
}

static struct model_pod *find_pod(const char *uid)
{
    for (size_t i = 0; i < model.pod_count; i++)
        if (model.pods[i].exists && strcmp(model.pods[i].uid, uid) == 0)
            return &model.pods[i];
    return NULL;
}

static void remember_gone(const struct pod_view *pod)
{
    if (pod->incarnation < model.gone_incarnation)
        return;
    if (pod->incarnation > model.gone_incarnation)
        model.gone_count = 0;
    model.gone_incarnation = pod->incarnation;
    model.gone[model.gone_count++] = (struct gone_pod){.role = pod->role, .index = pod->index};
}

/* As the operator has it. NULL: it is gone, or never was. */
static const struct pod_view *cached(const struct model_pod *pod)
{
    for (size_t i = 0; i < model.cache.count; i++)
        if (strcmp(model.cache.pods[i].uid, pod->uid) == 0)
            return &model.cache.pods[i];
    return NULL;
}

/* Many processes end with 0 when they are asked to. */
static bool has_finished(const struct pod_view *pod)
{
    return pod && pod->exit_code == 0 && !pod_view_deleting(pod) && strcmp(pod->owner_uid, SCENE_UID) == 0;
}

static void remember_finished(const struct pod_view *pod)
{
    if (has_finished(pod) && pod->current)
        model.done[model.done_count++] = (struct finished_pod){pod->role, pod->index, pod->attempt};
}

/* An operator that lists pods again learns that a pod is gone only if it knew that pod. */
static void list_pods(void)
{
    for (size_t i = 0; i < model.pod_count; i++)
        model.pods[i].told_gone |= !model.pods[i].exists && !model.pods[i].seen;
    model.born &= model.pod_count == 0;
    model.inherited_incarnation = model.cached_job.status.incarnation;
}

static void see_pods(void)
{
    for (size_t i = 0; i < model.pod_count; i++) {
        struct model_pod *pod = &model.pods[i];
        if (pod->exists || pod->told_gone)
            continue;
        pod->told_gone = true;
        if (pod->view.member) {
            remember_gone(&pod->view);
            remember_finished(cached(pod));
        }
    }
    model.cache.count = 0;
    for (size_t i = 0; i < model.pod_count; i++) {
        if (!model.pods[i].exists)
            continue;
        struct pod_view *copy = &model.cache.pods[model.cache.count];
        *copy = model.pods[i].view;
        copy->adoptable &= *copy->owner_uid == '\0';
        copy->node = pod_view_ended(copy) ? nodes[copy->index % 2] : "";
        model.pods[i].seen = true;
        model.cache.list[model.cache.count++] = copy;
    }
    model.must_see_pods = false;
}

static bool promises(const struct job_status *status, struct place place)
{
    SCOPED(arena_release) struct arena arena = {0};
    struct index_set set = index_set_make(&arena, WORKERS);
    index_set_parse(&set, status->replicas[place.role].pending);
    return index_set_has(&set, place.index);
}

static bool tells_of_completion(const struct job_status *status, struct place place)
{
    SCOPED(arena_release) struct arena arena = {0};
    struct index_set set = index_set_make(&arena, WORKERS);
    index_set_parse(&set, status->replicas[place.role].completed);
    return index_set_has(&set, place.index);
}

static struct place place_of(const struct model_pod *pod)
{
    return (struct place){pod->view.role, pod->view.index};
}

static bool is_at(const struct model_pod *pod, struct place place)
{
    return pod->view.role == place.role && pod->view.index == place.index;
}

/* ---------------------------------------------------------------- the API server */

/* The first crew alone comes without a word. */
static bool is_promised(struct place place, int64_t incarnation)
{
    const struct job_status *status = &model.scene.job.status;
    if (status->attempt == 0)
        return incarnation == 1;
    return incarnation == status->incarnation && promises(status, place);
}

/* A pod of an elastic crew may have been scaled away in between. */
static void check_predecessor(const struct model_pod *pod, int64_t attempt)
{
    CHECK(!pod->finished || pod->view.attempt != attempt || model.scene.job.elastic.enabled,
          "what has finished is done again");
    bool counts = pod->settled && pod->view.attempt == attempt && !pod->stray && !model.scene.job.elastic.enabled;
    CHECK(!counts || pod->judged || pod->ended_by_operator, "a pod is replaced whose end nobody has judged");
}

/* By the status: those of the place, and no other's. */
static bool backs_off(const struct job_status *status, struct place place)
{
    SCOPED(arena_release) struct arena arena = {0};
    struct index_set set = index_set_make(&arena, WORKERS);
    index_set_parse(&set, status->replicas[place.role].backing_off);
    return index_set_has(&set, place.index);
}

/* `late`: it was on the wire when its operator was killed. */
static void check_create(struct place place, int64_t incarnation, bool late)
{
    const struct job_status *status = &model.scene.job.status;
    int64_t attempt = status->attempt > 0 ? status->attempt : 1;
    CHECK(!status_terminal(status), "a pod is created after the end");
    CHECK(status->attempt > 0 || model.born || late, "a pod is created without a promise");
    CHECK(is_promised(place, incarnation), "a pod is created that was not promised, or of another incarnation");
    CHECK(late || !model.taken_over || incarnation > 1,
          "a pod of a first crew is made again, where one of it may live");
    CHECK(late || model.clock_is_set || !backs_off(status, place) ||
              model.now_ms >= status->replicas[place.role].backoff_until_ms,
          "a pod is created before its back-off is over");
    for (size_t i = 0; i < model.pod_count; i++) {
        const struct model_pod *pod = &model.pods[i];
        if (is_at(pod, place) && !pod->foreign && !late)
            check_predecessor(pod, attempt);
        if (!pod->exists || pod->stray || pod->foreign || (pod->late && !pod->seen)) /* its incarnation fences it off */
            continue;
        CHECK(!is_at(pod, place) || !pod->view.current, "two current pods of one index");
        CHECK(pod->view.attempt == attempt || !pod_view_alive(&pod->view) || pod->view.role == ROLE_EVALUATOR,
              "two attempts at a time");
    }
}

static void server_create(struct place place, int64_t incarnation, int64_t attempt, bool late)
{
    CHECK(model.pod_count < PODS_MAX, "too many pods");
    struct model_pod *pod = &model.pods[model.pod_count];
    *pod = (struct model_pod){.exists = true};
    pod->late = late;
    pod->finds_no_node = model.seed % 5 == 0 && model.pod_count % 4 == 3;
    pod->stray = late && !(is_promised(place, incarnation) && !status_terminal(&model.scene.job.status));
    snprintf(pod->name, sizeof pod->name, "digits-%s-%" PRId64 "-%" PRId64, role_name(place.role), place.index,
             incarnation);
    snprintf(pod->uid, sizeof pod->uid, "uid-%zu", model.pod_count);
    for (size_t i = 0; i < model.pod_count; i++) {
        bool same = strcmp(model.pods[i].name, pod->name) == 0;
        if (same && model.pods[i].exists)
            return; /* AlreadyExists */
        CHECK(!same, "a name is used again");
    }
    if (!pod->stray)
        check_create(place, incarnation, late);
    struct scene helper = {.job = {.status = {.attempt = attempt}}, .input = {.now_ms = model.now_ms}};
    pod->view = *scene_add_pod(&helper, place.role, place.index, incarnation);
    arena_release(&helper.arena);
    pod->view.name = pod->name;
    pod->view.uid = pod->uid;
    pod->view.adoptable = true;
    pod->view.phase = POD_PENDING;
    pod->view.ready = pod->view.scheduled = false;
    pod->view.started_ms = pod->view.startable_ms = FIELD_UNSET;
    model.pod_count++;
}

static void server_delete(const char *uid)
{
    struct model_pod *pod = find_pod(uid);
    if (!pod)
        return;
    if (!pod->view.scheduled || !pod_view_alive(&pod->view))
        pod->exists = false;
    else if (!pod_view_deleting(&pod->view)) {
        pod->view.deletion_ms = model.now_ms;
        pod->view.grace_ms = 30000;
    }
}

static int64_t seconds(int64_t ms)
{
    return ms == FIELD_UNSET ? ms : ms / 1000 * 1000;
}

/* Times in the API are whole seconds. */
static struct job_status stored(const struct job_status *status)
{
    struct job_status copy = scene_copy_status(status, &model.scene.arena);
    copy.start_ms = seconds(copy.start_ms);
    copy.completion_ms = seconds(copy.completion_ms);
    copy.backoff_until_ms = seconds(copy.backoff_until_ms);
    for (int role = 0; role < ROLE_COUNT; role++)
        copy.replicas[role].backoff_until_ms = seconds(copy.replicas[role].backoff_until_ms);
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++)
        copy.conditions[type].last_transition_ms = seconds(copy.conditions[type].last_transition_ms);
    return copy;
}

/* Nothing but the times tells an end that was asked for from an earlier one, so a clock that is set in between can make it
 * seem earlier: it is read by the clock as it is. */
static bool was_asked_to_end(const struct pod_view *pod)
{
    return pod_view_deleting(pod) && (!model.clock_is_set || pod_view_was_asked_to_end(pod));
}

/* Returns how the contract classifies a pod's end; ENDING_NONE if it has not ended. */
static enum ending_kind kind_of(const struct pod_view *pod)
{
    if (!pod)
        return ENDING_DISRUPTION;
    if (!pod_view_ended(pod))
        return pod_view_deleting(pod) ? ENDING_DISRUPTION : ENDING_NONE;
    if (pod->exit_code == 0)
        return ENDING_SUCCESS;
    if (pod->exit_code == LET_OFF && !(was_asked_to_end(pod) && !pod->disruption_target) &&
        model.scene.job.run_policy.failure_policy.rule_count > 0)
        return ENDING_IGNORED;
    if (strcmp(pod->end_reason, "OOMKilled") == 0)
        return ENDING_OUT_OF_MEMORY;
    if (pod->disruption_target || was_asked_to_end(pod) || pod->exit_code == 143)
        return ENDING_DISRUPTION;
    if (pod->exit_code == 160 || pod->exit_code == 163)
        return ENDING_COLLATERAL;
    return pod->exit_code < 128 ? ENDING_PERMANENT : ENDING_FAILURE;
}

/* The pods that an event is about. */
struct event {
    bool found, fresh;
    bool strange;                      /* one that came too late stands in the place of one that has vanished */
    bool kinds[ENDING_COLLATERAL + 1]; /* how they have ended */
    int64_t ran_ms;                    /* at most so long the one of them that ran longest */
    bool places[PLACES];               /* of those that ended now */
};

static struct model_pod *newest_at(struct place place)
{
    struct model_pod *newest = NULL;
    for (size_t i = 0; i < model.pod_count; i++)
        if (is_at(&model.pods[i], place) && !model.pods[i].stray && !model.pods[i].foreign)
            newest = &model.pods[i];
    return newest;
}

static bool has_stray(struct place place)
{
    for (size_t i = 0; i < model.pod_count; i++)
        if (model.pods[i].stray && is_at(&model.pods[i], place) && cached(&model.pods[i]))
            return true;
    return false;
}

static bool is_beyond(const struct model_pod *pod, const struct job_status *before)
{
    return model.scene.job.elastic.enabled && pod->view.role == ROLE_WORKER && pod->view.index >= before->workers;
}

static bool was_scaled_away(const struct model_pod *pod, const struct job_status *before)
{
    return pod->ended_by_operator &&
           (is_beyond(pod, before) || (promises(before, place_of(pod)) && pod->view.incarnation < before->incarnation));
}

/* Since when nobody knows for how long one had run that has vanished from a crew that can do without. */
static int64_t most_ran_ms(const struct model_pod *pod)
{
    bool is_needed = pod->view.role != ROLE_EVALUATOR && !model.scene.job.elastic.enabled;
    if (!cached(pod))
        return is_needed ? model.now_ms - pod->view.created_ms : INT64_MAX;
    return pod->view.started_ms == FIELD_UNSET ? 0 : model.now_ms - pod->view.started_ms;
}

/* It was replaced, though its successor has not come yet. */
static bool is_superseded(const struct model_pod *pod, const struct job_status *before)
{
    bool replaced = promises(before, place_of(pod)) && pod->view.incarnation < before->incarnation;
    return replaced || is_beyond(pod, before) ||
           (pod->view.attempt < before->attempt && pod->view.role != ROLE_EVALUATOR);
}

/* It came and went before its operator saw it: its promise is still to be kept. */
static bool is_unknown(const struct model_pod *pod, const struct job_status *before)
{
    if (cached(pod) || pod->view.incarnation != before->incarnation || !promises(before, place_of(pod)))
        return false;
    for (size_t i = 0; i < model.gone_count; i++)
        if (model.gone_incarnation == pod->view.incarnation &&
            is_at(pod, (struct place){model.gone[i].role, model.gone[i].index}))
            return false;
    return true;
}

static void add_to_event(struct event *event, struct model_pod *pod, size_t place, const struct job_status *before)
{
    enum ending_kind kind = is_superseded(pod, before) ? ENDING_NONE : kind_of(cached(pod));
    event->found = true;
    event->strange |= has_stray(place_of(pod));
    event->fresh |= !pod->judged;
    if (kind != ENDING_NONE && !pod->judged) {
        int64_t ran_ms = most_ran_ms(pod);
        event->kinds[kind] = true;
        event->places[place] = true;
        event->ran_ms = ran_ms > event->ran_ms ? ran_ms : event->ran_ms;
    }
    pod->judged = true;
}

/* One class, that of one of the pods; collateral may cost nothing, or stand for a failure that nobody sees. */
static void check_class(const struct job_status *before, const struct job_status *after, const struct event *event)
{
    int64_t failures = after->restarts.failures - before->restarts.failures,
            disruptions = after->restarts.disruptions - before->restarts.disruptions,
            out_of_memory = after->restarts.out_of_memory - before->restarts.out_of_memory,
            ignored = after->restarts.ignored - before->restarts.ignored;
    int64_t classes = failures + disruptions + out_of_memory + ignored;
    bool costs = event->kinds[ENDING_FAILURE] || event->kinds[ENDING_DISRUPTION] ||
                 event->kinds[ENDING_OUT_OF_MEMORY] || event->kinds[ENDING_IGNORED];
    CHECK(classes == 1 || (classes == 0 && !costs), "an event counts once");
    CHECK(!failures || event->kinds[ENDING_FAILURE] || !costs, "a failure is counted where there was none");
    CHECK(!disruptions || event->kinds[ENDING_DISRUPTION], "a disruption is counted where there was none");
    CHECK(!out_of_memory || event->kinds[ENDING_OUT_OF_MEMORY], "memory is blamed that was there");
    CHECK(!ignored || event->kinds[ENDING_IGNORED], "what no rule names is ignored");
}

/* The delay holds whatever the crew does. */
static void check_backoff(const struct job_status *after, const struct event *event)
{
    int64_t least_ms = restart_delay_ms(after->restart_count, event->ran_ms, 0);
    if (status_terminal(after) || model.clock_is_set || least_ms == 0)
        return;
    CHECK(after->backoff_until_ms != FIELD_UNSET && after->backoff_until_ms >= model.now_ms + least_ms,
          "pods that did not run for long are replaced too soon");
    for (size_t i = 0; i < PLACES; i++)
        CHECK(!event->places[i] || (backs_off(after, places[i]) &&
                                    after->replicas[places[i].role].backoff_until_ms >= model.now_ms + least_ms),
              "a pod's end does not delay its own successor");
}

static bool is_remembered_to_finish(const struct model_pod *pod, const struct job_status *before)
{
    for (size_t i = 0; i < model.done_count; i++)
        if (is_at(pod, (struct place){model.done[i].role, model.done[i].index}) &&
            model.done[i].attempt == before->attempt)
            return true;
    return false;
}

static bool exceeds_progress_deadline(const struct job_status *before, const struct job_status *after)
{
    const struct condition *failed = &after->conditions[CONDITION_FAILED];
    const struct condition *restarting = &after->conditions[CONDITION_RESTARTING];
    return (failed->status == CONDITION_TRUE && strcmp(failed->reason, "ProgressDeadlineExceeded") == 0) ||
           (after->attempt > before->attempt && restarting->status == CONDITION_TRUE &&
            strcmp(restarting->reason, "ProgressDeadlineExceeded") == 0);
}

/* It is one failure, of a crew whose clock the status had begun so long before. */
static void check_progress_deadline(const struct job_status *before, const struct job_status *after)
{
    int64_t seconds = model.scene.job.run_policy.progress_deadline_seconds;
    CHECK(seconds != FIELD_UNSET, "a crew starts over for a deadline that it does not have");
    CHECK(after->restarts.failures == before->restarts.failures + 1, "a crew without progress costs no failure");
    CHECK(before->progressed_ms != FIELD_UNSET &&
              (model.clock_is_set || model.now_ms >= before->progressed_ms + 1000 * seconds),
          "a crew starts over before its deadline for progress");
    CHECK(status_terminal(after) || (after->attempt == before->attempt + 1 && after->incarnation > before->incarnation),
          "a crew without progress does not start over");
}

/* The event that a status counts is about pods which really have ended and were never judged before. */
static void check_event(const struct job_status *before, const struct job_status *after)
{
    struct event event = {0};
    if (after->restart_count == before->restart_count)
        return;
    CHECK(after->restart_count == before->restart_count + 1, "two events in one write");
    for (size_t i = 0; i < PLACES; i++) {
        struct model_pod *newest = newest_at(places[i]);
        if (!newest || !(promises(after, places[i]) || status_terminal(after)))
            continue;
        bool ended = !newest->exists || pod_view_ended(&newest->view) || pod_view_deleting(&newest->view);
        bool success = newest->exists && pod_view_succeeded(&newest->view) && !pod_view_deleting(&newest->view);
        if (!ended || success || tells_of_completion(before, places[i]) || is_remembered_to_finish(newest, before))
            continue;
        if (places[i].role == ROLE_WORKER && places[i].index >= model.cached_job.document.workers)
            continue;
        if (was_scaled_away(newest, before) || is_unknown(newest, before))
            continue;
        CHECK(!newest->ended_by_operator || newest->view.attempt < before->attempt,
              "the operator's own deletion is counted");
        add_to_event(&event, newest, i, before);
    }
    if (exceeds_progress_deadline(before, after)) {
        check_progress_deadline(before, after);
        return;
    }
    CHECK(event.found, "an event without a pod that ended");
    CHECK(event.fresh, "a pod's end was counted twice");
    if (!event.strange)
        check_class(before, after, &event);
    check_backoff(after, &event);
}

static bool has_failure(const struct job_status *status, const struct node_failure *failure)
{
    for (unsigned i = 0; i < status->node_failure_count; i++)
        if (status->node_failures[i].at_ms == failure->at_ms &&
            strcmp(status->node_failures[i].node, failure->node) == 0)
            return true;
    return false;
}

static bool has_replacement(const struct job_status *status, const struct straggler_replacement *one)
{
    for (unsigned i = 0; i < status->straggler_replacement_count; i++)
        if (status->straggler_replacements[i].at_ms == one->at_ms &&
            strcmp(status->straggler_replacements[i].pod, one->pod) == 0)
            return true;
    return false;
}

/* A node is blamed only in the write that counts the event, for a pod that the operator saw to end there. */
static void check_node_failures(const struct job_status *before, const struct job_status *after)
{
    CHECK(after->node_failure_count <= 32, "more failures of nodes than the status can hold");
    for (unsigned i = 0; i < after->node_failure_count; i++) {
        const struct node_failure *failure = &after->node_failures[i];
        bool found = false;
        if (has_failure(before, failure))
            continue;
        for (size_t pod = 0; pod < model.cache.count; pod++)
            found |= strcmp(model.cache.pods[pod].node, failure->node) == 0;
        CHECK(found, "a node is blamed on which no pod has ended");
        CHECK(after->restart_count == before->restart_count + 1 ||
                  after->straggler_replacement_count > before->straggler_replacement_count,
              "a node is blamed without an event");
        CHECK(model.scene.job.run_policy.node_avoidance.failures != 0, "a node is blamed although none is avoided");
    }
}

/* As the operator has the job. */
static bool is_still_asked_for(const struct model_pod *pod, const struct job_status *next)
{
    return !is_beyond(pod, next) && pod->view.index < model.cached_job.document.workers;
}

static bool is_in_its_place(const struct model_pod *pod, const struct job_status *before, const struct job_status *next)
{
    return newest_at(place_of(pod)) == pod && cached(pod)->current && !is_superseded(pod, before) &&
           is_still_asked_for(pod, next) && !has_stray(place_of(pod));
}

/* A pod has existed if its promise is cleared, and the status must contain every success that was seen. */
static void settle(const struct job_status *before, const struct job_status *next)
{
    for (size_t i = 0; i < model.pod_count; i++) {
        struct model_pod *pod = &model.pods[i];
        bool cleared = next->attempt > 0 && !promises(next, place_of(pod));
        pod->settled |= cached(pod) && cleared;
        pod->finished &= cleared && is_still_asked_for(pod, next) && pod->view.attempt == next->attempt;
        CHECK(!pod->finished || tells_of_completion(next, place_of(pod)), "a success that was told of is forgotten");
        if (!has_finished(cached(pod)) || !cleared || pod->stray || pod->foreign || !is_in_its_place(pod, before, next))
            continue;
        pod->finished = true;
        CHECK(tells_of_completion(next, place_of(pod)), "a success that was seen is not told of");
    }
}

static unsigned stragglers_replaced, quota_lowered, slices_created, slices_admitted; /* in all schedules */

/* A write decides about one straggler at most, which runs while nobody is missing, and within the limit. */
static void check_stragglers(const struct job_status *before, const struct job_status *after)
{
    const struct straggler_replacement_spec *spec = &model.scene.job.run_policy.straggler_replacement;
    unsigned recent = 0, fresh = 0;
    for (unsigned i = 0; i < after->straggler_replacement_count; i++) {
        const struct straggler_replacement *one = &after->straggler_replacements[i];
        recent += one->at_ms > model.now_ms - HOUR_MS;
        if (has_replacement(before, one))
            continue;
        fresh++;
        CHECK(one->at_ms == model.now_ms && spec->after_seconds != FIELD_UNSET, "nobody asked to replace stragglers");
        CHECK(after->incarnation == before->incarnation && after->restart_count == before->restart_count,
              "a straggler is replaced along with other pods");
        CHECK(condition_is(before, CONDITION_RUNNING, CONDITION_TRUE), "a straggler of a crew that does not run");
    }
    CHECK(fresh <= 1, "two stragglers at once");
    stragglers_replaced += fresh;
    CHECK(fresh == 0 || recent <= spec->max_per_hour, "more stragglers than the limit allows");
}

/* No time is left out but what the job was suspended. */
static void check_deadline(const struct job_status *before, const struct job_status *after)
{
    bool over = condition_is(after, CONDITION_FAILED, CONDITION_TRUE) &&
                strcmp(after->conditions[CONDITION_FAILED].reason, "DeadlineExceeded") == 0;
    int64_t seconds = model.scene.job.run_policy.active_deadline_seconds;
    if (!over || status_terminal(before) || model.clock_is_set)
        return;
    CHECK(seconds != FIELD_UNSET && model.now_ms >= before->start_ms + before->suspended_ms + 1000 * seconds,
          "the deadline comes too early");
}

/* Ignores pods whose creation the operator had not seen when it promised them again. */
static void pass_over_unseen(const struct job_status *next)
{
    for (size_t i = 0; i < model.pod_count; i++) {
        struct model_pod *pod = &model.pods[i];
        bool unrecorded = model.scene.job.status.attempt == 0, unseen = pod->late && !pod->seen;
        if (pod->exists && (unrecorded || unseen) && pod->view.incarnation < next->incarnation &&
            promises(next, place_of(pod)))
            pod->stray = true;
    }
}

static void server_write_status(const struct plan *plan, const char *resource_version)
{
    struct job_status *status = &model.scene.job.status;
    if (strcmp(resource_version, model.scene.job.resource_version) != 0)
        return; /* Conflict */
    const struct job_status *next = &plan->status;
    int64_t first = status->attempt == 0 ? 1 : status->incarnation; /* which may be begun, and lost, without a word */
    CHECK(next->incarnation >= status->incarnation && next->incarnation <= first + 1,
          "an incarnation is skipped or taken back");
    CHECK(!status_terminal(status) || status_terminal(next), "terminal is terminal");
    CHECK(!(status_terminal(status) && next->incarnation != status->incarnation), "an incarnation after the end");
    check_event(status, next);
    check_node_failures(status, next);
    check_stragglers(status, next);
    check_deadline(status, next);
    int64_t spent = next->restarts.failures + next->restarts.out_of_memory;
    int64_t limit = model.scene.job.run_policy.backoff_limit;
    CHECK(spent <= limit || (spent == limit + 1 && status_terminal(next)), "backoffLimit is overrun");
    CHECK(!condition_is(next, CONDITION_SUSPENDED, CONDITION_TRUE) || next->replicas[ROLE_WORKER].active == 0,
          "Suspended is True while a pod lives");
    CHECK(next->observed_generation == model.cached_job.generation, "observedGeneration");
    bool never_untold = model.scene.job.elastic.enabled || model.scene.job.run_policy.gang.scheduler != GANG_NONE ||
                        !model.options.unrecorded_crews;
    bool takes_over = status->attempt == 0 && next->attempt > 0 && !model.born && !never_untold;
    model.taken_over |= takes_over;
    if (takes_over || (status->attempt > 0 && next->incarnation > status->incarnation))
        pass_over_unseen(next);
    CHECK(!status->training_class.name || next->training_class.generation == status->training_class.generation,
          "the class is not what the job was created with");
    CHECK(next->attempt == 0 || !model.scene.job.training_class.name || status->training_class.name,
          "a job is started before the status has its class");
    settle(status, next);
    *status = stored(next);
    if (status->training_class.name)
        status->training_class.defaults = model.class_spec; /* the plan's own goes with it */
    char version[24];
    snprintf(version, sizeof version, "%" PRId64, (int64_t)strtoll(resource_version, NULL, 10) + 1);
    model.scene.job.resource_version = arena_copy_string(&model.scene.arena, version);
    model.must_see_job = true;
    CHECK(plan->finished <= model.done_count, "who has finished is forgotten twice");
    model.done_count -= plan->finished;
    memmove(model.done, model.done + plan->finished, model.done_count * sizeof *model.done);
}

/* ---------------------------------------------------------------- the operator */

/* While no operator is there, nodes are lost and their pods removed by force; the processes may live on. */
static void cut_off(void)
{
    for (size_t i = 0; i < model.pod_count; i++)
        if (chance(30))
            model.pods[i].exists = false;
}

static void operator_restart(bool create_on_the_wire, const struct action *action, const struct plan *plan)
{
    if (create_on_the_wire && !model.on_the_wire.there) {
        model.on_the_wire.there = true;
        model.on_the_wire.place = (struct place){action->role, action->index};
        model.on_the_wire.incarnation = plan->incarnation;
        model.on_the_wire.attempt = plan->attempt;
    }
    if (!model.calm && chance(30))
        cut_off();
    model.born = false;
    model.counts_since_ms = FIELD_UNSET;
    model.key_look = (struct crew_key_look){0};
    model.cache.count = model.gone_count = model.done_count = 0;
    model.gone_incarnation = 0;
    for (size_t i = 0; i < model.pod_count; i++)
        model.pods[i].seen = false;
    see_job();
    list_pods();
    see_pods();
}

/* One that exists stays. */
static void make_key(void)
{
    model.key += !model.key_there;
    model.key_there = true;
}

/* By a pod that its operator knew of. */
static bool uses_quota(const struct model_pod *pod)
{
    return pod->exists && pod->seen && !pod->foreign && !pod->stray && pod_view_alive(&pod->view);
}

static bool quota_is_used(void)
{
    for (size_t i = 0; i < model.pod_count; i++)
        if (uses_quota(&model.pods[i]))
            return true;
    return false;
}

/* By such a worker of that index or a higher one. */
static bool quota_is_used_from(int64_t index)
{
    for (size_t i = 0; i < model.pod_count; i++) {
        const struct pod_view *view = &model.pods[i].view;
        if (uses_quota(&model.pods[i]) && view->role == ROLE_WORKER && view->index >= index)
            return true;
    }
    return false;
}

static struct workload_view *workload_of(const struct action *action)
{
    return action->workload == &model.slice ? &model.slice : &model.workload;
}

static void tell_workload(struct workload_view *workload, struct pods_ready pods)
{
    CHECK(!workload->admitted || !workload->pods_ready || pods.ready || strcmp(pods.reason, "WaitForRecovery") == 0,
          "Kueue counts from the admission for a crew that was ready");
    workload->pods_ready = pods.ready;
    workload->pods_ready_reason = pods.reason;
}

static struct workload_view new_workload(const char *name, const char *uid, int64_t slice, int64_t workers,
                                         int64_t least)
{
    return (struct workload_view){.name = name,
                                  .uid = uid,
                                  .owner_uid = SCENE_UID,
                                  .job_uid = SCENE_UID,
                                  .queue_name = "queue",
                                  .waiting = "",
                                  .evicted_reason = "",
                                  .evicted_message = "",
                                  .pods_ready_reason = "",
                                  .assignments = "{}",
                                  .slice = slice,
                                  .workers = workers,
                                  .least_workers = least};
}

static void create_slice(const struct action *action)
{
    const struct workload_view *replaced = workload_of(action);
    bool is_first = replaced == &model.workload;
    CHECK(is_first ? !model.slice_there : !model.workload_there, "the Workload's name is taken");
    CHECK(replaced->admitted && action->workers > replaced->admitted_workers, "more is asked for without a reason");
    if (is_first)
        model.slice = new_workload("digits.slice", "slice", replaced->slice + 1, action->workers, 0);
    else
        model.workload = new_workload("digits", "workload", replaced->slice + 1, action->workers, 0);
    *(is_first ? &model.slice_there : &model.workload_there) = true;
    slices_created++;
}

/* Pods may use the quota of a Workload that Kueue has replaced until it admits the other one. */
static int64_t workers_with_quota(void)
{
    int64_t one = model.workload_there && model.workload.admitted ? model.workload.admitted_workers : 0;
    int64_t other = model.slice_there && model.slice.admitted ? model.slice.admitted_workers : 0;
    return one > other ? one : other;
}

/* As Kueue's webhook allows it. */
static void resize_workload(struct workload_view *workload, int64_t workers, int64_t least)
{
    const struct workload_view *other = workload == &model.slice ? &model.workload : &model.slice;
    bool is_growth = model.workload_there && model.slice_there && workload->slice > other->slice;
    CHECK(workers > 0, "a Workload asks for no workers");
    if (workload->reserved) {
        CHECK(model.cached_job.queue_elastic, "a Workload with quota asks for another number");
        CHECK(workers < workload->workers && workers >= workload->least_workers, "Kueue refuses the number");
        CHECK(is_growth || !quota_is_used_from(workers), "quota is given back while a pod uses it");
        if (workers < workload->admitted_workers)
            workload->admitted_workers = workers;
        quota_lowered++;
    } else {
        workload->least_workers = least;
    }
    workload->workers = workers;
}

static void create_pod(const struct action *action, const struct plan *plan)
{
    bool has_quota = !model.scene.job.queue_name || !model.scene.job.elastic.enabled || action->role != ROLE_WORKER ||
                     action->index < workers_with_quota();
    CHECK(has_quota, "a pod comes without quota for it");
    size_t count = model.pod_count;
    server_create((struct place){action->role, action->index}, plan->incarnation, plan->attempt, false);
    if (model.pod_count > count && plan->avoided_node_count > 0)
        model.pods[count].view.avoided = nodes[strcmp(plan->avoided_nodes[0], nodes[0]) == 0 ? 0 : 1];
}

static bool is_replaced_straggler(const struct job_status *status, const char *pod)
{
    for (unsigned i = 0; i < status->straggler_replacement_count; i++)
        if (strcmp(status->straggler_replacements[i].pod, pod) == 0)
            return true;
    return false;
}

static void operator_do(const struct action *action, const struct training_job *job, const struct plan *plan)
{
    struct model_pod *pod;
    switch (action->type) {
    case ACTION_CREATE_SERVICE:
        CHECK(!status_terminal(&model.scene.job.status), "a Service after the end");
        make_key();
        model.service = true;
        break;
    case ACTION_CREATE_CERTIFICATE: /* of encrypted crews only */
        CHECK(false, "a certificate for a crew that talks in the clear");
        break;
    case ACTION_LOOK_FOR_KEY:
        model.key_look =
            (struct crew_key_look){.incarnation = plan->incarnation, .at_ms = model.now_ms, .there = model.key_there};
        break;
    case ACTION_CREATE_KEY:
        CHECK(!status_terminal(&model.scene.job.status), "a key after the end");
        make_key();
        model.key_look = (struct crew_key_look){.incarnation = plan->incarnation, .at_ms = model.now_ms, .there = true};
        break;
    case ACTION_CREATE_GROUP:
        CHECK(!status_terminal(&model.scene.job.status), "a PodGroup after the end");
        model.group = (struct group_view){
            .uid = "group", .owner_uid = SCENE_UID, .job_uid = SCENE_UID, .phase = "Pending", .words = ""};
        model.group_there = true;
        break;
    case ACTION_CREATE_WORKLOAD:
        CHECK(!status_terminal(&model.scene.job.status), "a Workload after the end");
        if (!model.workload_there)
            model.workload = new_workload("digits", "workload", 0, queue_pods(job, ROLE_WORKER),
                                          queue_least_workers(job, queue_pods(job, ROLE_WORKER)));
        model.workload_there = true;
        break;
    case ACTION_DELETE_WORKLOAD:
        CHECK(!workload_of(action)->reserved || !quota_is_used() || (model.workload_there && model.slice_there) ||
                  workload_of(action)->replaced,
              "a Workload goes while pods use its quota");
        *(action->workload == &model.slice ? &model.slice_there : &model.workload_there) = false;
        break;
    case ACTION_CREATE_SLICE:
        CHECK(!status_terminal(&model.scene.job.status), "a Workload after the end");
        create_slice(action);
        break;
    case ACTION_RESIZE_WORKLOAD:
        resize_workload(workload_of(action), action->workers, action->least_workers);
        break;
    case ACTION_RELEASE_WORKLOAD:
        CHECK(model.scene.job.status.replicas[ROLE_WORKER].active == 0, "quota is given back while a pod lives");
        workload_of(action)->reserved = workload_of(action)->admitted = false;
        break;
    case ACTION_CLEAR_ADMISSION:
        CHECK(!workload_of(action)->reserved, "an admission that holds is cleared");
        workload_of(action)->has_admission = false;
        break;
    case ACTION_REPORT_WORKLOAD:
        tell_workload(workload_of(action), queue_pods_ready(action->workload, &plan->status));
        workload_of(action)->finished = status_terminal(&job->status);
        break;
    case ACTION_DELETE_GROUP:
        CHECK(status_terminal(&model.scene.job.status) ||
                  !condition_is(&job->status, CONDITION_SUSPENDED, CONDITION_ABSENT),
              "the PodGroup goes while its pods may run");
        model.group_there = false;
        break;
    case ACTION_CREATE_POD:
        CHECK(model.service, "a pod comes before its Service");
        CHECK(!training_job_awaits_class(&model.scene.job), "a pod comes before the status has its class");
        CHECK(!job->queue_name || workers_with_quota() > 0 || (model.workload_there && model.workload.admitted),
              "a pod comes before its Workload is admitted");
        CHECK(job->run_policy.gang.scheduler == GANG_NONE || strcmp(model.group.phase, "Pending") != 0,
              "a pod comes before its PodGroup has left Pending");
        create_pod(action, plan);
        model.must_see_pods = true;
        break;
    case ACTION_LOOK_FOR_POD:
        CHECK(false, "a pod is looked for though every create was answered");
        break;
    case ACTION_ADOPT_POD:
        CHECK(*action->pod->owner_uid == '\0', "what belongs to somebody is adopted");
        if ((pod = find_pod(action->pod->uid)) != NULL)
            pod->view.owner_uid = SCENE_UID;
        model.must_see_pods = true;
        break;
    case ACTION_REMOVE_CURRENT:
        if ((pod = find_pod(action->pod->uid)) != NULL)
            pod->view.current = false;
        model.must_see_pods = true;
        break;
    case ACTION_DELETE_POD:
        if ((pod = find_pod(action->pod->uid)) != NULL) {
            CHECK(!pod->foreign, "a pod of somebody else is deleted");
            pod->ended_by_operator =
                !is_replaced_straggler(&job->status, pod->name) || is_superseded(pod, &job->status);
        }
        server_delete(action->pod->uid);
        model.must_see_pods = true;
        break;
    case ACTION_FORCE_DELETE_POD:
        if ((pod = find_pod(action->pod->uid)) != NULL) {
            CHECK(pod_view_deleting(&pod->view), "force where nobody asked for the end");
            pod->exists = false;
        }
        model.must_see_pods = true;
        break;
    case ACTION_LOOK_AT_NODE:
        CHECK(false, "a node is looked at though no pod has one");
        break;
    case ACTION_DELETE_JOB:
        CHECK(false, "nobody asked for the job to go");
        break;
    }
}

/* Requests are on their way together: any may be done first. */
static void shuffle(struct plan *plan)
{
    for (size_t i = plan->action_count; i > 1; i--) {
        size_t other = draw(i);
        struct action action = plan->actions[i - 1];
        plan->actions[i - 1] = plan->actions[other];
        plan->actions[other] = action;
    }
}

/* Returns how many things the plan had to do. */
static size_t operator_turn(void)
{
    if (model.must_see_job || chance(60))
        see_job();
    bool lists = !model.calm && chance(2);
    if (lists)
        list_pods();
    if (lists || model.must_see_pods || chance(60))
        see_pods();
    struct training_job job = model.cached_job;
    struct plan_input input = {
        .job = &job,
        .pods = model.cache.list,
        .pod_count = model.cache.count,
        .memory.gone = model.gone,
        .memory.gone_count = model.gone_count,
        .memory.gone_incarnation = model.gone_incarnation,
        .memory.finished = model.done,
        .memory.finished_count = model.done_count,
        .memory.inherited_incarnation = model.inherited_incarnation,
        .service = model.service ? &model.scene.service : NULL,
        .queue = {.state = OPTIONAL_READY,
                  .workload = model.workload_there ? &model.workload : NULL,
                  .slice = model.slice_there ? &model.slice : NULL,
                  .replaced_since_ms = model.replaced_since_ms},
        .gang = {.state = OPTIONAL_READY, .group = model.group_there ? &model.group : NULL},
        .class = {.state = OPTIONAL_READY, .view = model.class_there ? &model.class : NULL},
        .memory.certificate = {.number = FIELD_UNSET},
        .memory.key_look = model.key_look,
        .memory.born_ms = model.born ? SCENE_NOW : FIELD_UNSET,
        .memory.counts_since_ms = model.counts_since_ms,
        .memory.pods_changed_ms = draw(2) ? model.now_ms - (int64_t)draw(4000) : FIELD_UNSET,
        .memory.behind_since_ms = FIELD_UNSET,
        .answers = {.asked_ms = !model.calm && chance(50) ? model.now_ms : FIELD_UNSET, .since_ms = SCENE_NOW},
        .now_ms = model.now_ms,
        .options = &model.options,
    };
    if (!model.calm && model.seed % 3 == 0 && chance(30)) {
        input.answers.asked_ms = model.now_ms;
        input.straggler = (struct straggler_input){.reported = true,
                                                   .role = chance(80) ? "worker" : NULL,
                                                   .index = (int64_t)draw(WORKERS + 1),
                                                   .own_ms = 100,
                                                   .due_ms = 10,
                                                   .seconds = (int64_t)draw(30)};
    }
    SCOPED(plan_release) struct plan plan = {0};
    plan_job(&input, &plan);
    if (!plan.queue_replaces)
        model.replaced_since_ms = FIELD_UNSET;
    else if (model.replaced_since_ms == FIELD_UNSET)
        model.replaced_since_ms = model.now_ms;
    if (!plan.counts_wait)
        model.counts_since_ms = FIELD_UNSET;
    else if (model.counts_since_ms == FIELD_UNSET)
        model.counts_since_ms = model.now_ms;
    shuffle(&plan);
    bool crashes = !model.calm && chance(15);
    size_t writes = plan.action_count + plan.write_status, survive = crashes && writes ? draw(writes + 1) : writes;
    for (size_t i = 0; i < plan.action_count && i < survive; i++)
        operator_do(&plan.actions[i], &job, &plan);
    if (plan.write_status && survive == writes)
        server_write_status(&plan, job.resource_version);
    if (crashes) {
        const struct action *next = survive < plan.action_count ? &plan.actions[survive] : NULL;
        operator_restart(next && next->type == ACTION_CREATE_POD && chance(50), next, &plan);
    }
    return writes;
}

/* ---------------------------------------------------------------- the world */

static void pod_end(struct model_pod *pod, int code)
{
    pod->view.exit_code = code;
    pod->view.finished_ms = seconds(model.now_ms);
    pod->view.phase = code == 0 ? POD_SUCCEEDED : POD_FAILED;
    pod->view.ready = false;
    if (code == 137 && chance(30))
        pod->view.end_reason = "OOMKilled";
    if (code == 137 && chance(30))
        pod->view.disruption_target = true;
    if (pod->view.disruption_target && model.seed % 2 == 0)
        pod->view.disrupted_by = "DeletionByTaintManager";
}

/* A pod must not start with another key than the pods of its crew. */
static void mount_key(struct model_pod *pod)
{
    pod->key = model.key;
    for (size_t i = 0; i < model.pod_count; i++) {
        const struct model_pod *other = &model.pods[i];
        bool counts = other->exists && other->key > 0 && other->view.current && pod_view_alive(&other->view) &&
                      !pod_view_deleting(&other->view) && !other->stray && !other->foreign && !other->late;
        CHECK(!counts || pod->late || pod->view.attempt != other->view.attempt || other->key == pod->key,
              "a crew is split between two keys");
    }
}

static void pod_advance(struct model_pod *pod)
{
    struct pod_view *view = &pod->view;
    if (pod->node_dead && pod_view_alive(view))
        return;
    if (pod_view_deleting(view) || (!pod_view_alive(view) && chance(2))) {
        pod->exists = false;
    } else if (!view->scheduled && !model.calm && pod->finds_no_node) {
        view->unschedulable = "0 nodes are available";
    } else if (!view->scheduled) {
        view->unschedulable = "";
        view->scheduled = true;
        view->startable_ms = model.now_ms;
    } else if (view->phase == POD_PENDING && !model.key_there) {
        return; /* its volume is waited for */
    } else if (view->phase == POD_PENDING) {
        if (!pod->foreign && !pod->stray)
            mount_key(pod);
        view->phase = POD_RUNNING;
        view->started_ms = model.now_ms;
    } else if (view->phase == POD_RUNNING && !view->ready) {
        view->ready = true;
    }
}

static void pod_suffer(struct model_pod *pod)
{
    static const int codes[] = {137, 137, 139, 143, 160, 162, 163, 0};
    struct pod_view *view = &pod->view;
    if (!pod_view_alive(view))
        return;
    switch (draw(6)) {
    case 0:
        pod->node_dead = view->scheduled && chance(30);
        server_delete(pod->uid);
        break;
    case 1:
        pod->exists = false;
        break;
    case 2:
        if (view->phase == POD_RUNNING && chance(5))
            pod_end(pod, 70);
        break;
    default: {
        int code = codes[draw(sizeof codes / sizeof *codes)];
        if (view->phase == POD_RUNNING && (code != 0 || view->role != ROLE_WORKER || view->index != 0 || chance(5)))
            pod_end(pod, code);
    }
    }
}

/* Kueue finishes the older of two Workloads before it admits the newer one, which may fail. */
static void kueue_replaces(struct workload_view *older, struct workload_view *newer)
{
    if (newer->reserved || newer->finished || !(model.calm || chance(20)))
        return;
    if (older->reserved)
        older->finished = older->replaced = true;
    if (!model.calm && chance(30))
        return;
    newer->reserved = newer->admitted = newer->has_admission = true;
    newer->admitted_workers = newer->workers;
    slices_admitted++;
}

static void kueue_looks_at(struct workload_view *workload, bool *there)
{
    if (!*there || workload->finished)
        return;
    if (!workload->reserved && (model.calm || chance(30))) {
        int64_t least = workload->least_workers > 0 ? workload->least_workers : workload->workers;
        workload->admitted_workers = least + (int64_t)draw((uint64_t)(workload->workers - least + 1));
        workload->reserved = workload->admitted = workload->has_admission = true;
        workload->evicted = false;
    } else if (workload->admitted && !model.calm && chance(3)) {
        workload->evicted = true;
    } else if (!model.calm && chance(1)) {
        *there = false;
    }
}

static void kueue_turn(void)
{
    struct workload_view *one = &model.workload, *other = &model.slice;
    bool are_two = model.workload_there && model.slice_there, is_older = one->slice < other->slice;
    if (!are_two || is_older)
        kueue_looks_at(one, &model.workload_there);
    if (!are_two || !is_older)
        kueue_looks_at(other, &model.slice_there);
    if (model.workload_there && model.slice_there)
        kueue_replaces(is_older ? one : other, is_older ? other : one);
}

static void copy_pod(const struct model_pod *pod)
{
    CHECK(model.pod_count < PODS_MAX, "too many pods");
    struct model_pod *copy = &model.pods[model.pod_count];
    *copy = *pod;
    copy->foreign = true;
    copy->node_dead = false;
    snprintf(copy->name, sizeof copy->name, "copy-%zu", model.pod_count);
    snprintf(copy->uid, sizeof copy->uid, "uid-%zu", model.pod_count);
    copy->view.name = copy->name;
    copy->view.uid = copy->uid;
    copy->view.owner_uid = chance(50) ? "somebody" : "";
    copy->view.member = copy->view.adoptable = false;
    model.pod_count++;
}

/* Users edit pods: one loses its owner, or is copied with all of its labels. */
static void people_meddle(void)
{
    if (model.calm || model.pod_count == 0 || !chance(4))
        return;
    struct model_pod *pod = &model.pods[draw(model.pod_count)];
    if (!pod->exists || pod->foreign)
        return;
    if (chance(70))
        pod->view.owner_uid = "";
    else if (model.pod_count < PODS_MAX / 2)
        copy_pod(pod);
}

static void spec_changes(void)
{
    model.scene.job.generation++;
    char version[24];
    snprintf(version, sizeof version, "%lld", strtoll(model.scene.job.resource_version, NULL, 10) + 1);
    model.scene.job.resource_version = arena_copy_string(&model.scene.arena, version);
}

/* The machine's clock is set, by a person or by a server of the time. */
static void clock_jumps(void)
{
    model.now_ms += (int64_t)draw(2 * JUMP_MS) - JUMP_MS;
}

/* Somebody makes the class, changes it, makes it wrong, deletes it. */
static void class_turn(void)
{
    static char flaw[] = "it is wrong";
    if (!model.scene.job.training_class.name || !(model.calm || chance(20)))
        return;
    model.class.generation++;
    model.class_there = model.calm || chance(60);
    model.class.flaw = model.calm || chance(80) ? NULL : flaw;
}

static void world_turn(void)
{
    model.now_ms += (int64_t)draw(1500);
    class_turn();
    if (!model.calm && model.clock_is_set && chance(1))
        clock_jumps();
    if (!model.calm && model.scene.job.queue_name && chance(1)) {
        model.scene.job.queue_name = NULL; /* the label is taken off */
        spec_changes();
    }
    if (!model.calm && model.scene.job.elastic.enabled && chance(4)) {
        model.scene.job.document.workers = 1 + (int64_t)draw(WORKERS);
        model.scene.job.elastic.wanted_workers = model.scene.job.document.workers;
        spec_changes();
    }
    if (model.on_the_wire.there && (model.calm || chance(30))) {
        model.on_the_wire.there = false;
        server_create(model.on_the_wire.place, model.on_the_wire.incarnation, model.on_the_wire.attempt, true);
    }
    for (size_t i = 0; i < model.pod_count; i++) {
        if (!model.pods[i].exists)
            continue;
        if (model.calm || chance(40))
            pod_advance(&model.pods[i]);
        else if (chance(8))
            pod_suffer(&model.pods[i]);
    }
    if (model.group_there && (model.calm || chance(30)))
        model.group.phase = "Inqueue";
    if (model.group_there && !model.calm && chance(2))
        model.group_there = false;
    if (model.group_there && chance(2))
        model.group.owner_uid = "";
    if (model.workload_there && chance(2))
        model.workload.owner_uid = "";
    if (!model.calm && chance(1))
        model.scene.job.queue_elastic = !model.scene.job.queue_elastic;
    kueue_turn();
    if (!model.calm && model.key_lost_in-- == 0)
        model.key_there = false;
    people_meddle();
    if (!model.calm && chance(4)) {
        model.scene.job.suspend = !model.scene.job.suspend;
        spec_changes();
    }
}

static void chief_finishes(void)
{
    for (size_t i = 0; i < model.pod_count; i++) {
        struct model_pod *pod = &model.pods[i];
        if (pod->exists && is_at(pod, places[0]) && pod->view.current && pod->view.ready && chance(30))
            pod_end(pod, 0);
    }
}

static void check_end(void)
{
    const struct job_status *status = &model.scene.job.status;
    CHECK(status_terminal(status), "the job does not end");
    CHECK(status->completion_ms != FIELD_UNSET, "no completion time");
    int64_t alive = 0;
    for (size_t i = 0; i < model.pod_count; i++)
        alive += model.pods[i].exists && !model.pods[i].foreign && pod_view_alive(&model.pods[i].view);
    CHECK(alive == 0, "pods live on after the end");
    CHECK(!model.workload_there || model.workload.finished, "Kueue is not told of the end");
    CHECK(!model.slice_there || model.slice.finished, "Kueue is not told of the end");
    CHECK(!model.workload_there || !model.slice_there, "two Workloads stay after the end");
    CHECK(!model.group_there, "the PodGroup stays after the end");
    CHECK(status->replicas[ROLE_WORKER].active == 0, "active counts what is gone");
    CHECK(condition_is(status, CONDITION_RUNNING, CONDITION_FALSE) ||
              condition_is(status, CONDITION_RUNNING, CONDITION_ABSENT),
          "Running after the end");
}

/* Where the clock was set back, that may take as much longer. */
static bool waits_for_dead_node(void)
{
    for (size_t i = 0; i < model.pod_count; i++)
        if (model.pods[i].exists && !model.pods[i].foreign && model.pods[i].node_dead &&
            pod_view_alive(&model.pods[i].view))
            return true;
    return false;
}

static void run_schedule(uint64_t seed, enum restart_scope scope)
{
    memset(&model, 0, sizeof model);
    model.seed = seed;
    model.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    model.now_ms = SCENE_NOW;
    model.counts_since_ms = model.replaced_since_ms = FIELD_UNSET;
    model.options = plan_options_default;
    scene_init(&model.scene, WORKERS);
    model.scene.job.run_policy.restart_scope = scope;
    model.scene.job.run_policy.backoff_limit = (int64_t)draw(8);
    model.scene.job.suspend = chance(10);
    model.scene.job.elastic.enabled = chance(30);
    model.scene.job.elastic.min_workers = 1;
    model.scene.job.elastic.max_workers = WORKERS;
    model.scene.job.elastic.wanted_workers = WORKERS;
    model.scene.job.queue_elastic = chance(70);
    model.scene.job.roles[ROLE_PS].count = chance(15);
    model.scene.job.roles[ROLE_EVALUATOR].count = chance(25);
    model.rule = (struct failure_rule){
        .action = FAILURE_IGNORE, .has_exit_codes = true, .exit_codes = {EXIT_CODES_IN, {LET_OFF}, 1}};
    model.scene.job.run_policy.failure_policy = (struct failure_policy){&model.rule, chance(25)};
    model.scene.job.run_policy.active_deadline_seconds = chance(10) ? 30 + (int64_t)draw(300) : FIELD_UNSET;
    model.scene.job.run_policy.progress_deadline_seconds = chance(20) ? 10 + (int64_t)draw(100) : FIELD_UNSET;
    model.scene.job.run_policy.straggler_replacement = (struct straggler_replacement_spec){
        .after_seconds = seed % 2 ? 10 : FIELD_UNSET, .max_per_hour = 1 + (int64_t)(seed / 6 % 3)};
    model.clock_is_set = chance(50);
    model.scene.job.queue_name = chance(30) ? "queue" : NULL;
    model.scene.job.run_policy.gang.scheduler = chance(30) ? GANG_VOLCANO : GANG_NONE;
    model.options.unrecorded_crews = chance(80); /* else nobody holds a lease */
    model.born = model.options.unrecorded_crews && chance(60);
    model.scene.job.run_policy.node_avoidance = (struct node_avoidance_spec){
        .failures = (int64_t)(seed % 4), .window_seconds = 60 * (int64_t)(seed % 7 + 1), .unschedulable_seconds = 20};
    model.key_lost_in = seed % 3 == 0 ? (int)(seed % STEPS) : -1;
    static char class_uid[] = "class";
    model.class_spec = json_new_object();
    model.class = (struct class_view){.uid = class_uid, .spec = model.class_spec};
    model.scene.job.training_class.name = chance(20) ? "gpu" : NULL;
    see_job();
    for (int step = 0; step < STEPS; step++) {
        world_turn();
        operator_turn();
    }
    model.calm = true;
    model.scene.job.suspend = false;
    size_t idle = 0;
    for (int step = 0; step < CALM_STEPS && idle < 12; step++) {
        world_turn();
        chief_finishes();
        model.now_ms += 20000;
        bool over = status_terminal(&model.scene.job.status) && !waits_for_dead_node();
        idle = operator_turn() == 0 && over ? idle + 1 : 0;
    }
    CHECK(idle >= 12, "the operator does not come to rest");
    check_end();
    json_free(model.class_spec);
    model.scene.job.status.training_class.defaults = NULL;
}

/* PLAN_REPLAY_FIRST and PLAN_REPLAY_LAST in the environment: other seeds than 1 to SCHEDULES. */
static uint64_t seed_limit(const char *name, uint64_t standard)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : standard;
}

static void run_schedules(enum restart_scope scope)
{
    uint64_t last = seed_limit("PLAN_REPLAY_LAST", SCHEDULES);
    for (uint64_t seed = seed_limit("PLAN_REPLAY_FIRST", 1); seed <= last; seed++) {
        run_schedule(seed, scope);
        scene_release(&model.scene);
    }
}

Test(plan_replay, pods_are_replaced_one_by_one)
{
    run_schedules(RESTART_SCOPE_POD);
    cr_expect(getenv("PLAN_REPLAY_LAST") || stragglers_replaced > 0, "the schedules replace no straggler");
    cr_expect(getenv("PLAN_REPLAY_LAST") || quota_lowered > 0, "the schedules give no quota back");
    cr_expect(getenv("PLAN_REPLAY_LAST") || (slices_created > 0 && slices_admitted > 0), "the schedules grow no job");
}

Test(plan_replay, crews_start_over)
{
    run_schedules(RESTART_SCOPE_JOB);
}

/* Beyond the first SCHEDULES, seeds of which the model or the plan was wrong once. */
Test(plan_replay, what_was_found_once)
{
    static const uint64_t seeds[] = {75507};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        run_schedule(seeds[i], RESTART_SCOPE_POD);
        scene_release(&model.scene);
        run_schedule(seeds[i], RESTART_SCOPE_JOB);
        scene_release(&model.scene);
    }
}

/* Lists whether each of the job's objects exists. */
static size_t leftovers(bool *left[PODS_MAX + 4])
{
    bool *all[] = {&model.service, &model.group_there, &model.workload_there, &model.slice_there};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*all[i])
            left[count++] = all[i];
    for (size_t i = 0; i < model.pod_count; i++)
        if (model.pods[i].exists)
            left[count++] = &model.pods[i].exists;
    return count;
}

static bool delete_something(void)
{
    bool *left[PODS_MAX + 4];
    size_t count = leftovers(left);
    if (count > 0)
        *left[draw(count)] = false;
    return count > 0;
}

static void turn_after_the_end(void)
{
    model.now_ms += (int64_t)draw(5000);
    operator_turn();
    CHECK(status_terminal(&model.scene.job.status), "the end is taken back");
}

/* After the end, a user deletes the job's objects one by one while the operator is killed repeatedly and may see old caches, until
 * nothing is left and the operator has seen that. The checks of the model would find a create, or a status that is no longer final. Only
 * deletions of existing objects count. */
Test(plan_replay, terminal_is_terminal)
{
    size_t deletions = 0;
    for (uint64_t seed = 1; deletions < DELETIONS; seed++) {
        run_schedule(seed, seed % 2 ? RESTART_SCOPE_POD : RESTART_SCOPE_JOB);
        model.calm = false;
        for (; delete_something(); deletions++)
            turn_after_the_end();
        for (int turn = 0; turn < 10; turn++)
            turn_after_the_end();
        scene_release(&model.scene);
    }
}
