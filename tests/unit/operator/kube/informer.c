/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/informer.h"

#include <stdarg.h>

#include "tests/unit/operator/kube/loop_fixture.h"

static struct informer *informer;

/* The calls of the callbacks, as "+n/a=1 ~n/a=1>2 -n/a=2 !". An item is the object's `v`. */
static char told[1024];
static int troubles;
static struct error last_failure;

static void tell(const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(told);
    va_start(arguments, format);
    vsnprintf(told + used, sizeof told - used, format, arguments);
    va_end(arguments);
}

static void *parse(void *context, const struct json *object)
{
    (void)context;
    const char *value = json_string_at(object, "v", NULL);
    return value && strcmp(value, "ignored") == 0 ? NULL : memory_copy_string(value ? value : "?");
}

static void on_added(void *context, const char *key, const void *item)
{
    (void)context;
    tell("+%s=%s ", key, (const char *)item);
}

static void on_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)context;
    tell("~%s=%s>%s ", key, (const char *)old, (const char *)item);
}

static void on_deleted(void *context, const char *key, const void *item)
{
    (void)context;
    tell("-%s=%s ", key, (const char *)item);
}

static void on_synced(void *context)
{
    (void)context;
    tell("! ");
}

static void on_failure(void *context, const struct error *error)
{
    (void)context;
    troubles++;
    last_failure = *error;
}

static const struct informer_options listing = {.never_stream_list = true};

static void start(scripted_handler *handler, struct informer_options options)
{
    fixture_start(handler, NULL, NULL);
    options.resource = KUBE_PODS;
    options.parse = parse;
    options.item_free = free;
    options.on_added = on_added;
    options.on_changed = on_changed;
    options.on_deleted = on_deleted;
    options.on_synced = on_synced;
    options.on_failure = on_failure;
    options.backoff_base_ms = 2;
    informer = informer_start(client, &options);
}

static void stop(void)
{
    informer_free(informer);
    fixture_stop();
}

TestSuite(informer, .fini = stop, .timeout = 120);

#define OBJECT(name, version, value)                                                                                   \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" version   \
    "\"},\"v\":\"" value "\"}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version) EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define INITIAL_END(version)                                                                                           \
    EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version                                                  \
                      "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")
#define LIST(version, items) "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"

static bool asks(const struct scripted_request *request, const char *text)
{
    return strstr(request->line, text) != NULL;
}

static void streamed(struct scripted_request *request)
{
    scripted_stream(request);
    scripted_chunk(request, EVENT("ADDED", OBJECT("a", "1", "1")) EVENT("ADDED", OBJECT("b", "2", "1")));
    scripted_chunk(request, INITIAL_END("5") EVENT("MODIFIED", OBJECT("a", "6", "2")));
    scripted_chunk(request, EVENT("MODIFIED", OBJECT("a", "6", "twice")) EVENT("ADDED", OBJECT("a", "1", "late")));
    scripted_chunk(request, EVENT("DELETED", OBJECT("b", "7", "1")) EVENT("MODIFIED", OBJECT("b", "4", "late")));
    scripted_hold(request);
}

