/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log_pattern.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/memory.h"

#define FOUND_MAX 4096

static void note(void *context, const char *group, const char *text, size_t length)
{
    buffer_format(context, "%s=%.*s ", group, (int)length, text);
}

/* What is found, as "group=text group=text ". */
static const struct {
    const char *what, *expression, *text, *found;
} cases[] = {
    {"one value", "loss (?<loss>[0-9.]+)", "step 3 loss 0.25\n", "loss=0.25 "},
    {"every match in its order", "loss (?<loss>[0-9.]+)", "loss 2\nloss 1\n", "loss=2 loss=1 "},
    {"several groups, by name", "(?<step>\\d+)/(?<totalSteps>\\d+)", "10/300 [00:01]", "step=10 totalSteps=300 "},
    {"a group that takes no part", "(?<a>x)|(?<b>y)", "y", "b=y "},
    {"an empty match", "(?<a>x*)", "zxz", "a=x "},
    {"groups without a name", "(\\w+) (?<a>\\d+)", "word 7", "a=7 "},
    {"a name that stands twice", "loss=(?<l>\\d+)|Loss: (?<l>\\d+)", "Loss: 4 loss=3", "l=4 l=3 "},
    {"a whole line", "^(?<a>\\d+)$", "12", "a=12 "},
    {"no line break by a dot", "a(?<rest>.*)", "a1\nb", "rest=1 "},
    {"bytes that are no UTF-8", "(?<a>\\d)", "\xff\xfe 5 \xc3", "a=5 "},
    {"nothing", "(?<a>\\d)", "", ""},
};

Test(log_pattern, finds_groups)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        struct log_pattern *pattern;
        SCOPED_BUFFER found = BUFFER_INIT(FOUND_MAX);
        int64_t work = LOG_WORK_MAX;
        cr_assert_eq(log_pattern_new(cases[i].expression, &pattern, &error), 0, "%s: %s", cases[i].what, error.message);
        cr_expect_eq(log_pattern_search(pattern, cases[i].text, strlen(cases[i].text), &work, note, &found, &error), 0);
        cr_expect_str_eq(buffer_text(&found), cases[i].found, "%s: %s", cases[i].what, buffer_text(&found));
        log_pattern_free(pattern);
    }
}

static const struct {
    const char *expression, *words;
} wrong[] = {
    {"loss (?<loss>[0-9.]+", "is not a valid regular expression (PCRE2): missing closing parenthesis at character 20"},
    {"loss [0-9.]+", "has no named group, such as (?<loss>[0-9.]+)"},
    {"(?<1>x)", "is not a valid regular expression (PCRE2): "},
    {"(*UTF)(?<a>x)", "is not a valid regular expression (PCRE2): "},
    {"(?<a>\\C)", "is not a valid regular expression (PCRE2): "},
    {"(?<a>((x{1,999}){1,999}){1,999})", "is not a valid regular expression (PCRE2): regular expression is too large"},
};

Test(log_pattern, refuses_in_words)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error error = ERROR_INIT;
        cr_expect_eq(log_pattern_check(wrong[i].expression, &error), -1, "%s", wrong[i].expression);
        cr_expect_eq(error.kind, ERROR_INVALID);
        cr_expect_eq(strncmp(error.message, wrong[i].words, strlen(wrong[i].words)), 0, "%s", error.message);
    }
    char *longest = memory_allocate(LOG_PATTERN_MAX + 16, 1);
    memset(longest, 'x', LOG_PATTERN_MAX + 8);
    memcpy(longest, "(?<a>x)", 7);
    cr_expect_eq(log_pattern_check(longest, NULL), -1);
    longest[LOG_PATTERN_MAX] = '\0';
    cr_expect_eq(log_pattern_check(longest, NULL), 0);
    free(longest);
}

/* The second one has a cheap beginning at each byte. */
Test(log_pattern, a_search_that_never_ends_is_given_up)
{
    static const char *const expressions[] = {"(?<a>(x+x+)+[yz])", "(?<a>[a-z]+[a-z]+[a-z]+)\\d", "(?<a>x*x*x*x*)\\d"};
    char line[LOG_LINE_MAX];
    memset(line, 'x', sizeof line);
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        struct error error = ERROR_INIT;
        struct log_pattern *pattern;
        SCOPED_BUFFER found = BUFFER_INIT(FOUND_MAX);
        int64_t work = LOG_WORK_MAX, begun_ns = clock_monotonic_ns();
        cr_assert_eq(log_pattern_new(expressions[i], &pattern, &error), 0);
        cr_expect_eq(log_pattern_search(pattern, line, sizeof line, &work, note, &found, &error), -1);
        cr_expect_eq(error.kind, ERROR_TOO_LARGE);
        cr_expect_str_eq(error.message, "searching the log takes too long; simplify this pattern or those before it");
        cr_log_info("%s: %lld us", expressions[i], (long long)(clock_monotonic_ns() - begun_ns) / 1000);
        log_pattern_free(pattern);
    }
}

Test(log_pattern, the_end_of_a_long_line_counts)
{
    char line[2 * LOG_LINE_MAX];
    memset(line, ' ', sizeof line);
    memcpy(line, "loss 1", 6);
    memcpy(line + sizeof line - 6, "loss 2", 6);
    struct log_pattern *pattern;
    SCOPED_BUFFER found = BUFFER_INIT(FOUND_MAX);
    int64_t work = LOG_WORK_MAX;
    cr_assert_eq(log_pattern_new("loss (?<loss>\\d)", &pattern, NULL), 0);
    cr_expect_eq(log_pattern_search(pattern, line, sizeof line, &work, note, &found, NULL), 0);
    cr_expect_str_eq(buffer_text(&found), "loss=2 ");
    log_pattern_free(pattern);
}
