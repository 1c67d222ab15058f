/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_lines.h"

#include "job_json.h"

static void expect(struct log_style style, const char *expected)
{
    struct log_text logs[] = {
        {"worker-0", .text = "2026-11-20T14:00:00.1Z one\n2026-11-20T14:00:00.12Z three\n2026-11-20T14:00:02Z \n"},
        {"ps-0", .text = "2026-11-20T14:00:00.11Z two\n2026-11-20T14:00:01.000000001Z four\n2026-11-20T14:00:09Z last"},
    };
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    for (int i = 0; i < 2; i++)
        logs[i].end = logs[i].text + strlen(logs[i].text);
    while (log_merge_line(&style, logs, 2, &text))
        continue;
    cr_expect_str_eq(buffer_text(&text), expected);
}

Test(log_lines, are_merged_by_their_time)
{
    expect((struct log_style){.prefix = true, .width = 8},
           "worker-0 | one\nps-0     | two\nworker-0 | three\nps-0     | four\nworker-0 | \nps-0     | last\n");
    expect((struct log_style){.prefix = false}, "one\ntwo\nthree\nfour\n\nlast\n");
}

Test(log_lines, keep_their_time_when_asked)
{
    struct log_style style = {.prefix = true, .timestamps = true, .width = 4};
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    log_line_print(&style, "ps-0", "2026-11-20T14:00:00.1Z one", 26, &text);
    log_line_print(&(struct log_style){.prefix = false}, "ps-0", "Zero lines", 10, &text);
    cr_expect_str_eq(buffer_text(&text), "ps-0 | 2026-11-20T14:00:00.1Z one\nZero lines\n");
}

Test(log_lines, a_speaker_has_one_colour)
{
    struct log_style style = {.prefix = true, .colour = true, .width = 4};
    SCOPED_BUFFER first = BUFFER_INIT(65536), second = BUFFER_INIT(65536);
    log_line_print(&style, "ps-0", "x", 1, &first);
    log_line_print(&style, "ps-0", "x", 1, &second);
    cr_expect_str_eq(buffer_text(&first), buffer_text(&second));
    cr_expect(strstr(buffer_text(&first), "m"
                                          "ps-0 |\033[0m x\n"),
              "%s", buffer_text(&first));
}

Test(log_lines, a_speaker_is_a_place)
{
    SCOPED_JSON *pod = json_of("{'metadata':{'labels':{'coxswain.dev/role':'ps','coxswain.dev/index':'12'}}}");
    char speaker[LOG_SPEAKER_MAX];
    log_speaker(pod, speaker);
    cr_expect_str_eq(speaker, "ps-12");
}

Test(log_lines, may_hold_any_bytes)
{
    struct log_text log = {"ps-0", .text = "2026-11-20T14:00:00Z a\0b\n\n2026-11-20T14:00:01Z c"};
    log.end = log.text + 48;
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    while (log_merge_line(&(struct log_style){.prefix = false}, &log, 1, &text))
        continue;
    cr_expect_arr_eq(buffer_text(&text), "a\0b\n\nc\n", 7);
    cr_expect_eq(text.length, 7);
}
