/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/csv_columns.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const struct csv_choice plain = {
    .label_title = "--label", .skip_title = "--skip", .skip_before = "--skip ", .skip_after = ""};

/* Reads a whole table, whose kinds are decided. Returns the result, and an error's text. */
static int read_table(const char *text, const struct csv_choice *choice, struct csv_columns *columns,
                      struct error *error)
{
    struct csv csv;
    int result;
    *columns = (struct csv_columns){.list = NULL};
    csv_init(&csv, (const uint8_t *)text, strlen(text));
    while ((result = csv_next(&csv, error)) > 0) {
        bool first = columns->count == 0, header = first && csv_is_header(&csv);
        if (first && csv_columns_start(columns, &csv, header, choice, error) < 0) {
            csv_release(&csv);
            return -1;
        }
        if (!header)
            csv_columns_add(columns, &csv);
    }
    csv_release(&csv);
    return result < 0 ? -1 : csv_columns_finish(columns, choice, error);
}

static void refused(const char *text, const struct csv_choice *choice, const char *message)
{
    struct csv_columns columns;
    struct error error = ERROR_INIT;
    cr_expect_eq(read_table(text, choice, &columns, &error), -1, "%s", text);
    cr_expect_str_eq(error.message, message);
    csv_columns_release(&columns);
}

/* The numbers that the fields become, or the reason why they do not. */
static void becomes(const struct csv_columns *columns, unsigned column, const char *text, const char *wanted)
{
    double numbers[CSV_WORDS_MAX];
    char shown[256] = "";
    const struct csv_field field = {text, strlen(text)};
    enum csv_encoding result = csv_column_encode(&columns->list[column], &field, numbers);
    for (unsigned i = 0; i < csv_column_width(&columns->list[column]) && result != CSV_NOT_ENCODED; i++)
        snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%g ", numbers[i]);
    snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s",
             result == CSV_NOT_ENCODED    ? "no"
             : result == CSV_UNKNOWN_WORD ? "unknown"
                                          : "");
    cr_expect_str_eq(shown, wanted, "%s: %s", text, shown);
}

static const char table[] = "size,sex,alone,port,kind\n1.5,male,yes,S,a\n2,female,No,C,b\n3,male,TRUE,S,a\n";

Test(csv_columns, numbers_booleans_and_words)
{
    struct csv_columns columns;
    struct error error = ERROR_INIT;
    cr_assert_eq(read_table(table, &plain, &columns, &error), 0, "%s", error.message);
    cr_expect(columns.label == 4 && columns.rows == 3);
    cr_expect(csv_columns_inputs(&columns) == 4 && csv_columns_width(&columns) == 6);
    becomes(&columns, 0, "-2e1", "-20 ");
    becomes(&columns, 0, "male", "no");
    becomes(&columns, 1, "female", "1 0 ");
    becomes(&columns, 1, "male", "0 1 ");
    becomes(&columns, 1, "Male", "0 0 unknown");
    becomes(&columns, 2, "true", "1 ");
    becomes(&columns, 2, "NO", "0 ");
    becomes(&columns, 2, "maybe", "no");
    becomes(&columns, 3, "C", "1 0 ");
    csv_columns_release(&columns);
}

/* What is kept with the weights gives the same numbers. */
Test(csv_columns, words_are_kept)
{
    struct csv_columns columns, known;
    struct error error = ERROR_INIT;
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    cr_assert_eq(read_table(table, &plain, &columns, &error), 0, "%s", error.message);
    SCOPED_JSON *words = csv_columns_words(&columns);
    cr_assert_eq(json_print(words, &text, NULL), 0);
    cr_expect_str_eq(buffer_text(&text), "[[],[\"female\",\"male\"],[\"false\",\"true\"],[\"C\",\"S\"]]");
    cr_assert_eq(csv_columns_known(&known, words, 0, &error), 0);
    cr_expect(known.count == 4 && csv_columns_width(&known) == 6);
    becomes(&known, 1, "male", "0 1 ");
    becomes(&known, 2, "Yes", "1 ");
    becomes(&known, 3, "Q", "0 0 unknown");
    csv_columns_release(&known);
    csv_columns_release(&columns);
    cr_assert_eq(read_table("1,2,0\n3,4,1\n", &plain, &columns, &error), 0);
    cr_expect_null(csv_columns_words(&columns));
    csv_columns_release(&columns);
    cr_assert_eq(csv_columns_known(&known, NULL, 3, &error), 0);
    cr_expect(known.count == 3 && csv_columns_width(&known) == 3);
    csv_columns_release(&known);
}

