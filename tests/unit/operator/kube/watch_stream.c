/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "operator/kube/watch_stream.h"

static const char body[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\\\"}{\"}}}\n"
                           " {\"type\":\"MODIFIED\",\n\"object\":{\"metadata\":{\"name\":\"b\"},\"list\":[{},[]]}}"
                           "{\"type\":\"LATER_INVENTION\",\"object\":{}}\r\n"
                           "{\"object\":{\"metadata\":{\"name\":\"c\"}},\"type\":\"DELETED\"}\n"
                           "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n"
                           "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n";

static char seen[256];

static int note(void *context, const struct watch_event *event, struct error *error)
{
    const char *refused = context;
    const char *name = json_string_at(event->object, "metadata.name", "-");
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof seen - used, "%d%s ", event->type, name);
    return refused && strcmp(refused, name) == 0 ? error_set(error, ERROR_STALE, "refused") : 0;
}

static int feed_in_pieces(size_t piece, size_t ceiling, const char *text, void *context, struct error *error)
{
    struct watch_stream stream;
    int result = 0;
    seen[0] = '\0';
    watch_stream_init(&stream, ceiling, note, context);
    for (size_t at = 0; at < strlen(text) && result == 0; at += piece) {
        size_t length = strlen(text) - at < piece ? strlen(text) - at : piece;
        result = watch_stream_feed(&stream, text + at, length, error);
    }
    watch_stream_release(&stream);
    return result;
}

Test(watch_stream, any_cut_of_the_bytes_gives_the_same_events)
{
    for (size_t piece = 1; piece <= sizeof body; piece++) {
        cr_assert_eq(feed_in_pieces(piece, 0, body, NULL, NULL), 0);
        cr_assert_str_eq(seen, "0a\"}{ 1b 2c 3- 4- ");
    }
}

Test(watch_stream, the_callback_ends_the_stream)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(feed_in_pieces(7, 0, body, (char[]){"b"}, &error), -1);
    cr_assert_eq(error.kind, ERROR_STALE);
    cr_assert_str_eq(seen, "0a\"}{ 1b ");
}

Test(watch_stream, what_is_no_event_is_refused)
{
    static const char *const wrong[] = {"[]",
                                        "x",
                                        "{}",
                                        "{\"type\":\"ADDED\"}",
                                        "{\"type\":3,\"object\":{}}",
                                        "{\"type\":\"ADDED\",\"object\":[]}",
                                        "{]",
                                        "{\"type\":\"ADDED\",,}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct error error = ERROR_INIT;
        cr_assert_eq(feed_in_pieces(1, 0, wrong[i], NULL, &error), -1, "%s", wrong[i]);
        cr_assert_eq(error.kind, ERROR_INVALID);
    }
}

Test(watch_stream, an_event_has_a_ceiling_but_the_stream_has_none)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(feed_in_pieces(5, 80, body, NULL, &error), 0, "%s", error.message);
    cr_assert_eq(feed_in_pieces(5, 40, body, NULL, &error), -1);
    cr_assert_eq(error.kind, ERROR_TOO_LARGE);
}

/* Any user who may store an object chooses its depth. */
Test(watch_stream, the_innermost_part_of_a_deep_object_is_left_out)
{
    struct error error = ERROR_INIT;
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    buffer_append_string(&text, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"},\"x\":", NULL);
    for (int i = 0; i < 1000; i++)
        buffer_append_string(&text, i % 2 ? "[1,\"}\"," : "{\"]\":", NULL);
    buffer_append_string(&text, "1", NULL);
    for (int i = 1000; i-- > 0;)
        buffer_append_string(&text, i % 2 ? "]" : "}", NULL);
    buffer_append_string(&text, ",\"last\":2}}", NULL);
    buffer_append_string(&text, body, NULL);
    for (size_t piece = 1; piece < 300; piece += 13) {
        cr_assert_eq(feed_in_pieces(piece, 0, buffer_text(&text), NULL, &error), 0, "%s", error.message);
        cr_assert_str_eq(seen, "0a 0a\"}{ 1b 2c 3- 4- ");
    }
}

/* As a pod is stored that has 1.2 MB of < in its environment: no more than etcd takes. */
Test(watch_stream, what_an_api_server_stores_is_no_more_than_can_be_read)
{
    struct error error = ERROR_INIT;
    SCOPED_BUFFER text = BUFFER_INIT(KUBE_OBJECT_MAX);
    buffer_append_string(&text, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"},\"x\":\"", NULL);
    for (int i = 0; i < 1200000; i++)
        buffer_append_string(&text, "\\u003c", NULL);
    buffer_append_string(&text, "\"}}", NULL);
    cr_assert_eq(feed_in_pieces(16384, 0, buffer_text(&text), NULL, &error), 0, "%s", error.message);
    cr_assert_str_eq(seen, "0a ");
}

Test(watch_stream, a_nul_character_ends_nothing)
{
    struct error error = ERROR_INIT;
    static const char text[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\\u0000b\"}}}";
    cr_assert_eq(feed_in_pieces(7, 0, text, NULL, &error), 0, "%s", error.message);
    cr_assert_str_eq(seen, "0a\xef\xbf\xbd"
                           "b ");
}
