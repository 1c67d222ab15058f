/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/node_taints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/log.h"
#include "common/memory.h"
#include "operator/controller/execute/job_entry.h"
#include "operator/controller/observed/node_view.h"
#include "operator/controller/plan/sick_node.h"

#define LOOK_MS 5000

/* The operator's taint of a node, as it was when this process first saw it. */
struct seen_taint {
    char *node;
    int64_t since_ms, until_ms; /* as the annotations say */
    int64_t from_ms;            /* since_ms on the steady clock */
};

struct node_taints {
    struct node_taints_options options;
    int64_t started_ms, started_steady_ms;
    struct sick_failure failures[NODE_TAINTS_FAILURES_MAX]; /* at_ms: on the steady clock */
    size_t count;
    struct seen_taint *seen; /* of nodes in the cache */
    size_t seen_count;
    struct event_timer *timer;
    char *node;     /* the node that is being changed; NULL: none */
    bool removes;   /* the taint is removed from it, not set */
    char *note;     /* what the event says once the node is changed */
    uint64_t write; /* own_write_note of the nodes */
    char *last;     /* the node that was tried last, whether it could be changed or not; NULL: none */
    bool full;      /* the log says that too many nodes have the taint */
    bool refused;   /* the log says why a node could not be changed, and none has been changed since */
    bool stopped;
};

/* ---------------------------------------------------------------- time */

/* The clock at the start, and since then a clock that nobody sets. */
static int64_t steady_now_ms(const struct node_taints *taints)
{
    return taints->started_ms + clock_monotonic_ms() - taints->started_steady_ms;
}

/* A time of the machine's clock that is first seen now. If the clock is set later, the result stays right. */
static int64_t steady_of(const struct node_taints *taints, int64_t at_ms)
{
    return steady_now_ms(taints) - (clock_now_ms() - at_ms);
}

static struct sick_failures failures_of(const struct node_taints *taints)
{
    return (struct sick_failures){taints->failures, taints->count, taints->options.window_ms, steady_now_ms(taints)};
}

static struct seen_taint *find_seen(const struct node_taints *taints, const char *node, int64_t since_ms,
                                    int64_t until_ms)
{
    for (size_t i = 0; i < taints->seen_count; i++)
        if (strcmp(taints->seen[i].node, node) == 0 && taints->seen[i].since_ms == since_ms &&
            taints->seen[i].until_ms == until_ms)
            return &taints->seen[i];
    return NULL;
}

static void forget_seen(struct node_taints *taints)
{
    for (size_t i = 0; i < taints->seen_count; i++)
        free(taints->seen[i].node);
    free(taints->seen);
}

/* Notes the taints of the cache. Those that it has no more are forgotten. */
static void note_taints(struct node_taints *taints)
{
    const char *key;
    const void *item;
    size_t count = 0;
    struct seen_taint *list = memory_allocate(informer_count(taints->options.nodes) + 1, sizeof *list);
    for (size_t at = 0; informer_next(taints->options.nodes, &at, &key, &item);) {
        const struct node_trouble *mark = item;
        if (mark->sick_since_ms == 0)
            continue;
        const struct seen_taint *before = find_seen(taints, mark->name, mark->sick_since_ms, mark->sick_until_ms);
        list[count++] = (struct seen_taint){memory_copy_string(mark->name), mark->sick_since_ms, mark->sick_until_ms,
                                            before ? before->from_ms : steady_of(taints, mark->sick_since_ms)};
    }
    forget_seen(taints);
    taints->seen = list;
    taints->seen_count = count;
}

/* Returns when the taint was set, on the steady clock; 0: no operator has set one. */
static int64_t set_ms(const struct node_taints *taints, const struct node_trouble *mark)
{
    if (!mark || mark->sick_since_ms == 0)
        return 0;
    const struct seen_taint *seen = find_seen(taints, mark->name, mark->sick_since_ms, mark->sick_until_ms);
    return seen ? seen->from_ms : steady_of(taints, mark->sick_since_ms);
}

/* Another operator may have another window. */
static bool is_over(const struct node_taints *taints, const struct node_trouble *mark)
{
    struct sick_failures failures = failures_of(taints);
    bool known = mark->sick_until_ms > mark->sick_since_ms;
    int64_t lasts_ms = known ? mark->sick_until_ms - mark->sick_since_ms : taints->options.window_ms;
    return sick_node_is_over(&failures, set_ms(taints, mark), lasts_ms);
}

