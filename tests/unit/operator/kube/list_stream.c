/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "operator/kube/list_stream.h"

static char seen[256];

static int note(void *context, const struct json *item, struct error *error)
{
    (void)context, (void)error;
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof seen - used, "%s ", json_string_at(item, "n", "-"));
    return 0;
}

/* The list's resourceVersion, "" when it was refused. */
static const char *read_in_pieces(size_t piece, const char *text, struct error *error)
{
    static char version[32];
    struct list_stream stream;
    SCOPED_JSON *envelope = NULL;
    int result = 0;
    seen[0] = version[0] = '\0';
    list_stream_init(&stream, 64, note, NULL);
    for (size_t at = 0; at < strlen(text) && result == 0; at += piece) {
        size_t length = strlen(text) - at < piece ? strlen(text) - at : piece;
        result = list_stream_feed(&stream, text + at, length, error);
    }
    if (result == 0 && list_stream_finish(&stream, &envelope, error) == 0)
        snprintf(version, sizeof version, "%s", json_string_at(envelope, "metadata.resourceVersion", "none"));
    list_stream_release(&stream);
    return version;
}

Test(list_stream, any_cut_of_the_bytes_gives_the_same_items)
{
    static const char list[] = " {\"kind\":\"items\",\"x\":{\"items\":[{\"n\":\"no\"}]},\"y\":[\"items\",[1]],\n"
                               "\"items\" : [ {\"n\":\"a\\\\\"},\n{\"n\":\"]}\",\"items\":[{}]} ,{}],"
                               "\"metadata\":{\"resourceVersion\":\"42\"}}\n";
    for (size_t piece = 1; piece <= sizeof list; piece++) {
        cr_assert_str_eq(read_in_pieces(piece, list, NULL), "42", "pieces of %zu", piece);
        cr_assert_str_eq(seen, "a\\ ]} - ");
    }
}

Test(list_stream, a_list_may_be_empty_or_null)
{
    cr_assert_str_eq(read_in_pieces(1, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}", NULL), "1");
    cr_assert_str_eq(read_in_pieces(1, "{\"metadata\":{\"resourceVersion\":\"2\"},\"items\":null}", NULL), "2");
    cr_assert_str_eq(read_in_pieces(1, "{\"kind\":\"Status\"}", NULL), "none");
}

Test(list_stream, what_is_no_list_is_refused)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{\"items\":[1]}",
        "{\"items\":[{}",
        "{\"items\":[{}]",
        "{}{}",
        "nope",
        "{\"items\":[{\"a\":}]}",
        "{\"items\":[[{}]]}",
        "{]",
        "{\"a\" 1,}",
        "{\"items\":[{]",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct error error = ERROR_INIT;
        cr_assert_str_eq(read_in_pieces(1, wrong[i], &error), "", "%s", wrong[i]);
        cr_assert_eq(error.kind, ERROR_INVALID, "%s", wrong[i]);
    }
}

Test(list_stream, an_item_has_a_ceiling)
{
    struct error error = ERROR_INIT;
    char list[200];
    snprintf(list, sizeof list, "{\"items\":[{\"n\":\"%070d\"}]}", 0);
    cr_assert_str_eq(read_in_pieces(3, list, &error), "");
    cr_assert_eq(error.kind, ERROR_TOO_LARGE);
}

Test(list_stream, an_item_that_nests_deep_or_holds_nul_ends_nothing)
{
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    SCOPED_JSON *envelope = NULL;
    struct error error = ERROR_INIT;
    struct list_stream stream;
    buffer_append_string(&text, "{\"items\":[{\"n\":\"a\\u0000\",\"x\":", NULL);
    for (int i = 0; i < 1000; i++)
        buffer_append_string(&text, "{\"y\":", NULL);
    buffer_append_string(&text, "1", NULL);
    for (int i = 0; i < 1000; i++)
        buffer_append_string(&text, "}", NULL);
    buffer_append_string(&text, "},{\"n\":\"b\"}],\"metadata\":{}}", NULL);
    seen[0] = '\0';
    list_stream_init(&stream, 0, note, NULL);
    cr_assert_eq(list_stream_feed(&stream, buffer_text(&text), text.length, &error), 0, "%s", error.message);
    cr_assert_eq(list_stream_finish(&stream, &envelope, &error), 0, "%s", error.message);
    list_stream_release(&stream);
    cr_assert_str_eq(seen, "a\xef\xbf\xbd b ");
}
