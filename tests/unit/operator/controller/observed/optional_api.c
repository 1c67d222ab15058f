/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/optional_api.h"

#include "tests/unit/operator/kube/loop_fixture.h"

TestSuite(optional_api, .timeout = 120);

#define GROUP "scheduling.example.com"
#define FORBIDDEN(what)                                                                                                \
    "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"" what " is forbidden: no role\"}"

static bool asks_discovery(const struct scripted_request *request)
{
    return strcmp(request->line, "GET /apis/" GROUP "/v1") == 0;
}

static void forbid_watch(struct scripted_request *request)
{
    if (asks_discovery(request))
        scripted_reply(request, 200, "{\"resources\":[{\"name\":\"podgroups\"}]}");
    else
        scripted_reply(request, 403, FORBIDDEN("podgroups"));
}

static void forbid_discovery(struct scripted_request *request)
{
    scripted_reply(request, 403, FORBIDDEN("discovery"));
}

SCRIPTED_REPLY(be_busy, 503, "{}")

static void serve(struct scripted_request *request)
{
    if (asks_discovery(request))
        scripted_reply(request, 200, "{\"resources\":[{\"name\":\"podgroups\"}]}");
    else
        scripted_reply(request, 200, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}");
}

static void *parse(void *context, const struct json *object)
{
    (void)context;
    return memory_copy_string(json_string_at(object, "metadata.name", ""));
}

static int shown_again;

static void note_shown_again(void *context)
{
    (void)context;
    shown_again++;
}

static struct optional_api *start(scripted_handler *handler)
{
    fixture_start(handler, NULL, NULL);
    struct optional_api_options options = {
        .group = GROUP,
        .plural = "podgroups",
        .versions = {"v1", "v1beta1"},
        .informer = {.parse = parse,
                     .item_free = free,
                     .on_access_restored = note_shown_again,
                     .backoff_base_ms = 2,
                     .never_stream_list = true},
    };
    return optional_api_new(client, &options);
}

static void stop(struct optional_api *api)
{
    optional_api_stop(api);
    optional_api_free(api);
    fixture_stop();
}

Test(optional_api, a_watch_that_is_forbidden_is_told)
{
    struct optional_api *api = start(forbid_watch);
    LOOP_UNTIL(optional_api_need(api) != OPTIONAL_UNKNOWN || *optional_api_refusal(api));
    cr_assert_eq(optional_api_need(api), OPTIONAL_UNKNOWN);
    cr_assert(strstr(optional_api_refusal(api), "podgroups is forbidden: no role"), "%s", optional_api_refusal(api));
    cr_assert(optional_api_has_seen(api, 0), "jobs that need nothing of it do not wait for it");
    cr_assert(optional_api_has_seen(api, 7), "those that do are told why they wait");
    stop(api);
}

Test(optional_api, a_discovery_that_is_forbidden_is_told)
{
    struct optional_api *api = start(forbid_discovery);
    LOOP_UNTIL(optional_api_need(api) != OPTIONAL_UNKNOWN || *optional_api_refusal(api));
    cr_assert(strstr(optional_api_refusal(api), "discovery is forbidden: no role"), "%s", optional_api_refusal(api));
    stop(api);
}

Test(optional_api, what_passes_by_itself_is_no_refusal)
{
    struct optional_api *api = start(be_busy);
    optional_api_need(api);
    LOOP_UNTIL(scripted_count(&server, "GET") > 0);
    for (int i = 0; i < 5; i++)
        event_loop_turn(loop, 10, NULL);
    cr_assert_str_eq(optional_api_refusal(api), "");
    stop(api);
}

Test(optional_api, what_is_served_is_ready)
{
    struct optional_api *api = start(serve);
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_READY);
    cr_assert_str_eq(optional_api_refusal(api), "");
    stop(api);
}

/* ---- what was there once */

static _Atomic int phase;

#define HELD "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}]}"

/* Its watches end in order, so that the next one meets what has changed. */
static void show(struct scripted_request *request)
{
    scripted_reply(request, 200, strstr(request->line, "watch=true") ? "" : HELD);
}

static void take_the_right_away(struct scripted_request *request)
{
    if (phase == 1 && !asks_discovery(request))
        scripted_reply(request, 403, FORBIDDEN("podgroups"));
    else if (asks_discovery(request))
        serve(request);
    else
        show(request);
}

Test(optional_api, a_right_that_is_taken_away_is_told_and_what_is_old_is_not_shown)
{
    phase = 0;
    struct optional_api *api = start(take_the_right_away);
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_READY);
    cr_assert(optional_api_get(api, "a"));
    cr_assert_not(optional_api_has_seen(api, 9));
    phase = 1;
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_UNKNOWN);
    cr_assert(strstr(optional_api_refusal(api), "podgroups is forbidden: no role"), "%s", optional_api_refusal(api));
    cr_assert_null(optional_api_get(api, "a"));
    cr_assert(optional_api_has_seen(api, 9), "nobody waits for what is not shown");
    cr_assert_eq(shown_again, 0);
    phase = 0;
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_READY);
    cr_assert_str_eq(optional_api_refusal(api), "");
    cr_assert_eq(shown_again, 1, "what jobs have missed meanwhile they do now");
    stop(api);
}

#define NOT_FOUND "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"message\":\"not served\"}"

/* In phase 0 as v1beta1, then nowhere, then as v1. */
static void change_version(struct scripted_request *request)
{
    bool old = strstr(request->line, "/v1beta1") != NULL, discovery = !strstr(request->line, "/podgroups");
    if (phase == 1 || old != (phase == 0))
        scripted_reply(request, 404, NOT_FOUND);
    else if (discovery)
        scripted_reply(request, 200, "{\"resources\":[{\"name\":\"podgroups\"}]}");
    else
        show(request);
}

Test(optional_api, a_version_that_is_served_no_more_is_followed_by_another)
{
    phase = 0;
    struct optional_api *api = start(change_version);
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_READY);
    cr_assert_str_eq(optional_api_resource(api).version, "v1beta1");
    phase = 1;
    LOOP_UNTIL(optional_api_need(api) != OPTIONAL_READY);
    cr_assert(strstr(optional_api_refusal(api), "not served"), "%s", optional_api_refusal(api));
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_MISSING);
    phase = 2;
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_READY);
    cr_assert_str_eq(optional_api_resource(api).version, "v1");
    stop(api);
}

Test(optional_api, what_is_gone_is_asked_for_no_more_though_nobody_needs_it)
{
    phase = 0;
    struct optional_api *api = start(change_version);
    LOOP_UNTIL(optional_api_need(api) == OPTIONAL_READY);
    cr_assert_not(optional_api_is_missed(api, 60000));
    phase = 1;
    LOOP_UNTIL(strcmp(optional_api_resource(api).version, "v1") == 0);
    cr_assert_not(optional_api_is_missed(api, 0), "it stands in nobody's way");
    optional_api_need(api);
    cr_assert(optional_api_is_missed(api, 60000), "%s", optional_api_refusal(api));
    stop(api);
}
