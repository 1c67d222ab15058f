/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/ui/documents.h"
#include "operator/cli/ui/version.h"
#include "operator/kube/informer.h"

#define ROW_MAX (16 * 1024)
#define GONE_MAX 1024
#define PULSE_MS 2000
#define PULSE_TIMEOUT_MS 5000
#define TROUBLE_MAX (ERROR_MESSAGE_MAX + 512)

enum { JOBS, SWEEPS, KINDS };

struct row {
    char *text; /* JSON */
    uint64_t version;
};

struct collection {
    struct ui_list *list;
    bool sweeps;
    struct informer *informer;
};

struct gone {
    char *key;
    uint64_t version;
};

struct ui_list {
    struct kube_client *client;
    struct collection collections[KINDS];
    bool kept;
    uint64_t first_version, version;
    struct gone gone[GONE_MAX]; /* a ring; the newest is at (gone_count - 1) % GONE_MAX */
    uint64_t gone_count;
    struct kube_call *pulse; /* asks whether the API server is there */
    struct event_timer *timer;
    char trouble[TROUBLE_MAX];
};

/* ---------------------------------------------------------------- rows */

static void *row_parse(void *context, const struct json *object)
{
    struct collection *collection = context;
    SCOPED_JSON *row = collection->sweeps ? ui_sweep_row(object) : ui_job_row(object);
    SCOPED_BUFFER text;
    buffer_init(&text, ROW_MAX);
    if (json_print(row, &text, NULL) < 0)
        return NULL;
    struct row *item = memory_allocate(1, sizeof *item);
    item->text = buffer_take(&text);
    item->version = ++collection->list->version;
    return item;
}

static void row_free(void *item)
{
    struct row *row = item;
    free(row->text);
    free(row);
}

static void row_gone(void *context, const char *key, const void *item)
{
    (void)item;
    struct collection *collection = context;
    struct ui_list *list = collection->list;
    struct gone *gone = &list->gone[list->gone_count++ % GONE_MAX];
    free(gone->key);
    gone->key = memory_format("%s/%s", collection->sweeps ? "sweep" : "job", key);
    gone->version = ++list->version;
}

/* ---------------------------------------------------------------- is the API server there? */

static void pulse(void *context);

static int drop(void *context, const char *bytes, size_t length, struct error *error)
{
    (void)context, (void)bytes, (void)length, (void)error;
    return 0;
}

static void set_trouble(struct ui_list *list, const struct error *error)
{
    char since[CLOCK_TEXT_MAX];
    if (*list->trouble)
        return;
    clock_format_seconds(clock_now_ms(), since);
    snprintf(list->trouble, sizeof list->trouble,
             "The API server has not answered since %s, and the page shows what was known then (%s). If it belonged to "
             "a cox "
             "run, it has ended with that: end this cox ui, and show what is left with cox ui --state DIR.",
             since, error->message);
}

static void pulse_answered(void *context, const struct kube_answer *answer)
{
    struct ui_list *list = context;
    list->pulse = NULL;
    if (answer->error && answer->error->kind == ERROR_CANCELLED)
        return;
    if (answer->error && answer->error->http_status == 0)
        set_trouble(list, answer->error);
    else
        list->trouble[0] = '\0';
    list->timer = event_timer_start(kube_client_loop(list->client), PULSE_MS, pulse, list);
}

static void pulse(void *context)
{
    struct ui_list *list = context;
    struct kube_stream_options options = {.path_and_query = "/version",
                                          .timeout_ms = PULSE_TIMEOUT_MS,
                                          .on_data = drop,
                                          .answered = pulse_answered,
                                          .context = list};
    list->timer = NULL;
    list->pulse = kube_client_stream(list->client, &options);
}

/* ---------------------------------------------------------------- life */

