/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"

#include <criterion/criterion.h>
#include <string.h>

#define CEILING 4096

static struct json *parsed(const char *text)
{
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_assert(json_parse(text, strlen(text), CEILING, &value, &error) == 0, "%s: %s", text, error.message);
    return value;
}

static void expect_text(const struct json *value, const char *text)
{
    SCOPED_BUFFER out = BUFFER_INIT(CEILING);
    cr_assert(json_print(value, &out, NULL) == 0);
    cr_expect_str_eq(buffer_text(&out), text);
}

static void expect_round_trip(const char *text, const char *printed)
{
    SCOPED_JSON *value = parsed(text);
    expect_text(value, printed);
}

static void expect_refused(const char *text, size_t length, const char *words)
{
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_expect(json_parse(text, length, CEILING, &value, &error) < 0, "taken: %s", text);
    cr_expect(error.kind == ERROR_INVALID, "%s", text);
    cr_expect(strstr(error.message, words), "%s: \"%s\" lacks \"%s\"", text, error.message, words);
    cr_expect(value == NULL);
}

Test(json, prints_what_it_parsed)
{
    expect_round_trip(" {\"b\": [1, 2.5, -3e2, true, false, null], \"a\": {\"x\": \"\\u00e9\\n\\\"\"}} ",
                      "{\"b\":[1,2.5,-300,true,false,null],\"a\":{\"x\":\"é\\n\\\"\"}}");
    expect_round_trip("{}", "{}");
    expect_round_trip("[]", "[]");
    expect_round_trip("\"\\ud83d\\ude00\"", "\"😀\"");
}

Test(json, whole_numbers_have_no_exponent)
{
    expect_round_trip("[1e15, 9007199254740992, -0, 1e300, 0.1, 1e-7]",
                      "[1000000000000000,9007199254740992,0,1e+300,0.1,1e-07]");
}

Test(json, indents)
{
    SCOPED_JSON *value = parsed("{\"a\":[1,{}],\"b\":[]}");
    SCOPED_BUFFER out = BUFFER_INIT(CEILING);
    cr_assert(json_print_indented(value, &out, NULL) == 0);
    cr_expect_str_eq(buffer_text(&out), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

Test(json, refuses_what_is_not_json)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "not JSON"},
        {"{", "not JSON"},
        {"[1,]", "offset 3 (']')"},
        {"{} x", "'x' at offset 3"},
        {"1 2", "'2' at offset 2"},
        {"[01]", "leading zeros"},
        {"[1.]", "a digit"},
        {"[+1]", "'+'"},
        {"[.5]", "'.'"},
        {"[0x10]", "'x'"},
        {"[1e]", "a digit"},
        {"[1, [-1e999]]", "a number above"},
        {"[NaN]", "'N'"},
        {"'a'", "'''"},
        {"{a:1}", "'a'"},
        {"\"\\x\"", "escape"},
        {"\"\\u12g4\"", "hexadecimal"},
        {"\"\\u0000\"", "NUL"},
        {"\"\\ud800\"", "not JSON"},
        {"\"a\nb\"", "byte 0x0a"},
        {"\"a", "the end"},
        {"\x01{}", "byte 0x01"},
        {"\"\xff\"", "UTF-8"},
        {"\"\xc0\xaf\"", "UTF-8"},
        {"\"\xed\xa0\x80\"", "UTF-8"},
        {"\"\xe2\x82\"", "UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(cases[i].text, strlen(cases[i].text), cases[i].words);
    expect_refused("[1]\0", 4, "byte 0x00 at offset 3");
    expect_refused("\"a\0b\"", 5, "byte 0x00 at offset 2");
}

Test(json, bounds_depth)
{
    char text[2 * (JSON_DEPTH_MAX + 1) + 1] = {0};
    for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        if (depth == JSON_DEPTH_MAX)
            json_free(parsed(text));
        else
            expect_refused(text, 2 * (size_t)depth, "nested deeper than 128");
    }
}

Test(json, bounds_size)
{
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_expect(json_parse("[1, 2]", 6, 5, &value, &error) < 0);
    cr_expect(error.kind == ERROR_TOO_LARGE);
}

Test(json, last_duplicate_wins)
{
    expect_round_trip("{\"a\":1,\"b\":2,\"a\":{\"c\":3,\"c\":4}}", "{\"b\":2,\"a\":{\"c\":4}}");
    SCOPED_BUFFER text = BUFFER_INIT(CEILING);
    for (int i = 0; i < 100; i++)
        buffer_format(&text, "%s\"k%d\":%d", i ? "," : "{", i % 50, i);
    buffer_append_string(&text, "}", NULL);
    SCOPED_JSON *value = parsed(buffer_text(&text));
    cr_expect(json_count(value) == 50);
    cr_expect(json_integer_at(value, "k7", 0) == 57);
    cr_expect_str_eq(json_key(json_first(value)), "k0");
}

