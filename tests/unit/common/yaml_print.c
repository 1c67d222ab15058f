/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/yaml.h"
#include "tests/unit/json_of.h"

#define CEILING (64 * 1024)

/* Prints it, and reads what was printed back. */
static void expect_yaml(const char *json, const char *yaml)
{
    SCOPED_JSON *value = json_of(json);
    SCOPED_BUFFER out = BUFFER_INIT(CEILING);
    cr_assert(yaml_print(value, &out, NULL) == 0);
    if (yaml)
        cr_expect_str_eq(buffer_text(&out), yaml);
    SCOPED_JSON *documents = NULL;
    struct error error = ERROR_INIT;
    cr_assert(yaml_parse(out.data, out.length, CEILING, &documents, &error) == 0, "%s: %s", out.data, error.message);
    cr_expect(json_equal(json_first(documents), value), "%s became %s", json, out.data);
}

Test(yaml_print, blocks)
{
    expect_yaml("{\"a\":1,\"b\":[1,{\"c\":\"x\",\"d\":[true]},[2,[3]]],\"e\":{},\"f\":[],\"g\":{\"h\":null}}",
                "a: 1\n"
                "b:\n"
                "- 1\n"
                "- c: x\n"
                "  d:\n"
                "  - true\n"
                "- - 2\n"
                "  - - 3\n"
                "e: {}\n"
                "f: []\n"
                "g:\n"
                "  h: null\n");
    expect_yaml("[]", "[]\n");
    expect_yaml("\"x\"", "x\n");
}

Test(yaml_print, quotes_what_would_read_as_something_else)
{
    static const char *const texts[] = {
        "",      " ",    "a ",   " a",   "1",    "-1",   "1e3",   ".5",  "0x1F", "true", "No", "on",     "null",
        "~",     "a: b", "a:",   "a #b", "#a",   "- a",  "-",     "? a", "[a",   "{a",   "*a", "&a",     "!a",
        "|",     ">",    "'a'",  "\"a",  "a\nb", "a\tb", "<<",    "@a",  "`a",   "%a",   "é",  "a\\b",   "a,b",
        "12:30", ".inf", ".nan", "---",  "...",  "=",    "a\x7f", "y",   "(a)",  "^a$",  "a]", "a, [b]", "... a",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        SCOPED_JSON *object = json_new_object();
        json_set_string(object, "k", texts[i]);
        json_set_string(object, texts[i], "value");
        json_append_string(json_set_array(object, "list"), texts[i]);
        SCOPED_BUFFER text = BUFFER_INIT(CEILING);
        json_print(object, &text, NULL);
        expect_yaml(buffer_text(&text), NULL);
        SCOPED_JSON *alone = json_new_string(texts[i]); /* where it could end the document */
        SCOPED_BUFFER line = BUFFER_INIT(CEILING);
        json_print(alone, &line, NULL);
        expect_yaml(buffer_text(&line), NULL);
    }
    expect_yaml("{\"a\":\"plain text, with (some) marks\"}", "a: plain text, with (some) marks\n");
    expect_yaml("{\"a\":\"yes\"}", "a: \"yes\"\n");
}

Test(yaml_print, stops_at_the_ceiling)
{
    SCOPED_JSON *value = json_of("{\"a\":[1,2,3]}");
    SCOPED_BUFFER out = BUFFER_INIT(8);
    struct error error = ERROR_INIT;
    cr_expect(yaml_print(value, &out, &error) < 0 && error.kind == ERROR_TOO_LARGE);
}