/* ---------------------------------------------------------------- failures */

static void remove_failure(struct node_taints *taints, size_t i)
{
    struct sick_failure *failure = &taints->failures[i];
    free(failure->uid);
    free(failure->program);
    free(failure->job);
    free(failure->node);
    free(failure->reason);
    *failure = taints->failures[--taints->count];
}

static void add_failure(struct node_taints *taints, const struct training_job *job, const struct node_failure *failure,
                        int64_t at_ms)
{
    size_t oldest = 0;
    for (size_t i = 1; i < taints->count; i++)
        if (taints->failures[i].at_ms < taints->failures[oldest].at_ms)
            oldest = i;
    if (taints->count == NODE_TAINTS_FAILURES_MAX)
        remove_failure(taints, oldest);
    taints->failures[taints->count++] = (struct sick_failure){
        .uid = memory_copy_string(job->uid),
        .program = memory_copy_string(job->sweep_uid ? job->sweep_uid : job->uid),
        .job = memory_format("%s/%s", job->namespace, job->name),
        .node = memory_copy_string(failure->node),
        .reason = memory_copy_string(failure->reason ? failure->reason : ""),
        .at_ms = at_ms,
        .noted_ms = failure->at_ms,
    };
}

/* Returns the time of a failure on the steady clock. */
static int64_t time_of(const struct node_taints *taints, const struct training_job *job,
                       const struct node_failure *failure)
{
    for (size_t i = 0; i < taints->count; i++)
        if (taints->failures[i].noted_ms == failure->at_ms && strcmp(taints->failures[i].uid, job->uid) == 0 &&
            strcmp(taints->failures[i].node, failure->node) == 0)
            return taints->failures[i].at_ms;
    return steady_of(taints, failure->at_ms);
}

void node_taints_note(struct node_taints *taints, const struct training_job *job)
{
    if (!taints)
        return;
    unsigned count = job->status.node_failure_count;
    int64_t *times = memory_allocate(count + 1, sizeof *times);
    for (unsigned i = 0; i < count; i++)
        if (job->status.node_failures[i].node)
            times[i] = time_of(taints, job, &job->status.node_failures[i]);
    for (size_t i = taints->count; i-- > 0;)
        if (strcmp(taints->failures[i].uid, job->uid) == 0)
            remove_failure(taints, i);
    for (unsigned i = 0; i < count; i++)
        if (job->status.node_failures[i].node && steady_now_ms(taints) - times[i] < taints->options.window_ms)
            add_failure(taints, job, &job->status.node_failures[i], times[i]);
    free(times);
}

/* ---------------------------------------------------------------- a node is changed */

static void end_change(struct node_taints *taints)
{
    free(taints->node);
    free(taints->note);
    taints->node = taints->note = NULL;
}

static struct kube_call_options call_options(struct node_taints *taints, kube_answered *answered)
{
    return (struct kube_call_options){.answered = answered, .context = taints};
}

static void log_failure(struct node_taints *taints, const struct error *error)
{
    if (error->kind == ERROR_CONFLICT || error->kind == ERROR_NOT_FOUND || error->kind == ERROR_CANCELLED)
        log_debug("node not changed", "node", taints->node, "why", error->message, NULL);
    else if (!taints->refused) {
        log_warning("a sick node's taint cannot be changed; allow the operator to get and patch nodes", "node",
                    taints->node, "why", error->message, NULL);
        taints->refused = true;
    }
}

static void node_patched(void *context, const struct kube_answer *answer)
{
    struct node_taints *taints = context;
    if (answer->error) {
        log_failure(taints, answer->error);
    } else if (!taints->stopped) {
        struct event_subject node = {.api_version = "v1", .kind = "Node", .name = taints->node, .uid = taints->node};
        own_write_note(&taints->write, json_string_at(answer->object, "metadata.resourceVersion", NULL));
        taints->refused = false;
        log_info(taints->removes ? "taint of a sick node removed" : "sick node tainted", "node", taints->node, "why",
                 taints->note, NULL);
        event_recorder_record(taints->options.recorder, &node, taints->removes ? EVENT_NORMAL : EVENT_WARNING,
                              taints->removes ? "SickNodeTaintRemoved" : "SickNodeTainted",
                              taints->removes ? "RemoveTaint" : "TaintNode", taints->note);
    }
    end_change(taints);
}

