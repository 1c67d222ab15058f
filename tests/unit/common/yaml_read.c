/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/yaml.h"

#define CEILING (1024 * 1024)

static void expect_json(const char *yaml, const char *json)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *documents = NULL;
    cr_assert(yaml_parse(yaml, strlen(yaml), CEILING, &documents, &error) == 0, "%s: %s", yaml, error.message);
    SCOPED_BUFFER out = BUFFER_INIT(CEILING);
    json_print(documents, &out, NULL);
    cr_expect_str_eq(buffer_text(&out), json);
}

static void expect_refused(const char *yaml, const char *words)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_expect(yaml_parse(yaml, strlen(yaml), CEILING, &documents, &error) < 0, "%s", yaml);
    cr_expect(strstr(error.message, words) != NULL, "%s: \"%s\" lacks \"%s\"", yaml, error.message, words);
    cr_expect(documents == NULL);
}

Test(yaml_read, blocks_and_flows)
{
    expect_json("a: 1\nb:\n- x\n- {c: [1, 2], d: \"3\"}\n", "[{\"a\":1,\"b\":[\"x\",{\"c\":[1,2],\"d\":\"3\"}]}]");
    expect_json("text: |\n  one\n  two\nfolded: >-\n  one\n  two\n",
                "[{\"text\":\"one\\ntwo\\n\",\"folded\":\"one two\"}]");
    expect_json("{\"json\": [true, null, 1.5e3]}", "[{\"json\":[true,null,1500]}]");
}

Test(yaml_read, documents)
{
    expect_json("", "[]");
    expect_json("# nothing\n---\n---\n", "[]");
    expect_json("---\na: 1\n---\n\n---\nb: 2\n...\n", "[{\"a\":1},{\"b\":2}]");
    expect_json("--- null\n", "[null]");
}

Test(yaml_read, scalars_as_in_the_core_schema)
{
    expect_json("[no, on, yes, y, off, True, FALSE, ~, Null, NULL, nULL]",
                "[[\"no\",\"on\",\"yes\",\"y\",\"off\",true,false,null,null,null,\"nULL\"]]");
    expect_json("[1, -2, +3, 010, 0x1F, 0o17, 1_000, 1e3, .5, 5., -.5e-1, 1e, ., -, 1.2.3, 12:30]",
                "[[1,-2,3,10,31,15,\"1_000\",1000,0.5,5,-0.05,\"1e\",\".\",\"-\",\"1.2.3\",\"12:30\"]]");
    expect_json("['1', \"true\", 'null', 0x, 0xg, 1e999, 2026-11-20]",
                "[[\"1\",\"true\",\"null\",\"0x\",\"0xg\",\"1e999\",\"2026-11-20\"]]");
    expect_json("a:\nb: ''\n", "[{\"a\":null,\"b\":\"\"}]");
    expect_json("{1: a, true: b}", "[{\"1\":\"a\",\"true\":\"b\"}]");
}

Test(yaml_read, anchors)
{
    expect_json("a: &x {k: [1]}\nb: *x\nc: *x\n", "[{\"a\":{\"k\":[1]},\"b\":{\"k\":[1]},\"c\":{\"k\":[1]}}]");
    expect_json("- &x 1\n- &x 2\n- *x\n", "[[1,2,2]]");
    expect_refused("a: &x [*x]\n", "inside the value it stands for");
    expect_refused("a: *x\n", "without an anchor");
    expect_refused("--- &x a\n--- *x\n", "without an anchor");
}

Test(yaml_read, refuses_with_line_and_column)
{
    expect_refused("a: 1\nb: [1, 2\nc: 3\n", "line 3");
    expect_refused("a: 1\na: 2\n", "line 2, column 1: this key occurs twice");
    expect_refused("a: !!str 1\n", "line 1, column 4: YAML tags");
    expect_refused("a: !mine {}\n", "tags");
    expect_refused("a: !mine []\n", "tags");
    expect_refused("<<: {a: 1}\n", "merge keys");
    expect_refused("? [a]\n: 1\n", "only plain texts can be keys");
    expect_refused("a: \"\\0\"\n", "NUL");
    expect_refused("a:\n\t- 1\n", "line 2");
    expect_refused("a: \xff\n", "YAML");
}

/* Nine levels of ten aliases each: a billion nodes from a few hundred bytes. */
Test(yaml_read, a_bomb_of_aliases_ends_at_the_node_ceiling)
{
    SCOPED_BUFFER text = BUFFER_INIT(CEILING);
    buffer_append_string(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n", NULL);
    for (int i = 1; i < 9; i++) {
        buffer_format(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            buffer_format(&text, "%s*a%d", k ? ", " : "", i - 1);
        buffer_append_string(&text, "]\n", NULL);
    }
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_expect(yaml_parse(text.data, text.length, CEILING, &documents, &error) < 0);
    cr_expect(error.kind == ERROR_TOO_LARGE, "%s", error.message);
}

/* Few values, but large ones: a thousand times 4 KiB. */
Test(yaml_read, aliases_repeat_no_more_text_than_a_file_may_have)
{
    SCOPED_BUFFER text = BUFFER_INIT(CEILING);
    buffer_append_string(&text, "a: &a [", NULL);
    for (int i = 0; i < 512; i++)
        buffer_append_string(&text, "xxxxxxxx", NULL);
    buffer_append_string(&text, "]\nb: [", NULL);
    for (int i = 0; i < 1000; i++)
        buffer_append_string(&text, "*a, ", NULL);
    buffer_append_string(&text, "1]\n", NULL);
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_expect(yaml_parse(text.data, text.length, CEILING, &documents, &error) < 0);
    cr_expect(error.kind == ERROR_TOO_LARGE && strstr(error.message, "aliases repeat too much"), "%s", error.message);
}

/* 240 bytes that are a million values when they are expanded. */
Test(yaml_read, a_small_bomb_of_aliases_is_refused_early)
{
    SCOPED_BUFFER text = BUFFER_INIT(CEILING);
    buffer_append_string(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n", NULL);
    for (int i = 1; i < 5; i++)
        buffer_format(&text, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1,
                      i - 1, i - 1, i - 1, i - 1, i - 1);
    expect_refused(buffer_text(&text), "aliases repeat too much");
}

/* Aliases inside aliases must not nest deeper than the parser itself may. */
Test(yaml_read, a_ladder_of_aliases_ends_at_the_depth_limit)
{
    SCOPED_BUFFER text = BUFFER_INIT(CEILING);
    buffer_append_string(&text, "a0: &a0 1\n", NULL);
    for (int i = 1; i < 200; i++)
        buffer_format(&text, "a%d: &a%d [[*a%d]]\n", i, i, i - 1);
    expect_refused(buffer_text(&text), "nested too deeply");
}

Test(yaml_read, bounds_depth_and_size)
{
    char text[2 * JSON_DEPTH_MAX + 3] = {0};
    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    expect_refused(text, "nested too deeply");
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    cr_expect(yaml_parse("a: 1\n", 5, 4, &documents, &error) < 0 && error.kind == ERROR_TOO_LARGE);
}
