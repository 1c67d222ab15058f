/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/event_recorder.h"

#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/utf8.h"
#include "operator/kube/hash_map.h"

#define FLOW "events"

/* One event and its repetitions. */
struct series {
    struct event_recorder *recorder;
    char *name, *name_space;
    uint64_t count, written; /* times seen; times that the server knows of */
    int64_t last_ms;         /* last seen */
    struct kube_call *call;  /* a write on its way */
    bool is_gone;            /* the server no longer has it */
};

struct event_recorder {
    struct kube_client *client;
    char *controller, *instance;
    int64_t window_ms, series_delay_ms;
    int64_t forgot_ms;      /* when old series were last looked for */
    struct hash_map series; /* what makes repetitions the same -> struct series */
    size_t under_way;
    uint64_t sequence;
    struct event_timer *timer; /* running while some series has unwritten repetitions */
    bool stopped;
    struct event_recorder_counts counts;
};

static const char *const type_names[] = {[EVENT_NORMAL] = "Normal", [EVENT_WARNING] = "Warning"};

/* ---------------------------------------------------------------- life cycle */

struct event_recorder *event_recorder_new(struct kube_client *client, const struct event_recorder_options *options)
{
    struct event_recorder *recorder = memory_allocate(1, sizeof *recorder);
    recorder->client = client;
    recorder->controller = memory_copy_string(options->controller);
    recorder->instance = memory_copy_string(options->instance);
    recorder->window_ms = options->window_ms > 0 ? options->window_ms : 600000;
    recorder->series_delay_ms = options->series_delay_ms > 0 ? options->series_delay_ms : 10000;
    hash_map_init(&recorder->series);
    return recorder;
}

static void series_free(void *value)
{
    struct series *series = value;
    if (series->call)
        kube_call_cancel(series->call);
    free(series->name);
    free(series->name_space);
    free(series);
}

void event_recorder_stop(struct event_recorder *recorder)
{
    recorder->stopped = true;
    event_timer_cancel(recorder->timer);
    recorder->timer = NULL;
    hash_map_release(&recorder->series, series_free);
    hash_map_init(&recorder->series);
}

void event_recorder_free(struct event_recorder *recorder)
{
    if (recorder == NULL)
        return;
    event_recorder_stop(recorder);
    hash_map_release(&recorder->series, NULL);
    free(recorder->controller);
    free(recorder->instance);
    free(recorder);
}

struct event_recorder_counts event_recorder_counts(const struct event_recorder *recorder)
{
    return recorder->counts;
}

/* ---------------------------------------------------------------- writing */

static void on_written(void *context, const struct kube_answer *answer)
{
    struct series *series = context;
    struct event_recorder *recorder = series->recorder;
    series->call = NULL;
    recorder->under_way--;
    if (answer->error == NULL) {
        recorder->counts.written++;
        return;
    }
    recorder->counts.failed++;
    series->is_gone = true;
}

static struct kube_call_options call_options(struct series *series)
{
    series->recorder->under_way++;
    series->written = series->count;
    return (struct kube_call_options){
        .flow = FLOW, .priority = KUBE_LOW, .metadata_only = true, .answered = on_written, .context = series};
}

static void write_repetitions(struct series *series)
{
    char last[CLOCK_TEXT_MAX];
    clock_format_microseconds(series->last_ms, last);
    SCOPED_JSON *patch = json_new_object();
    struct json *repetitions = json_set_object(patch, "series");
    json_set_integer(repetitions, "count", (int64_t)series->count);
    json_set_string(repetitions, "lastObservedTime", last);
    struct resource_path path = {.resource = KUBE_EVENTS, .name_space = series->name_space, .name = series->name};
    struct kube_call_options options = call_options(series);
    series->call = kube_client_patch(series->recorder->client, &path, patch, &options);
}

static void timer_arm(struct event_recorder *recorder);

static void on_repetitions_due(void *context)
{
    struct event_recorder *recorder = context;
    size_t at = 0;
    void *value;
    bool some_wait = false;
    recorder->timer = NULL;
    while (hash_map_next(&recorder->series, &at, NULL, &value)) {
        struct series *series = value;
        bool is_due = series->count > series->written && !series->is_gone;
        if (is_due && series->call == NULL)
            write_repetitions(series);
        else
            some_wait |= is_due;
    }
    if (some_wait)
        timer_arm(recorder);
}

static void timer_arm(struct event_recorder *recorder)
{
    if (recorder->timer == NULL)
        recorder->timer = event_timer_start(kube_client_loop(recorder->client), recorder->series_delay_ms,
                                            on_repetitions_due, recorder);
}

static void repeat(struct event_recorder *recorder, struct series *series)
{
    series->count++;
    series->last_ms = clock_now_ms();
    timer_arm(recorder);
}