/* The node's own taints, without or with ours. */
static struct json *taints_list(const struct json *node, bool with_ours)
{
    struct json *list = json_new_array();
    const struct json *taints = json_at(node, "spec.taints");
    for (const struct json *taint = json_first(taints); taint; taint = json_next(taint))
        if (strcmp(json_string_at(taint, "key", ""), TAINT_SICK) != 0)
            json_append(list, json_copy(taint));
    if (with_ours) {
        struct json *ours = json_append(list, json_new_object());
        json_set_string(ours, "key", TAINT_SICK);
        json_set_string(ours, "effect", "NoSchedule");
    }
    return list;
}

/* The time is rounded up to whole seconds: failures up to now are older. */
static void patch_node(struct node_taints *taints, const struct json *node)
{
    SCOPED_JSON *patch = json_new_object();
    struct json *metadata = json_set_object(patch, "metadata");
    json_set_string(metadata, "resourceVersion", json_string_at(node, "metadata.resourceVersion", ""));
    struct json *annotations = json_set_object(metadata, "annotations");
    char since[CLOCK_TEXT_MAX], until[CLOCK_TEXT_MAX];
    int64_t since_ms = clock_now_ms() + 999;
    clock_format_seconds(since_ms, since);
    clock_format_seconds(since_ms + taints->options.window_ms, until);
    json_set(annotations, ANNOTATION_SICK_SINCE, taints->removes ? json_new_null() : json_new_string(since));
    json_set(annotations, ANNOTATION_SICK_UNTIL, taints->removes ? json_new_null() : json_new_string(until));
    json_set(json_set_object(patch, "spec"), "taints", taints_list(node, !taints->removes));
    struct resource_path path = {KUBE_NODES, NULL, taints->node, NULL};
    struct kube_call_options options = call_options(taints, node_patched);
    kube_client_patch(taints->options.client, &path, patch, &options);
}

static char *describe_sick(const struct node_taints *taints, const struct sick_node *sick)
{
    char until[CLOCK_TEXT_MAX];
    clock_format_seconds(clock_now_ms() + 999 + taints->options.window_ms, until);
    return memory_format("no pods without a toleration are scheduled on node %s until %s (taint " TAINT_SICK
                         "): %u failures of %u TrainingJobs within %" PRId64 " s, the last: %s of %s",
                         taints->node, until, sick->failures, sick->jobs, taints->options.window_ms / 1000,
                         sick->last->reason, sick->last->job);
}

/* Judges the node once more as it is now: the cache may be old. */
static void node_read(void *context, const struct kube_answer *answer)
{
    struct node_taints *taints = context;
    struct sick_failures failures = failures_of(taints);
    if (answer->error || taints->stopped) {
        if (answer->error)
            log_failure(taints, answer->error);
        end_change(taints);
        return;
    }
    SCOPED_FREE struct node_trouble *mark = node_trouble_new(answer->object);
    struct sick_node sick = sick_node_count(&failures, taints->node, set_ms(taints, mark));
    if (taints->removes && mark && mark->sick_since_ms > 0 && is_over(taints, mark)) {
        taints->note = memory_format("pods may be scheduled on node %s again", taints->node);
        patch_node(taints, answer->object);
    } else if (!taints->removes && !(mark && mark->sick_taint) && sick_node_is_sick(&sick)) {
        taints->note = describe_sick(taints, &sick);
        patch_node(taints, answer->object);
    } else {
        end_change(taints);
    }
}

static void read_node(struct node_taints *taints)
{
    struct resource_path path = {KUBE_NODES, NULL, taints->node, NULL};
    struct kube_call_options options = call_options(taints, node_read);
    kube_client_get(taints->options.client, &path, &options);
}

static size_t count_tainted(const struct node_taints *taints)
{
    const char *key;
    const void *item;
    size_t tainted = 0;
    for (size_t at = 0; informer_next(taints->options.nodes, &at, &key, &item);)
        tainted += ((const struct node_trouble *)item)->sick_taint;
    return tainted;
}

