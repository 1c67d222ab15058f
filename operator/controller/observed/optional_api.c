/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/optional_api.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"

#define DISCOVERY_MAX (1024 * 1024)
#define DISCOVERY_TIMEOUT_MS 10000

struct optional_api {
    struct kube_client *client;
    struct optional_api_options options;
    unsigned version; /* that is asked about or was found */
    struct kube_call *call;
    struct buffer answer;
    struct informer *informer; /* NULL: not found */
    bool missing, stopped;
    struct error refusal; /* of the discovery; of the collection that was lost */
    int64_t retry_ns, needed_ns;
    struct event_timer *timer; /* while there is an informer */
};

struct optional_api *optional_api_new(struct kube_client *client, const struct optional_api_options *options)
{
    struct optional_api *api = memory_allocate(1, sizeof *api);
    *api = (struct optional_api){.client = client, .options = *options};
    buffer_init(&api->answer, DISCOVERY_MAX);
    return api;
}

static void stop_watching(struct optional_api *api)
{
    event_timer_cancel(api->timer);
    api->timer = NULL;
    if (api->informer)
        informer_free(api->informer);
    api->informer = NULL;
}

void optional_api_stop(struct optional_api *api)
{
    api->stopped = true;
    if (api->call)
        kube_call_cancel(api->call);
    stop_watching(api);
}

void optional_api_free(struct optional_api *api)
{
    buffer_release(&api->answer);
    free(api);
}

struct kube_resource optional_api_resource(const struct optional_api *api)
{
    const char *version = api->options.versions[api->informer ? api->version : 0];
    return (struct kube_resource){api->options.group, version, api->options.plural};
}

/* ---------------------------------------------------------------- discovery */

static bool lists_plural(const struct optional_api *api)
{
    SCOPED_JSON *list = NULL;
    struct error error = ERROR_INIT;
    if (json_parse(api->answer.data, api->answer.length, DISCOVERY_MAX, &list, &error) < 0)
        return false;
    const struct json *resources = json_member(list, "resources");
    for (const struct json *item = json_first(resources); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), api->options.plural) == 0)
            return true;
    return false;
}

/* Delay before discovery is repeated after an error, which says nothing about whether the API is
 * served. */
#define DOUBT_RETRY_MS 2000

static void give_up(struct optional_api *api, bool missing)
{
    api->missing = missing;
    api->retry_ns = clock_monotonic_ns() + (missing ? OPTIONAL_RETRY_MS : DOUBT_RETRY_MS) * INT64_C(1000000);
}

/* Stops watching a collection that is no longer served (404); another version of it may be. */
static void drop_lost(struct optional_api *api)
{
    const struct error *refusal = informer_refusal(api->informer);
    if (!refusal || refusal->http_status != 404)
        return;
    api->refusal = *refusal;
    stop_watching(api);
    give_up(api, false);
}

/* Checks regularly, because the informer of an API that no job needs any more would retry for ever
 * after a 404. */
static void look_on(void *context)
{
    struct optional_api *api = context;
    api->timer = event_timer_start(kube_client_loop(api->client), OPTIONAL_RETRY_MS, look_on, api);
    drop_lost(api);
}

static void found(struct optional_api *api)
{
    const char *version = api->options.versions[api->version];
    api->options.informer.resource = (struct kube_resource){api->options.group, version, api->options.plural};
    api->missing = false;
    api->informer = informer_start(api->client, &api->options.informer);
    api->timer = event_timer_start(kube_client_loop(api->client), OPTIONAL_RETRY_MS, look_on, api);
}

static void ask(struct optional_api *api);

static void asked(void *context, const struct kube_answer *answer)
{
    struct optional_api *api = context;
    api->call = NULL;
    if (api->stopped)
        return;
    bool refused = answer->error && answer->error->kind != ERROR_NOT_FOUND;
    api->refusal = refused ? *answer->error : (struct error)ERROR_INIT;
    if (refused) {
        give_up(api, false);
    } else if (!answer->error && lists_plural(api)) {
        found(api);
    } else if (api->options.versions[api->version + 1]) {
        api->version++;
        ask(api);
    } else {
        give_up(api, true);
    }
}

static int collect(void *context, const char *bytes, size_t length, struct error *error)
{
    struct optional_api *api = context;
    return buffer_append(&api->answer, bytes, length, error);
}

static void ask(struct optional_api *api)
{
    SCOPED_FREE char *path = memory_format("/apis/%s/%s", api->options.group, api->options.versions[api->version]);
    struct kube_stream_options options = {
        .path_and_query = path,
        .resource = "apis",
        .timeout_ms = DISCOVERY_TIMEOUT_MS,
        .on_data = collect,
        .answered = asked,
        .context = api,
    };
    buffer_clear(&api->answer);
    api->call = kube_client_stream(api->client, &options);
}

/* ---------------------------------------------------------------- use */

/* Returns whether the cache is complete and the server still grants access. */
static bool shows(const struct optional_api *api)
{
    return api->informer && informer_synced(api->informer) && !informer_refusal(api->informer);
}

enum optional_state optional_api_need(struct optional_api *api)
{
    api->needed_ns = clock_monotonic_ns();
    if (api->informer)
        drop_lost(api);
    if (api->informer)
        return shows(api) ? OPTIONAL_READY : OPTIONAL_UNKNOWN;
    if (!api->call && !api->stopped && clock_monotonic_ns() >= api->retry_ns) {
        api->version = 0;
        ask(api);
    }
    return api->missing ? OPTIONAL_MISSING : OPTIONAL_UNKNOWN;
}

/* Returns whether an error is a refusal rather than an outage, which is reported elsewhere. */
static bool is_refusal(const struct error *error)
{
    return error->http_status == 401 || error->http_status == 403 || error->http_status == 404;
}

const char *optional_api_refusal(const struct optional_api *api)
{
    const struct error *error = api->informer ? informer_refusal(api->informer) : &api->refusal;
    return error && is_refusal(error) ? error->message : "";
}

bool optional_api_is_missed(const struct optional_api *api, int64_t within_ms)
{
    bool needed = api->needed_ns > 0 && clock_monotonic_ns() - api->needed_ns <= within_ms * INT64_C(1000000);
    return needed && *optional_api_refusal(api) != '\0';
}

const void *optional_api_get(const struct optional_api *api, const char *key)
{
    return shows(api) ? informer_get(api->informer, key) : NULL;
}

bool optional_api_has_seen(const struct optional_api *api, uint64_t resource_version)
{
    return !shows(api) || informer_has_seen(api->informer, resource_version);
}
