/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"

/* Runs `speak` with stderr going to a pipe and returns what it wrote. */
static const char *captured(void (*speak)(void))
{
    static char text[8192];
    int ends[2], saved = dup(STDERR_FILENO);
    cr_assert(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    speak();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void speak_of_a_pod(void)
{
    log_info("pod created", "job", "default/digits", "absent", NULL, "message", "two words", "quote", "a\"b", NULL);
}

static void speak_at_all_levels(void)
{
    log_debug("d", NULL);
    log_info("i", NULL);
    log_warning("w", NULL);
    log_error("e", NULL);
}

static void speak_of_an_attack(void)
{
    log_error("bad\nline \033[2J", "name", "x\n2026 info forged", NULL);
}

Test(log, text_lines)
{
    const char *line = captured(speak_of_a_pod);
    int64_t ms;
    char time[32] = {0};
    memcpy(time, line, strcspn(line, " "));
    cr_expect(clock_parse(time, &ms), "%s", time);
    cr_expect(strlen(time) == strlen("2026-11-20T14:00:00.123Z"));
    cr_expect_str_eq(line + strlen(time),
                     " info    pod created job=default/digits message=\"two words\" quote=\"a\\\"b\"\n");
}

Test(log, json_lines)
{
    log_configure(LOG_INFO, LOG_JSON);
    const char *line = captured(speak_of_a_pod);
    SCOPED_JSON *object = NULL;
    cr_assert(json_parse(line, strlen(line), 4096, &object, NULL) == 0, "%s", line);
    cr_expect_str_eq(json_string_at(object, "level", ""), "info");
    cr_expect_str_eq(json_string_at(object, "message", ""), "two words"); /* a pair of that name wins */
    cr_expect_str_eq(json_string_at(object, "job", ""), "default/digits");
    cr_expect(json_member(object, "absent") == NULL);
}

Test(log, keeps_quiet_below_its_level)
{
    log_configure(LOG_WARNING, LOG_TEXT);
    const char *lines = captured(speak_at_all_levels);
    cr_expect(strstr(lines, "debug") == NULL && strstr(lines, "info") == NULL);
    cr_expect(strstr(lines, "warning w\n") && strstr(lines, "error   e\n"), "%s", lines);
}

Test(log, outside_text_cannot_forge_lines)
{
    const char *lines = captured(speak_of_an_attack);
    cr_expect(strchr(lines, '\n') == lines + strlen(lines) - 1, "%s", lines);
    cr_expect(strchr(lines, '\033') == NULL);
}

Test(log, knows_the_names_of_levels_and_formats)
{
    enum log_level level;
    enum log_format format;
    cr_expect(log_level_parse("warning", &level) && level == LOG_WARNING);
    cr_expect(log_level_parse("debug", &level) && level == LOG_DEBUG);
    cr_expect(!log_level_parse("loud", &level));
    cr_expect(log_format_parse("json", &format) && format == LOG_JSON);
    cr_expect(!log_format_parse("", &format));
}