Test(json, look_ups_bear_anything)
{
    SCOPED_JSON *value = parsed("{\"a\":{\"b\":[{\"c\":7}],\"d.e\":\"x\"},\"n\":1.5,\"big\":1e17,\"t\":true}");
    cr_expect(json_integer_at(value, "a.b", -1) == -1);
    cr_expect(json_integer(json_member(json_element(json_at(value, "a.b"), 0), "c"), -1) == 7);
    cr_expect(json_element(json_at(value, "a.b"), 1) == NULL);
    cr_expect(json_at(value, "a.b.c") == NULL);
    cr_expect(json_at(value, "a.x.y") == NULL);
    cr_expect(json_at(value, "") == NULL);
    cr_expect_str_eq(json_string(json_member(json_at(value, "a"), "d.e"), ""), "x");
    cr_expect(json_integer_at(value, "n", 9) == 9);
    cr_expect(json_integer_at(value, "big", 9) == 9);
    cr_expect(json_number_at(value, "n", 0) == 1.5);
    cr_expect(json_boolean_at(value, "t", false));
    cr_expect(json_string_at(value, "t", NULL) == NULL);
    cr_expect(json_type(NULL) == JSON_ABSENT);
    cr_expect(json_member(NULL, "a") == NULL);
    cr_expect(json_first(NULL) == NULL);
    cr_expect(json_count(json_member(value, "n")) == 0);
    cr_expect_str_eq(json_type_name(json_type(json_member(value, "a"))), "object");
}

Test(json, builds_and_changes_in_place)
{
    SCOPED_JSON *object = json_new_object();
    json_set_string(object, "a", "1");
    json_set_integer(object, "b", 2);
    json_set_boolean(object, "c", true);
    json_set_number(object, "a", 0.5);
    json_append_string(json_set_array(object, "list"), "x");
    json_append(json_set_array(object, "list"), json_new_null());
    json_set_object(json_set_object(object, "deep"), "er");
    expect_text(object, "{\"a\":0.5,\"b\":2,\"c\":true,\"list\":[\"x\",null],\"deep\":{\"er\":{}}}");
    json_set_string(object, "a", NULL);
    json_remove(object, "list");
    json_remove(object, "absent");
    expect_text(object, "{\"b\":2,\"c\":true,\"deep\":{\"er\":{}}}");
}

Test(json, a_detached_member_can_become_an_element)
{
    SCOPED_JSON *object = parsed("{\"a\":[1],\"b\":2}");
    struct json *list = json_member(object, "a");
    struct json *moved = json_append(list, json_detach(object, json_member(object, "b")));
    cr_expect(json_key(moved) == NULL);
    expect_text(object, "{\"a\":[1,2]}");
    json_set(object, "c", json_detach(list, json_element(list, 0)));
    expect_text(object, "{\"a\":[2],\"c\":1}");
}

Test(json, elements_are_set_in_their_place)
{
    SCOPED_JSON *list = parsed("[1,2,3]");
    SCOPED_JSON *object = parsed("{\"a\":4}");
    json_set_element(list, 1, json_detach(object, json_member(object, "a")));
    cr_expect(json_key(json_element(list, 1)) == NULL);
    json_set_element(list, 3, json_new_string("last"));
    expect_text(list, "[1,4,3,\"last\"]");
}

Test(json, copies_are_their_own)
{
    SCOPED_JSON *object = parsed("{\"a\":{\"b\":1}}");
    SCOPED_JSON *copy = json_copy(json_member(object, "a"));
    json_set_integer(copy, "b", 2);
    expect_text(object, "{\"a\":{\"b\":1}}");
    expect_text(copy, "{\"b\":2}");
}

Test(json, always_prints_utf_8)
{
    SCOPED_JSON *list = json_new_array();
    json_append_string(list, "caf\xc3\xa9 \xff cut \xe2\x82");
    json_append_string(list, "\x7f\xc2\x80\xef\xbb\xbf\xef\xbf\xbf\xf0\x9f\xbf\xbf\xf0\x9f\x98\x80");
    expect_text(list, "[\"caf\xc3\xa9 \xef\xbf\xbd cut \xef\xbf\xbd\xef\xbf\xbd\","
                      "\"\\u007f\\u0080\\ufeff\\uffff\\ud83f\\udfff\xf0\x9f\x98\x80\"]");
}

Test(json, scalars_as_text)
{
    static const char *const rows[][2] = {{"1e6", "1000000"}, {"-3", "-3"},     {"0.1", "0.1"}, {"1e-7", "1e-07"},
                                          {"0", "0"},         {"true", "true"}, {"\"a\"", "a"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *value = parsed(rows[i][0]);
        SCOPED_FREE char *text = json_scalar_text(value);
        cr_assert(text, "%s", rows[i][0]);
        cr_expect_str_eq(text, rows[i][1]);
    }
    SCOPED_JSON *list = parsed("[null]");
    cr_expect_null(json_scalar_text(list));
    cr_expect_null(json_scalar_text(json_first(list)));
}
