/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/csv.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"

static void start(struct csv *csv, const char *text)
{
    csv_init(csv, (const uint8_t *)text, strlen(text));
}

/* Rows as "a|b|c", with the number of each line before it. */
static void expect_rows(const char *text, const char *wanted)
{
    struct csv csv;
    struct error error = ERROR_INIT;
    int result;
    SCOPED_BUFFER rows = BUFFER_INIT(4096);
    start(&csv, text);
    while ((result = csv_next(&csv, &error)) > 0) {
        buffer_format(&rows, "%lld:", (long long)csv.line);
        for (unsigned i = 0; i < csv.count; i++)
            buffer_format(&rows, "%s%.*s", i > 0 ? "|" : "", (int)csv.fields[i].length, csv.fields[i].text);
        buffer_append_byte(&rows, '\n', NULL);
    }
    if (result < 0)
        buffer_append_string(&rows, error.message, NULL);
    csv_release(&csv);
    cr_expect_str_eq(buffer_text(&rows), wanted);
}

Test(csv, rows)
{
    expect_rows("", "");
    expect_rows("a,b\n1,2", "1:a|b\n2:1|2\n");
    expect_rows("\xef\xbb\xbf"
                "a, b \r\n\r\n  \n1 ,,3\r\n",
                "1:a|b\n4:1||3\n");
    expect_rows("a;b,c;d\n1;2,5;\n", "1:a|b,c|d\n2:1|2,5|\n");
    expect_rows("a\tb\n\t2\n", "1:a|b\n2:|2\n");
    expect_rows("\"a,;\"\"x\" , b\n\"\",2\n", "1:a,;\"x|b\n2:|2\n");
    expect_rows("\"say \"\"hi\"\"\",\"\"\"\",\"a\"\n\"\"\"long\"\" name\",b,\"\"\"\"\"\"\n",
                "1:say \"hi\"|\"|a\n2:\"long\" name|b|\"\"\n");
}

Test(csv, a_quote_that_is_not_closed_names_its_line)
{
    expect_rows("1,2\n1,\"2\n3,4\n", "1:1|2\nline 2, column 2: a quote is not closed before the column ends");
    expect_rows("\"1\"2,3\n", "line 1, column 1: a quote is not closed before the column ends");
}

Test(csv, a_line_without_numbers_is_a_header)
{
    static const struct {
        const char *line;
        bool header;
    } lines[] = {{"length,width,kind", true},
                 {"5.1,3.5,setosa", false},
                 {",x", true},
                 {"a,2020", false},
                 {"0,1,target\n5,6,a\n7,8,b\n9,9,a\n", true},
                 {"2019,2020,price\n5,6,1.5\n7,8,2\n", true},
                 {"5,6,a\n7,8,b\n9,9,a\n", false},
                 {"x,n,e\nb,n,p\nx,f,e\n", false},
                 {"cap,gills,kind\nx,n,e\nb,n,p\n", true},
                 {"cap,kind\nx,e\ncap,kind\nb,p\n", true},
                 {"age,kind\n7,kind\n8,rose\n", true},
                 {"?,e\n?,p\nx,p\n", false},
                 {"\"a\"\"b\",e\n\"a\"\"b\",p\n", false},
                 {"5,6,c\n7,8,b\n9,9,a\n", false},
                 {"5.5,6,c\n7,8,b\n9,9,b\n", false}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct csv csv;
        start(&csv, lines[i].line);
        cr_assert_eq(csv_next(&csv, NULL), 1);
        cr_expect_eq(csv_is_header(&csv), lines[i].header, "%s", lines[i].line);
        csv_release(&csv);
    }
}

static struct csv_field field_of(const char *text)
{
    return (struct csv_field){text, strlen(text)};
}