Test(informer, a_streamed_list_goes_over_into_a_watch_and_late_events_are_passed_over)
{
    start(streamed, (struct informer_options){.label_selector = "a=b,c"});
    cr_assert_not(informer_synced(informer));
    cr_assert_not(informer_has_seen(informer, 1));
    cr_assert(informer_has_seen(informer, 0), "nothing was written");
    LOOP_UNTIL(informer_has_seen(informer, 7));
    event_loop_turn(loop, 20, NULL);
    cr_assert_str_eq(told, "+n/a=1 +n/b=1 ! ~n/a=1>2 -n/b=1 ");
    cr_assert_eq(informer_count(informer), 1);
    cr_assert_str_eq(informer_get(informer, "n/a"), "2");
    cr_assert_not(informer_has_seen(informer, 8));
    cr_assert_str_eq(server.log[0], "GET /api/v1/pods?labelSelector=a%3Db%2Cc&watch=true&allowWatchBookmarks=true&"
                                    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300");
}

static void paged(struct scripted_request *request)
{
    if (asks(request, "sendInitialEvents"))
        scripted_reply(request, 422, "{\"reason\":\"Invalid\",\"message\":\"sendInitialEvents is forbidden\"}");
    else if (asks(request, "continue=next%2Fpage"))
        scripted_reply(request, 200, LIST("9", OBJECT("b", "3", "1") "," OBJECT("c", "4", "ignored")));
    else if (asks(request, "limit=2"))
        scripted_reply(request, 200,
                       "{\"items\":[" OBJECT("a", "2", "1") "],\"metadata\":{\"resourceVersion\":\"9\","
                                                            "\"continue\":\"next/page\"}}");
    else
        scripted_hold(request);
}

Test(informer, where_streaming_is_refused_pages_are_read)
{
    start(paged, (struct informer_options){.page_size = 2});
    LOOP_UNTIL(scripted_count(&server, "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=9"));
    cr_assert_str_eq(told, "+n/a=1 +n/b=1 ! ");
    cr_assert_eq(troubles, 0);
}

/* The list changes while the watch's position expires: b vanished, c was replaced by a namesake. */
static void expiring(struct scripted_request *request)
{
    static int lists;
    if (asks(request, "limit=")) {
        scripted_reply(request, 200,
                       lists++ == 0
                           ? LIST("5", OBJECT("a", "1", "1") "," OBJECT("b", "2", "1") "," OBJECT("c", "3", "1"))
                           : LIST("20",
                                  OBJECT("a", "1", "1") ",{\"metadata\":{\"namespace\":\"n\",\"name\":\"c\","
                                                        "\"uid\":\"other\",\"resourceVersion\":\"2\"},\"v\":\"2\"}"));
    } else if (asks(request, "resourceVersion=5")) {
        scripted_stream(request);
        scripted_chunk(request, EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}"));
        scripted_end(request);
    } else {
        scripted_hold(request);
    }
}

Test(informer, after_410_what_vanished_is_reported)
{
    start(expiring, listing);
    LOOP_UNTIL(scripted_count(&server, "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=20"));
    cr_assert_str_eq(told, "+n/a=1 +n/b=1 +n/c=1 ! -n/c=1 +n/c=2 -n/b=1 ");
    cr_assert_eq(informer_counts(informer).lists, 2);
}

/* Answers with a whole list, then with one that fails on its second page, then with one that has no second page. */
static void listing_slowly(struct scripted_request *request)
{
    static int lists;
    if (asks(request, "watch=true")) {
        scripted_reply(request, 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    } else if (asks(request, "continue=")) {
        if (lists == 2)
            scripted_reply(request, 500, "{}");
        else
            scripted_hold(request);
    } else if (++lists == 1) {
        scripted_reply(request, 200, LIST("5", OBJECT("a", "1", "1") "," OBJECT("b", "2", "1")));
    } else {
        scripted_reply(request, 200,
                       "{\"items\":[" OBJECT("a", "1", "1") "],\"metadata\":{\"resourceVersion\":\"9\","
                                                            "\"continue\":\"more\"}}");
    }
}

Test(informer, a_list_counts_once_it_is_complete)
{
    start(listing_slowly, listing);
    LOOP_UNTIL(scripted_count(&server, "GET /api/v1/pods?limit=500&continue=more") == 2);
    cr_assert_str_eq(told, "+n/a=1 +n/b=1 ! ", "what vanished is not known yet");
    cr_assert_eq(informer_counts(informer).lists, 1);
}

static void gone(struct scripted_request *request)
{
    if (asks(request, "limit="))
        scripted_reply(request, 200, LIST("5", ""));
    else
        scripted_reply(request, 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
}

Test(informer, a_server_that_always_says_410_is_not_stormed)
{
    start(gone, listing);
    LOOP_UNTIL(troubles >= 3);
    cr_assert_eq(last_failure.kind, ERROR_EXPIRED);
    cr_assert_leq(informer_counts(informer).lists, (uint64_t)troubles + 2);
}

/* A watch that is cut inside an event, then taken up where it stood. */
static void cutting(struct scripted_request *request)
{
    if (asks(request, "limit=")) {
        scripted_reply(request, 200, LIST("5", OBJECT("a", "1", "1")));
    } else if (asks(request, "resourceVersion=5")) {
        scripted_stream(request);
        scripted_chunk(request, BOOKMARK("8") "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"names");
        request->close = true;
    } else if (asks(request, "resourceVersion=8")) {
        scripted_stream(request);
        scripted_chunk(request, EVENT("MODIFIED", OBJECT("a", "9", "2")));
        scripted_hold(request);
    } else {
        scripted_reply(request, 500, "{}");
    }
}

Test(informer, a_cut_watch_goes_on_from_its_bookmark)
{
    start(cutting, listing);
    LOOP_UNTIL(informer_has_seen(informer, 9));
    cr_assert_str_eq(told, "+n/a=1 ! ~n/a=1>2 ");
    cr_assert_eq(troubles, 1);
    cr_assert_eq(informer_counts(informer).lists, 1);
}

static void dying(struct scripted_request *request)
{
    if (asks(request, "limit="))
        scripted_reply(request, 200, LIST("5", ""));
    else
        scripted_hold(request);
}

Test(informer, silence_is_taken_for_a_dead_peer)
{
    start(dying, (struct informer_options){.never_stream_list = true, .silence_ms = 30});
    LOOP_UNTIL(informer_counts(informer).watches >= 3);
    cr_assert_geq(troubles, 2);
    cr_assert_eq(last_failure.kind, ERROR_TIMEOUT);
}

static void ignorant(struct scripted_request *request)
{
    if (asks(request, "limit="))
        scripted_reply(request, 200, LIST("5", OBJECT("a", "1", "1")));
    else if (asks(request, "sendInitialEvents"))
        scripted_stream(request), scripted_hold(request);
    else
        scripted_hold(request);
}

Test(informer, a_server_that_ignores_the_streamed_list_is_listed)
{
    start(ignorant, (struct informer_options){.silence_ms = 1000});
    LOOP_UNTIL(informer_synced(informer));
    cr_assert_str_eq(told, "+n/a=1 ! ");
    cr_assert_eq(troubles, 0);
}

static void cut_list(struct scripted_request *request)
{
    if (asks(request, "watch=true")) {
        scripted_hold(request);
    } else if (request->number == 0) {
        scripted_send(request,
                      "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"items\":[" OBJECT("a", "1", "1") ",{\"me");
        request->close = true;
    } else {
        scripted_reply(request, 200, LIST("5", OBJECT("a", "1", "1") "," OBJECT("b", "2", "1")));
    }
}

Test(informer, a_list_cut_in_the_middle_of_an_object_is_read_again)
{
    start(cut_list, listing);
    LOOP_UNTIL(informer_synced(informer));
    cr_assert_str_eq(told, "+n/a=1 +n/b=1 ! ");
    cr_assert_eq(troubles, 1);
}

SCRIPTED_REPLY(forbidding, 403, "{\"message\":\"pods is forbidden: User cannot list\"}")

Test(informer, a_refusal_is_told_and_tried_again)
{
    start(forbidding, (struct informer_options){0});
    LOOP_UNTIL(troubles >= 2);
    cr_assert_eq(last_failure.kind, ERROR_FORBIDDEN);
    cr_assert_str_eq(last_failure.message, "pods is forbidden: User cannot list");
}

static bool allowed;

static void on_access_restored(void *context)
{
    (void)context;
    tell("shown ");
}

/* The first state, then no right to look until it is given again, when the state is listed anew: a has vanished. */
static void listing_anew(struct scripted_request *request)
{
    static int streams;
    if (!asks(request, "sendInitialEvents")) {
        scripted_reply(request, 410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    } else if (++streams == 2) {
        forbidding(request);
    } else if (streams > 3) {
        scripted_hold(request);
    } else {
        scripted_stream(request);
        if (streams == 1)
            scripted_chunk(request, EVENT("ADDED", OBJECT("a", "1", "1")));
        scripted_chunk(request, EVENT("ADDED", OBJECT("b", "2", "1")) INITIAL_END("9"));
        scripted_end(request);
    }
}

Test(informer, what_vanished_behind_a_refusal_is_told_before_its_end)
{
    start(listing_anew, (struct informer_options){.on_access_restored = on_access_restored});
    LOOP_UNTIL(informer_counts(informer).lists == 2);
    cr_assert_str_eq(told, "+n/a=1 +n/b=1 ! -n/a=1 shown ");
    cr_assert_null(informer_refusal(informer));
}

static void forbidding_sometimes(struct scripted_request *request)
{
    if (!__atomic_load_n(&allowed, __ATOMIC_SEQ_CST)) {
        forbidding(request);
    } else if (asks(request, "sendInitialEvents")) {
        scripted_stream(request);
        scripted_chunk(request, INITIAL_END("5"));
        scripted_end(request);
    } else {
        scripted_stream(request);
        scripted_chunk(request, BOOKMARK("6"));
        scripted_end(request);
    }
}

Test(informer, a_right_that_is_taken_away_later_is_told_until_it_is_back)
{
    allowed = true;
    start(forbidding_sometimes, (struct informer_options){0});
    LOOP_UNTIL(informer_synced(informer));
    cr_assert_null(informer_refusal(informer));
    __atomic_store_n(&allowed, false, __ATOMIC_SEQ_CST);
    LOOP_UNTIL(informer_refusal(informer));
    cr_assert_str_eq(informer_refusal(informer)->message, "pods is forbidden: User cannot list");
    cr_assert(informer_synced(informer), "what is known stays known");
    __atomic_store_n(&allowed, true, __ATOMIC_SEQ_CST);
    LOOP_UNTIL(!informer_refusal(informer));
}

static void huge(struct scripted_request *request)
{
    if (asks(request, "watch=true"))
        scripted_hold(request);
    else
        scripted_reply(request, 200, LIST("5", OBJECT("a", "1", "a value that is longer than the ceiling allows")));
}

Test(informer, an_object_beyond_the_ceiling_is_trouble_not_memory)
{
    start(huge, (struct informer_options){.never_stream_list = true, .object_max = 64});
    LOOP_UNTIL(troubles >= 1);
    cr_assert_eq(last_failure.kind, ERROR_TOO_LARGE);
}