/* A server that does not say how many nodes remain allows one taint. */
static void nodes_counted(void *context, const struct kube_answer *answer)
{
    struct node_taints *taints = context;
    if (answer->error || taints->stopped) {
        if (answer->error)
            log_failure(taints, answer->error);
        end_change(taints);
        return;
    }
    int64_t remaining = json_integer_at(answer->object, "metadata.remainingItemCount", 0);
    size_t total = json_count(json_member(answer->object, "items")) + (size_t)(remaining > 0 ? remaining : 0);
    if (count_tainted(taints) < sick_nodes_most(total)) {
        taints->full = false;
        read_node(taints);
        return;
    }
    if (!taints->full)
        log_warning("a sick node is not tainted: as many nodes as may be have the taint already", "node", taints->node,
                    NULL);
    taints->full = true;
    end_change(taints);
}

/* ---------------------------------------------------------------- which node */

/* Returns whether it is node a's turn before b's: in the order of names, beginning after the node that was tried last, so that a node that
 * cannot be changed, or no longer exists, keeps no other waiting. `b` NULL: yes. */
static bool is_sooner(const struct node_taints *taints, const char *a, const char *b)
{
    const char *last = taints->last ? taints->last : "";
    bool a_follows = strcmp(a, last) > 0, b_follows = b && strcmp(b, last) > 0;
    return !b || (a_follows != b_follows ? a_follows : strcmp(a, b) < 0);
}

static const char *find_over(const struct node_taints *taints)
{
    const char *key, *found = NULL;
    const void *item;
    for (size_t at = 0; informer_next(taints->options.nodes, &at, &key, &item);) {
        const struct node_trouble *mark = item;
        if (mark->sick_since_ms > 0 && is_over(taints, mark) && is_sooner(taints, mark->name, found))
            found = mark->name;
    }
    return found;
}

static const char *find_sick(const struct node_taints *taints, const struct sick_failures *failures)
{
    const char *found = NULL;
    for (size_t i = 0; i < failures->count; i++) {
        const char *node = failures->list[i].node;
        if (!is_sooner(taints, node, found))
            continue;
        const struct node_trouble *mark = informer_get(taints->options.nodes, node);
        struct sick_node sick = sick_node_count(failures, node, set_ms(taints, mark));
        if (!(mark && mark->sick_taint) && sick_node_is_sick(&sick))
            found = node;
    }
    return found;
}

static void change(struct node_taints *taints, const char *node, bool removes)
{
    struct resource_path path = {KUBE_NODES, NULL, NULL, NULL};
    struct kube_call_options options = call_options(taints, nodes_counted);
    options.list_limit = 1;
    taints->node = memory_copy_string(node);
    free(taints->last);
    taints->last = memory_copy_string(node);
    taints->removes = removes;
    if (removes)
        read_node(taints);
    else
        kube_client_get(taints->options.client, &path, &options);
}

static void look(void *context)
{
    struct node_taints *taints = context;
    taints->timer = event_timer_start(kube_client_loop(taints->options.client), taints->options.look_ms, look, taints);
    if (taints->node || !informer_synced(taints->options.nodes) ||
        !informer_has_seen(taints->options.nodes, taints->write))
        return;
    note_taints(taints);
    struct sick_failures failures = failures_of(taints);
    for (size_t i = taints->count; i-- > 0;)
        if (failures.now_ms - taints->failures[i].at_ms >= taints->options.window_ms)
            remove_failure(taints, i);
    failures.count = taints->count;
    const char *over = find_over(taints), *sick = find_sick(taints, &failures);
    bool removes = over && is_sooner(taints, over, sick);
    if (over || sick)
        change(taints, removes ? over : sick, removes);
}

/* ---------------------------------------------------------------- life cycle */

struct node_taints *node_taints_start(const struct node_taints_options *options)
{
    struct node_taints *taints = memory_allocate(1, sizeof *taints);
    taints->options = *options;
    taints->started_ms = clock_now_ms();
    taints->started_steady_ms = clock_monotonic_ms();
    if (taints->options.look_ms <= 0)
        taints->options.look_ms = LOOK_MS;
    taints->timer = event_timer_start(kube_client_loop(options->client), taints->options.look_ms, look, taints);
    return taints;
}

void node_taints_stop(struct node_taints *taints)
{
    if (!taints || taints->stopped)
        return;
    taints->stopped = true;
    event_timer_cancel(taints->timer);
}

void node_taints_free(struct node_taints *taints)
{
    if (!taints)
        return;
    while (taints->count > 0)
        remove_failure(taints, taints->count - 1);
    forget_seen(taints);
    end_change(taints);
    free(taints->last);
    free(taints);
}