struct ui_list *ui_list_start(struct kube_client *client, const char *name_space, bool kept)
{
    static const char *const plurals[KINDS] = {[JOBS] = TRAINING_JOB_PLURAL, [SWEEPS] = TRAINING_SWEEP_PLURAL};
    struct ui_list *list = memory_allocate(1, sizeof *list);
    list->client = client;
    list->kept = kept;
    list->first_version = list->version = random_version();
    for (int kind = 0; kind < KINDS; kind++) {
        struct collection *collection = &list->collections[kind];
        *collection = (struct collection){.list = list, .sweeps = kind == SWEEPS};
        struct informer_options options = {.resource = {API_GROUP, API_VERSION, plurals[kind]},
                                           .name_space = name_space,
                                           .parse = row_parse,
                                           .item_free = row_free,
                                           .on_deleted = row_gone,
                                           .context = collection};
        collection->informer = informer_start(client, &options);
    }
    pulse(list);
    return list;
}

void ui_list_free(struct ui_list *list)
{
    if (list->pulse)
        kube_call_cancel(list->pulse);
    if (list->timer)
        event_timer_cancel(list->timer);
    for (int kind = 0; kind < KINDS; kind++)
        informer_free(list->collections[kind].informer);
    for (size_t i = 0; i < GONE_MAX; i++)
        free(list->gone[i].key);
    free(list);
}

/* ---------------------------------------------------------------- as JSON */

/* Says which right is missing, and to what. */
static void write_refusal(const struct ui_list *list, struct json *head)
{
    for (int kind = 0; kind < KINDS; kind++) {
        const struct error *refusal = informer_refusal(list->collections[kind].informer);
        if (!refusal)
            continue;
        struct error explained = *refusal;
        access_explain(&explained);
        json_set_string(head, "trouble", explained.message);
    }
}

static int write_rows(const struct ui_list *list, uint64_t after, struct buffer *out, struct error *error)
{
    const char *before = "";
    for (int kind = 0; kind < KINDS; kind++) {
        const char *key;
        const void *item;
        for (size_t at = 0; informer_next(list->collections[kind].informer, &at, &key, &item);) {
            const struct row *row = item;
            if (row->version <= after)
                continue;
            if (buffer_append_string(out, before, error) < 0 || buffer_append_string(out, row->text, error) < 0)
                return -1;
            before = ",";
        }
    }
    return 0;
}

static struct json *gone_since(const struct ui_list *list, uint64_t version)
{
    struct json *keys = json_new_array();
    uint64_t oldest = list->gone_count > GONE_MAX ? list->gone_count - GONE_MAX : 0;
    for (uint64_t i = oldest; i < list->gone_count; i++)
        if (list->gone[i % GONE_MAX].version > version)
            json_append_string(keys, list->gone[i % GONE_MAX].key);
    return keys;
}

/* Whether the version is of this list, and the keys of all objects that are gone since then are still known. */
static bool knows_since(const struct ui_list *list, uint64_t version)
{
    if (version < list->first_version || version > list->version)
        return false;
    return list->gone_count <= GONE_MAX || list->gone[list->gone_count % GONE_MAX].version <= version;
}

static bool is_synced(const struct ui_list *list)
{
    return informer_synced(list->collections[JOBS].informer) || *list->trouble;
}

uint64_t ui_list_version(const struct ui_list *list)
{
    return is_synced(list) ? list->version : 0;
}

const char *ui_list_trouble(const struct ui_list *list)
{
    return list->trouble;
}

int ui_list_write(const struct ui_list *list, uint64_t version, struct buffer *out, struct error *error)
{
    bool whole = !knows_since(list, version);
    SCOPED_JSON *head = json_new_object();
    json_set_integer(head, "version", (int64_t)ui_list_version(list));
    json_set_boolean(head, "synced", is_synced(list));
    json_set_boolean(head, "whole", whole);
    json_set_boolean(head, "kept", list->kept);
    write_refusal(list, head);
    if (*list->trouble)
        json_set_string(head, "trouble", list->trouble);
    json_set(head, "gone", whole ? json_new_array() : gone_since(list, version));
    if (json_print(head, out, error) < 0)
        return -1;
    out->length--; /* the brace: the rows are JSON already */
    out->data[out->length] = '\0';
    if (buffer_append_string(out, ",\"rows\":[", error) < 0 || write_rows(list, whole ? 0 : version, out, error) < 0)
        return -1;
    return buffer_append_string(out, "]}", error);
}
