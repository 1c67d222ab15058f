/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/command_line.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "operator/cli/command.h"

static const struct command_usage usage = {
    .text = "usage: cox test NAME\n\nmanual\n", .options = "ofmWs", .names_min = 1, .names_max = 2};

/* The words of `text`, which stay valid until the next call. */
static int parse(struct command_line *line, const char *text)
{
    static char copy[256];
    static char *words[16];
    int count = 0;
    char *state;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
        words[count++] = word;
    words[count] = NULL;
    optind = 1;
    return command_line_parse(count, words, &usage, line);
}

Test(command_line, options_and_names_in_any_order)
{
    struct command_line line;
    cr_assert_eq(parse(&line, "cox -n ml one --context=c -o yaml -f two --timeout 5m"), -1);
    cr_expect_str_eq(line.name_space, "ml");
    cr_expect_str_eq(line.context, "c");
    cr_expect(line.output == OUTPUT_YAML && line.follow && !line.watch);
    cr_expect(line.timeout_ms == 300000 && line.tail == -1 && line.workers == -1);
    cr_expect(line.name_count == 2);
    cr_expect_str_eq(line.names[1], "two");
}

Test(command_line, a_run_may_stand_for_the_name_of_its_job)
{
    struct command_line line;
    cr_assert_eq(parse(&line, "cox --state digits"), -1);
    cr_expect(line.lacks_name && line.name_count == 0);
    cr_expect_str_eq(line.state, "digits");
    cr_assert_eq(parse(&line, "cox --state digits one"), -1);
    cr_expect(!line.lacks_name && line.name_count == 1);
}

/* Only an option that the command takes is suggested. */
Test(command_line, an_option_that_was_probably_meant, .init = cr_redirect_stderr)
{
    struct command_line line;
    char text[1024];
    cr_expect_eq(parse(&line, "cox a --kubconfig=x"), EXIT_USAGE);
    cr_expect_eq(parse(&line, "cox a --timout 5"), EXIT_USAGE);
    cr_expect_eq(parse(&line, "cox a --selectr b"), EXIT_USAGE);
    fflush(stderr);
    FILE *stream = cr_get_redirected_stderr();
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    cr_expect(strstr(text, "did you mean --kubeconfig?\nusage: cox test NAME\n"), "%s", text);
    cr_expect(strstr(text, "did you mean --timeout?\n"), "%s", text);
    cr_expect_null(strstr(text, "--selector"));
}

Test(command_line, what_is_wrong_is_usage, .init = cr_redirect_stderr)
{
    struct command_line line;
    static const char *const rows[] = {"cox",
                                       "cox a b c",
                                       "cox a --fred",
                                       "cox a --watch",
                                       "cox a -o xml",
                                       "cox a --workers -1",
                                       "cox a --timeout 5y",
                                       "cox a --timeout",
                                       "cox a -o wide b c"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(parse(&line, rows[i]), EXIT_USAGE, "%s", rows[i]);
}

Test(command_line, what_an_option_takes_is_told, .init = cr_redirect_stderr)
{
    struct command_line line;
    cr_expect_eq(parse(&line, "cox a --timeout abc"), EXIT_USAGE);
    fflush(stderr);
    cr_expect_stderr_eq_str("cox: --timeout \"abc\": it takes a time such as 90 or 90s (seconds), 5m, 2h or 1d\n"
                            "usage: cox test NAME\n");
}

Test(command_line, help_is_asked_for, .init = cr_redirect_stdout)
{
    struct command_line line;
    cr_assert_eq(parse(&line, "cox --help"), 0);
}

Test(command_line, durations)
{
    int64_t ms;
    cr_expect(duration_parse("90", &ms) && ms == 90000);
    cr_expect(duration_parse("90s", &ms) && ms == 90000);
    cr_expect(duration_parse("2h", &ms) && ms == 7200000);
    cr_expect(duration_parse("1d", &ms) && ms == 86400000);
    cr_expect_not(duration_parse("", &ms) || duration_parse("s", &ms) || duration_parse("-1", &ms) ||
                  duration_parse("99999999999999999999", &ms) || duration_parse("1w", &ms));
}

Test(command_line, a_command_may_take_other_forms, .init = cr_redirect_stderr)
{
    static const struct command_usage exporting = {
        .text = "usage\n", .options = "o", .names_max = 1, .forms = "csv and json"};
    static const struct {
        const char *form;
        int code;
    } rows[] = {{"csv", -1},         {"json", -1},       {"yaml", EXIT_USAGE},
                {"and", EXIT_USAGE}, {"cs", EXIT_USAGE}, {"", EXIT_USAGE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct command_line line;
        char program[] = "cox", option[] = "-o", form[8];
        char *words[] = {program, option, form, NULL};
        snprintf(form, sizeof form, "%s", rows[i].form);
        optind = 1;
        cr_expect_eq(command_line_parse(3, words, &exporting, &line), rows[i].code, "%s", form);
    }
}