Test(csv_columns, malformed_words_are_refused)
{
    static const char *const texts[] = {"[1]", "[[1]]", "[{}]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct json *words = NULL;
        struct csv_columns known;
        struct error error = ERROR_INIT;
        cr_assert_eq(json_parse(texts[i], strlen(texts[i]), 100, &words, NULL), 0);
        cr_expect_eq(csv_columns_known(&known, words, 0, &error), -1);
        cr_expect_eq(error.kind, ERROR_INVALID);
        csv_columns_release(&known);
        json_free(words);
    }
}

Test(csv_columns, columns_that_are_left_out)
{
    static const char *const names[] = {"size", "4", "kind"};
    struct csv_choice choice = plain;
    struct csv_columns columns;
    struct error error = ERROR_INIT;
    choice.skipped = names;
    choice.skipped_count = 2;
    cr_assert_eq(read_table(table, &choice, &columns, &error), 0, "%s", error.message);
    cr_expect(csv_columns_width(&columns) == 3 && columns.label == 4);
    csv_columns_release(&columns);
    choice.skipped_count = 3; /* the last column that is left has the labels */
    cr_assert_eq(read_table(table, &choice, &columns, &error), 0, "%s", error.message);
    cr_expect(csv_columns_width(&columns) == 2 && columns.label == 2);
    csv_columns_release(&columns);
    choice.label = "kind";
    refused(table, &choice, "--skip: column 5 has the labels; take it out of the list");
    choice.label = "age";
    refused(table, &choice, "--label: there is no column age among the 5 of the table: size, sex, alone, port, kind");
    choice.label = "Prt";
    refused(table, &choice, "--label: there is no column Prt among the 5 of the table; did you mean \"port\"?");
    choice.label = NULL;
    choice.skipped = (const char *const[]){"height"};
    choice.skipped_count = 1;
    refused(table, &choice, "--skip: there is no column height among the 5 of the table: size, sex, alone, port, kind");
    choice.skipped = (const char *const[]){"1"};
    refused("1,2\n", &choice, "--skip: no column is left to learn from");
}

/* One sentence names all columns that cannot be used, and the option that leaves them out. */
Test(csv_columns, all_problems_are_told_at_once)
{
    static const struct csv_choice worker = {.skip_before = "data.skipColumns: [", .skip_after = "]"};
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    buffer_append_string(&text, "name,age,the deck,ticket,kind\n", NULL);
    for (int i = 0; i < 130; i++)
        buffer_format(&text, "n%d,%s,%s,%s,%c\n", i % 100, i == 3 ? "" : "1", i > 127 ? "NA" : "x",
                      i == 60 ? "A/5" : "7", "ab"[i % 2]);
    refused(buffer_text(&text), &plain,
            "values are missing in age (1 of 130, the first in line 5), the deck (2 of 130, the first in line 130); "
            "line 62, "
            "column 4 (ticket): \"A/5\" is not a number, but other values of the column are; name has more than 64 "
            "different "
            "words, as identifiers and texts do; correct the table, or leave columns out: --skip name,age,3,ticket");
    refused("1,2,a\n,3,b\n", &worker,
            "values are missing in column 1 (1 of 2, the first in line 2); correct the table, or leave columns out: "
            "data.skipColumns: [1]");
    refused("1,caf\xe9,a\n2,the,b\n", &plain,
            "column 2 has words that are not UTF-8; correct the table, or leave columns out: --skip 2");
}

Test(csv_columns, dates_and_decimal_commas_are_told_from_texts)
{
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    buffer_append_string(&text, "day;income;text;kind\n", NULL);
    for (int i = 0; i < 100; i++)
        buffer_format(&text, "2026-%02d-%02d;%d,%d;%d,5,1;%c\n", 1 + i / 28, 1 + i % 28, i, i % 10, i % 9, "ab"[i % 2]);
    refused(
        buffer_text(&text), &plain,
        "income has numbers with a comma, such as \"0,0\" in line 2: write them with a decimal point; day has more "
        "than 64 different dates; to learn from them, make numbers of them, such as the day of the year; correct the "
        "table, or leave columns out: --skip day,income");
}

Test(csv_columns, identifiers)
{
    struct csv_columns columns;
    struct error error = ERROR_INIT;
    cr_assert_eq(read_table("id,sex,n,kind\nA1,m,1,a\nB2,m,2,b\nC3,f,3,a\n", &plain, &columns, &error), 0);
    cr_expect(csv_column_identifies(&columns.list[0], columns.rows));
    cr_expect(!csv_column_identifies(&columns.list[1], columns.rows));
    cr_expect(!csv_column_identifies(&columns.list[2], columns.rows));
    cr_expect(!csv_column_identifies(&columns.list[0], 2));
    csv_columns_release(&columns);
}