Test(csv, numbers)
{
    static const char *const none[] = {"", "x", "1x", "0x10", "inf", "nan", "1e999", "1 2", "-", "1,5"};
    double number = 0;
    cr_expect(csv_number(&(struct csv_field){"-1.5e3", 6}, &number) && number == -1500);
    cr_expect(csv_number(&(struct csv_field){"12345", 2}, &number) && number == 12, "not beyond the field");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct csv_field field = field_of(none[i]);
        cr_expect_not(csv_number(&field, &number), "%s", none[i]);
    }
    cr_expect(csv_is_missing(&(struct csv_field){"na", 2}) && csv_is_missing(&(struct csv_field){"?", 1}));
    cr_expect_not(csv_is_missing(&(struct csv_field){"0", 1}));
}

/* Most numbers are read without strtod, to the same bits. */
Test(csv, numbers_have_the_bits_of_strtod)
{
    static const char *const few[] = {"-0",
                                      "-.5",
                                      "7.",
                                      "0.1",
                                      "999999999999999",
                                      "-99999999999999.9",
                                      "0.000000000000001",
                                      "9999999999999999",
                                      "0.1234567890123456789",
                                      "+3",
                                      "-1e-7",
                                      "1E22"};
    char text[40];
    unsigned state = 1;
    for (unsigned i = 0; i < 20000; i++) {
        state = state * 1664525U + 1013904223U;
        unsigned whole = state >> (state % 29), part = state * 2654435761U;
        if (i < sizeof few / sizeof *few)
            snprintf(text, sizeof text, "%s", few[i]);
        else
            snprintf(text, sizeof text, "%s%u.%0*u", i % 2 ? "-" : "", whole, (int)(i % 9), part >> (i % 31));
        double wanted = strtod(text, NULL), number = 7;
        struct csv_field field = field_of(text);
        cr_assert(csv_number(&field, &number), "%s", text);
        cr_assert_eq(memcmp(&number, &wanted, sizeof number), 0, "%s: %a, not %a", text, number, wanted);
    }
    cr_expect_not(csv_number(&(struct csv_field){".", 1}, &(double){0}));
    cr_expect_not(csv_number(&(struct csv_field){"1.2.3", 5}, &(double){0}));
    cr_expect_not(csv_number(&(struct csv_field){"--1", 3}, &(double){0}));
}

/* `words`: the labels as they come; `wanted`: as they are sorted. */
static void expect_labels(const char *const *words, const char *const *wanted, unsigned count)
{
    struct csv_labels labels = {.list = NULL};
    for (unsigned i = 0; words[i]; i++) {
        struct csv_field field = field_of(words[i]);
        cr_assert_eq(csv_labels_add(&labels, &field, NULL), 0);
    }
    csv_labels_sort(&labels);
    cr_assert_eq(labels.count, count);
    for (unsigned i = 0; i < count; i++) {
        struct csv_field field = field_of(wanted[i]);
        cr_expect_eq(csv_labels_find(&labels, &field), (int)i, "%s", wanted[i]);
    }
    cr_expect_eq(csv_labels_find(&labels, &(struct csv_field){"other", 5}), -1);
    csv_labels_release(&labels);
}

Test(csv, labels_are_sorted_as_numbers_or_as_words)
{
    expect_labels((const char *const[]){"10", "9", "-1", "10", NULL}, (const char *const[]){"-1", "9", "10"}, 3);
    expect_labels((const char *const[]){"virginica", "10", "9", "setosa", NULL},
                  (const char *const[]){"10", "9", "setosa", "virginica"}, 4);
}

Test(csv, labels_have_ceilings)
{
    static char texts[CSV_LABELS_MAX + 1][8], longest[CSV_LABEL_LENGTH_MAX + 1];
    struct csv_labels labels = {.list = NULL};
    struct error error = ERROR_INIT;
    memset(longest, 'x', sizeof longest);
    cr_expect_eq(csv_labels_add(&labels, &(struct csv_field){longest, sizeof longest}, &error), -1);
    cr_expect_eq(error.kind, ERROR_TOO_LARGE);
    for (int i = 0; i <= CSV_LABELS_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "%d", i);
        struct csv_field field = field_of(texts[i]);
        cr_expect_eq(csv_labels_add(&labels, &field, &error), i < CSV_LABELS_MAX ? 0 : -1);
    }
    csv_labels_release(&labels);
}