static void set_note(struct json *event, const char *note)
{
    SCOPED_FREE char *fitting = memory_copy_bytes(note, utf8_fit(note, EVENT_NOTE_MAX));
    json_set_string(event, "note", fitting);
}

static struct json *event_new(const struct event_recorder *recorder, const struct series *series,
                              const struct event_subject *subject, enum event_type type, const char *reason,
                              const char *action)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_microseconds(series->last_ms, now);
    struct json *event = json_new_object();
    json_set_string(event, "apiVersion", "events.k8s.io/v1");
    json_set_string(event, "kind", "Event");
    struct json *metadata = json_set_object(event, "metadata");
    json_set_string(metadata, "name", series->name);
    json_set_string(metadata, "namespace", series->name_space);
    json_set_string(event, "eventTime", now);
    json_set_string(event, "reportingController", recorder->controller);
    json_set_string(event, "reportingInstance", recorder->instance);
    json_set_string(event, "type", type_names[type]);
    json_set_string(event, "reason", reason);
    json_set_string(event, "action", action);
    struct json *regarding = json_set_object(event, "regarding");
    json_set_string(regarding, "apiVersion", subject->api_version);
    json_set_string(regarding, "kind", subject->kind);
    json_set_string(regarding, "namespace", subject->name_space);
    json_set_string(regarding, "name", subject->name);
    json_set_string(regarding, "uid", subject->uid);
    json_set_string(regarding, "resourceVersion", subject->resource_version);
    return event;
}

/* ---------------------------------------------------------------- recording */

/* Forgets series whose window is over; if the table is full, all without a write in progress. */
static void forget_old(struct event_recorder *recorder)
{
    bool is_full = recorder->series.count >= EVENT_RECORDER_SERIES;
    int64_t now_ms = clock_now_ms(), oldest_ms = now_ms - recorder->window_ms;
    if (!is_full && now_ms >= recorder->forgot_ms && now_ms - recorder->forgot_ms < recorder->window_ms / 8)
        return;
    recorder->forgot_ms = now_ms;
    struct hash_map kept;
    size_t at = 0;
    const char *key;
    void *value;
    hash_map_init(&kept);
    while (hash_map_next(&recorder->series, &at, &key, &value)) {
        const struct series *series = value;
        bool is_over = series->is_gone || is_full || series->last_ms < oldest_ms;
        if (series->call == NULL && is_over)
            series_free(value);
        else
            hash_map_set(&kept, key, value);
    }
    hash_map_release(&recorder->series, NULL);
    recorder->series = kept;
}

/* client-go's form, "<subject>.<unique>": a subject's name is at most 253 bytes, and so is the event's. */
static char *event_name(struct event_recorder *recorder, const struct event_subject *subject)
{
    unsigned long long unique = (unsigned long long)clock_now_ms() << 12 | (recorder->sequence++ & 0xfff);
    return memory_format("%.236s.%llx", subject->name, unique);
}

static void record_first(struct event_recorder *recorder, const char *key, const struct event_subject *subject,
                         enum event_type type, const char *reason, const char *action, const char *note)
{
    if (recorder->under_way >= EVENT_RECORDER_QUEUE) {
        recorder->counts.dropped++;
        return;
    }
    forget_old(recorder);
    struct series *series = memory_allocate(1, sizeof *series);
    *series = (struct series){
        .recorder = recorder,
        .name = event_name(recorder, subject),
        .name_space =
            memory_copy_string(subject->name_space && subject->name_space[0] ? subject->name_space : "default"),
        .count = 1,
        .last_ms = clock_now_ms(),
    };
    hash_map_set(&recorder->series, key, series);
    SCOPED_JSON *event = event_new(recorder, series, subject, type, reason, action);
    set_note(event, note);
    struct resource_path path = {.resource = KUBE_EVENTS, .name_space = series->name_space};
    struct kube_call_options options = call_options(series);
    series->call = kube_client_create(recorder->client, &path, event, &options);
}

void event_recorder_record(struct event_recorder *recorder, const struct event_subject *subject, enum event_type type,
                           const char *reason, const char *action, const char *note)
{
    recorder->counts.recorded++;
    if (recorder->stopped) {
        recorder->counts.dropped++;
        return;
    }
    SCOPED_FREE char *key = memory_format("%s/%s/%s/%s/%s", subject->uid ? subject->uid : "", subject->name,
                                          type_names[type], reason, note);
    struct series *series = hash_map_get(&recorder->series, key);
    if (series && !series->is_gone && series->last_ms + recorder->window_ms >= clock_now_ms()) {
        repeat(recorder, series);
        return;
    }
    if (series) {
        hash_map_remove(&recorder->series, key);
        series_free(series);
    }
    record_first(recorder, key, subject, type, reason, action, note);
}
