/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/kube/backoff.h"

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000
#define JITTER_PERCENT 20

/* The holder retries a failed renewal after 1/HELD_RETRY_PART of retry_ms. */
#define HELD_RETRY_PART 4

struct lease {
    struct kube_client *client;
    struct lease_options options;
    char *name_space, *name, *identity;

    /* As last read, and when it last changed by our own clock: other machines' clocks are not trusted. */
    struct json *record;
    bool record_is_stale; /* a write of ours was refused: read before the next */
    int64_t record_changed_ns;

    bool held;
    int64_t held_until_ns; /* when the gate closes, even if the loop is busy */
    int64_t request_began_ns;
    char trouble[ERROR_MESSAGE_MAX]; /* of the last try; "": it went well */
    struct event_timer *retry;       /* the next look or renewal */
    struct event_timer *expiry;
    struct kube_call *call;
    lease_released *released; /* not NULL: being given up */
    void *released_context;
};

/* ---------------------------------------------------------------- gate */

bool lease_held(const struct lease *lease)
{
    return lease->held && clock_elapsed_ns() < lease->held_until_ns;
}

static bool gate_is_open(void *context)
{
    return lease_held(context);
}

static bool gate_stays_closed(void *context)
{
    (void)context;
    return false;
}

/* ---------------------------------------------------------------- record */

static const char *record_text(const struct lease *lease, const char *field)
{
    return json_string(json_member(json_member(lease->record, "spec"), field), "");
}

const char *lease_holder(const struct lease *lease)
{
    return record_text(lease, "holderIdentity");
}

static void record_take(struct lease *lease, const struct json *object)
{
    const char *old = json_string_at(lease->record, "metadata.resourceVersion", "");
    const char *fresh = json_string_at(object, "metadata.resourceVersion", "");
    if (lease->record == NULL || strcmp(old, fresh) != 0)
        lease->record_changed_ns = clock_monotonic_ns();
    struct json *copy = json_copy(object);
    json_free(lease->record);
    lease->record = copy;
    lease->record_is_stale = false;
}

static bool is_free(const struct lease *lease)
{
    const char *holder = lease_holder(lease);
    int64_t seconds = json_integer_at(lease->record, "spec.leaseDurationSeconds", lease->options.duration_ms / 1000);
    int64_t silent_ns = clock_monotonic_ns() - lease->record_changed_ns;
    return holder[0] == '\0' || strcmp(holder, lease->identity) == 0 || silent_ns >= seconds * 1000 * NS_PER_MS;
}

/* The Lease to write: held by us, or by nobody. */
static struct json *record_next(const struct lease *lease, bool ours)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_microseconds(clock_now_ms(), now);
    struct json *record = lease->record ? json_copy(lease->record) : json_new_object();
    bool taken_over = strcmp(lease_holder(lease), lease->identity) != 0;
    json_set_string(record, "apiVersion", "coordination.k8s.io/v1");
    json_set_string(record, "kind", "Lease");
    struct json *metadata = json_set_object(record, "metadata");
    json_set_string(metadata, "name", lease->name);
    json_set_string(metadata, "namespace", lease->name_space);
    json_remove(metadata, "managedFields");
    struct json *spec = json_set_object(record, "spec");
    json_set_string(spec, "holderIdentity", ours ? lease->identity : "");
    json_set_integer(spec, "leaseDurationSeconds", ours ? (lease->options.duration_ms + 999) / 1000 : 1);
    json_set_string(spec, "renewTime", now);
    if (ours && taken_over) {
        json_set_string(spec, "acquireTime", now);
        json_set_integer(spec, "leaseTransitions",
                         lease->record ? json_integer_at(lease->record, "spec.leaseTransitions", 0) + 1 : 0);
    }
    return record;
}

/* ---------------------------------------------------------------- competing */

static void look(void *context);
static void claim(struct lease *lease);

static void look_again(struct lease *lease)
{
    bool renewal_failed = lease->held && lease->record_is_stale;
    int64_t shortest = renewal_failed ? lease->options.retry_ms / HELD_RETRY_PART : lease->options.retry_ms;
    int64_t delay_ms = jitter_between(shortest, shortest + shortest * JITTER_PERCENT / 100);
    event_timer_cancel(lease->retry);
    lease->retry = event_timer_start(kube_client_loop(lease->client), delay_ms, look, lease);
}

