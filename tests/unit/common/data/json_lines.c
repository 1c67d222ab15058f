/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/json_lines.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/data/csv.h"

static void check_texts(const char *lines, const char *wanted, const char *words)
{
    SCOPED_BUFFER texts = BUFFER_INIT(1000);
    struct error error = ERROR_INIT;
    int result = json_lines_texts((const uint8_t *)lines, strlen(lines), &texts, &error);
    cr_expect_eq(result, words ? -1 : 0, "%s: %s", lines, error.message);
    if (words)
        cr_expect(strstr(error.message, words), "%s", error.message);
    else
        cr_expect_str_eq(buffer_text(&texts), wanted);
}

Test(json_lines, texts_are_documents_of_a_line_each)
{
    check_texts("\xef\xbb\xbf{\"text\": \"one\"}\r\n\n \t\n{\"id\": 2, \"text\": \"t\\u00e9n\\nlines\"}",
                "one\nt\xc3\xa9n\nlines\n", NULL);
    check_texts("", "", NULL);
}

Test(json_lines, lines_that_are_no_texts_are_named)
{
    check_texts("{\"text\": \"a\"}\n{\"text\": 3}", NULL, "line 2 has no string \"text\"");
    check_texts("{\"text\": \"a\"}\n\n[1]", NULL, "line 3 is a JSON array; each line must be an object");
    check_texts("{\"text\": \"a\"", NULL, "line 1 is not JSON");
    SCOPED_BUFFER few = BUFFER_INIT(3);
    struct error error = ERROR_INIT;
    cr_expect_eq(json_lines_texts((const uint8_t *)"{\"text\": \"long\"}", 16, &few, &error), -1);
    cr_expect(error.kind == ERROR_TOO_LARGE && strstr(error.message, "line 1"), "%s", error.message);
}

Test(json_lines, a_line_has_a_ceiling)
{
    size_t length = JSON_LINES_LENGTH_MAX + 32;
    char *line = malloc(length);
    struct json_lines lines;
    struct json *object = NULL;
    struct error error = ERROR_INIT;
    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    json_lines_init(&lines, (const uint8_t *)line, length);
    cr_expect_eq(json_lines_next(&lines, &object, &error), -1);
    cr_expect(error.kind == ERROR_TOO_LARGE && strstr(error.message, "line 1 has 16777248 bytes"), "%s", error.message);
    free(line);
}

Test(json_lines, names_and_first_lines_tell_what_they_are)
{
    cr_expect(json_lines_named("a/b.jsonl") && json_lines_named("x.ndjson.gz") && json_lines_named("x.jsonl.gz"));
    cr_expect(!json_lines_named("a.json") && !json_lines_named("jsonl") && !json_lines_named("a.csv.gz"));
    static const struct {
        const char *line;
        bool texts;
    } rows[] = {{"{\"text\": \"a\"}", true},
                {"{\"text\": \"a\", \"label\": 1}", false},
                {"{\"text\": 1}", false},
                {"{", false},
                {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(json_lines_are_texts((const uint8_t *)rows[i].line, strlen(rows[i].line)), rows[i].texts, "%s",
                     rows[i].line);
}

/* ---------------------------------------------------------------- tables */

static int next(struct csv *csv, struct error *error, const char *wanted)
{
    SCOPED_BUFFER row = BUFFER_INIT(1000);
    int result = csv_next(csv, error);
    for (unsigned i = 0; result > 0 && i < csv->count; i++)
        buffer_format(&row, "%s%.*s", i > 0 ? "|" : "", (int)csv->fields[i].length, csv->fields[i].text);
    if (wanted)
        cr_expect_str_eq(buffer_text(&row), wanted);
    return result;
}

Test(json_lines, objects_are_rows_of_a_table)
{
    static const char text[] =
        "{\"a\": 1, \"b\": 0.1, \"kind\": \"x, y\"}\n\n{\"kind\": null, \"a\": -2e30, \"b\": 3}\n";
    struct csv csv;
    struct error error = ERROR_INIT;
    csv_init_file(&csv, "t.jsonl", (const uint8_t *)text, sizeof text - 1);
    cr_assert_eq(next(&csv, &error, "a|b|kind"), 1);
    cr_expect(csv_is_header(&csv));
    cr_assert_eq(next(&csv, &error, "1|0.1|x, y"), 1);
    cr_expect(!csv_is_header(&csv) && csv.line == 1);
    cr_assert_eq(next(&csv, &error, "-2e+30|3|"), 1, "%s", error.message);
    cr_expect(csv.line == 3 && csv_is_missing(&csv.fields[2]));
    cr_expect_eq(next(&csv, &error, ""), 0);
    csv_release(&csv);
}

static void refused(const char *text, const char *words)
{
    struct csv csv;
    struct error error = ERROR_INIT;
    int result = 1;
    csv_init_file(&csv, "t.jsonl", (const uint8_t *)text, strlen(text));
    while (result > 0)
        result = next(&csv, &error, NULL);
    cr_expect_eq(result, -1, "%s", text);
    cr_expect(strstr(error.message, words), "%s", error.message);
    csv_release(&csv);
}

Test(json_lines, booleans_are_words_of_a_table)
{
    struct csv csv;
    struct error error = ERROR_INIT;
    static const char text[] = "{\"a\": true, \"b\": false}";
    csv_init_file(&csv, "t.jsonl", (const uint8_t *)text, strlen(text));
    cr_assert(csv_next(&csv, &error) > 0 && csv_next(&csv, &error) > 0, "%s", error.message);
    cr_expect(csv_field_is(&csv.fields[0], "true") && csv_field_is(&csv.fields[1], "false"));
    csv_release(&csv);
}

Test(json_lines, objects_that_are_no_rows_are_named)
{
    refused("{\"a\": 1}\n{\"b\": 1}", "line 2 has no field \"a\", which the first line has");
    refused("{\"a\": 1}\n{\"a\": 1, \"b\": 1}", "line 2 has a field \"b\", which the first line does not have");
    refused("{\"a\": {\"x\": 1}}",
            "line 1: the field \"a\" is a JSON object; a table has numbers, strings and booleans");
    refused("{\"a\\u001b[31m\": []}", "the field \"a?[31m\" is a JSON array");
    refused("{}", "line 1 is an empty object");
    refused("{\"a\": 1}\nx", "line 2 is not JSON");
}