/* Aborting writes calls their callbacks, so update our own state first. */
static void lose(struct lease *lease, const char *why)
{
    struct error reason = ERROR_INIT;
    error_set(&reason, ERROR_CANCELLED, "lease %s/%s is lost: %s", lease->name_space, lease->name, why);
    lease->held = false;
    event_timer_cancel(lease->retry);
    event_timer_cancel(lease->expiry);
    lease->retry = lease->expiry = NULL;
    if (lease->call)
        kube_call_cancel(lease->call);
    kube_client_abort_writes(lease->client);
    if (lease->options.on_lost)
        lease->options.on_lost(lease->options.context, &reason);
}

/* The loop's timer fires at held_until_ns; if it fires late, this process was not running for that long. */
static char *why_expired(const struct lease *lease, int64_t now_ns)
{
    int64_t late_s = (now_ns - lease->held_until_ns) / NS_PER_S;
    if (late_s > 0)
        return memory_format("this process was stopped, or got no CPU time, for %" PRId64 " s or more", late_s);
    if (lease->call)
        return memory_format("the last try has had no answer for %" PRId64 " ms",
                             (now_ns - lease->request_began_ns) / NS_PER_MS);
    return *lease->trouble ? memory_format("the last try: %s", lease->trouble)
                           : memory_copy_string("there was no other try");
}

static void expire(struct lease *lease)
{
    int64_t now_ns = clock_elapsed_ns(), allowed_ms = lease->options.renew_deadline_ms;
    int64_t renewed_ns = lease->held_until_ns - allowed_ms * NS_PER_MS;
    SCOPED_FREE char *cause = why_expired(lease, now_ns);
    SCOPED_FREE char *why = memory_format("it was not renewed for %" PRId64 " ms, %" PRId64 " are allowed; %s",
                                          (now_ns - renewed_ns) / NS_PER_MS, allowed_ms, cause);
    lose(lease, why);
}

static void on_expiry(void *context)
{
    struct lease *lease = context;
    lease->expiry = NULL;
    expire(lease);
}

/* After the process was frozen: do not send writes that were waiting. */
static void on_wake(void *context)
{
    struct lease *lease = context;
    if (lease->held && !lease_held(lease))
        expire(lease);
}

/* The term counts from before the request was sent: the server's clock started no sooner. */
static void renewed(struct lease *lease)
{
    bool was_held = lease->held;
    lease->trouble[0] = '\0';
    int64_t until_ns = lease->request_began_ns + lease->options.renew_deadline_ms * NS_PER_MS;
    int64_t left_ms = (until_ns - clock_elapsed_ns()) / NS_PER_MS;
    lease->held = true;
    lease->held_until_ns = until_ns;
    event_timer_cancel(lease->expiry);
    lease->expiry = event_timer_start(kube_client_loop(lease->client), left_ms, on_expiry, lease);
    look_again(lease);
    if (!was_held && lease->options.on_elected)
        lease->options.on_elected(lease->options.context);
}

/* If another process was faster, that is not reported as a failure. */
static void note_failure(struct lease *lease, const struct error *error)
{
    bool was_late = error->kind == ERROR_CONFLICT || error->kind == ERROR_ALREADY_EXISTS;
    snprintf(lease->trouble, sizeof lease->trouble, "%s", error->message);
    if (lease->options.on_failure && !was_late)
        lease->options.on_failure(lease->options.context, error);
}

static void on_claimed(void *context, const struct kube_answer *answer)
{
    struct lease *lease = context;
    lease->call = NULL;
    if (answer->error && answer->error->kind == ERROR_CANCELLED)
        return;
    if (answer->error == NULL) {
        record_take(lease, answer->object);
        renewed(lease);
        return;
    }
    lease->record_is_stale = true;
    note_failure(lease, answer->error);
    look_again(lease);
}

static void on_looked(void *context, const struct kube_answer *answer)
{
    struct lease *lease = context;
    lease->call = NULL;
    bool is_missing = answer->error && answer->error->kind == ERROR_NOT_FOUND;
    if (answer->error && answer->error->kind == ERROR_CANCELLED)
        return;
    if (answer->error && !is_missing) {
        note_failure(lease, answer->error);
        look_again(lease);
        return;
    }
    if (is_missing) {
        json_free(lease->record);
        lease->record = NULL;
    } else {
        record_take(lease, answer->object);
    }
    bool is_ours = strcmp(lease_holder(lease), lease->identity) == 0;
    if (lease->held && !is_missing && !is_ours)
        lose(lease, "another has taken it");
    else if (is_missing || is_free(lease))
        claim(lease);
    else
        look_again(lease);
}

static struct kube_call_options call_options(struct lease *lease, kube_answered *answered)
{
    return (struct kube_call_options){
        .timeout_ms = lease->options.renew_deadline_ms / 2,
        .tries_max = 1,
        .priority = KUBE_URGENT,
        .answered = answered,
        .context = lease,
    };
}

static struct resource_path lease_path(const struct lease *lease, bool with_name)
{
    return (struct resource_path){
        .resource = KUBE_LEASES, .name_space = lease->name_space, .name = with_name ? lease->name : NULL};
}

/* The holder renews with one request, based on the record it wrote last; others read the lease first. */
static void look(void *context)
{
    struct lease *lease = context;
    lease->retry = NULL;
    if (lease->held && !lease->record_is_stale) {
        claim(lease);
        return;
    }
    struct resource_path path = lease_path(lease, true);
    struct kube_call_options options = call_options(lease, on_looked);
    lease->request_began_ns = clock_elapsed_ns();
    lease->call = kube_client_get(lease->client, &path, &options);
}

static void claim(struct lease *lease)
{
    SCOPED_JSON *record = record_next(lease, true);
    bool exists = lease->record != NULL;
    struct resource_path path = lease_path(lease, exists);
    struct kube_call_options options = call_options(lease, on_claimed);
    lease->request_began_ns = clock_elapsed_ns();
    lease->call = exists ? kube_client_replace(lease->client, &path, record, &options)
                         : kube_client_create(lease->client, &path, record, &options);
}

/* ---------------------------------------------------------------- giving up */

static void on_released(void *context, const struct kube_answer *answer)
{
    struct lease *lease = context;
    lease->call = NULL;
    if (lease->released)
        lease->released(lease->released_context, answer->error);
}

static void on_nothing_to_release(void *context)
{
    struct lease *lease = context;
    lease->retry = NULL;
    lease->released(lease->released_context, NULL);
}

void lease_release(struct lease *lease, lease_released *released, void *context)
{
    bool was_held = lease_held(lease);
    lease->released = released;
    lease->released_context = context;
    lease->held = false;
    event_timer_cancel(lease->retry);
    event_timer_cancel(lease->expiry);
    lease->retry = lease->expiry = NULL;
    if (lease->call)
        kube_call_cancel(lease->call);
    kube_client_abort_writes(lease->client);
    if (!was_held) {
        lease->retry = event_timer_start(kube_client_loop(lease->client), 0, on_nothing_to_release, lease);
        return;
    }
    SCOPED_JSON *record = record_next(lease, false);
    struct resource_path path = lease_path(lease, true);
    struct kube_call_options options = call_options(lease, on_released);
    lease->call = kube_client_replace(lease->client, &path, record, &options);
}

/* ---------------------------------------------------------------- life cycle */

static int64_t otherwise(int64_t value, int64_t standard)
{
    return value > 0 ? value : standard;
}

struct lease *lease_start(struct kube_client *client, const struct lease_options *options)
{
    struct lease *lease = memory_allocate(1, sizeof *lease);
    lease->client = client;
    lease->options = *options;
    lease->name_space = memory_copy_string(options->name_space);
    lease->name = memory_copy_string(options->name);
    lease->identity = memory_copy_string(options->identity);
    lease->options.duration_ms = otherwise(options->duration_ms, 15000);
    lease->options.renew_deadline_ms = otherwise(options->renew_deadline_ms, 10000);
    lease->options.retry_ms = otherwise(options->retry_ms, 2000);
    kube_client_set_write_gate(client, gate_is_open, lease);
    event_loop_set_guard(kube_client_loop(client), on_wake, lease);
    lease->retry = event_timer_start(kube_client_loop(client), 0, look, lease);
    return lease;
}

void lease_free(struct lease *lease)
{
    if (lease == NULL)
        return;
    lease->held = false;
    kube_client_set_write_gate(lease->client, gate_stays_closed, NULL);
    event_loop_set_guard(kube_client_loop(lease->client), NULL, NULL);
    if (lease->call) {
        lease->released = NULL;
        kube_call_cancel(lease->call);
    }
    event_timer_cancel(lease->retry);
    event_timer_cancel(lease->expiry);
    json_free(lease->record);
    free(lease->name_space);
    free(lease->name);
    free(lease->identity);
    free(lease);
}
