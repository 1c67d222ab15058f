/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define HEAP_MAX_KIB 4096
#define REASON_MAX 128
/* Between two callouts the library may scan what is left of the line. */
#define BYTES_A_UNIT 64

struct log_pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *match; /* of the newest search */
};

struct group {
    const char *name;
    unsigned number;
};

/* The library's table of names: two bytes of the group's number, then the name. */
static struct group group_at(const pcre2_code *code, uint32_t index)
{
    PCRE2_SPTR table;
    uint32_t entry_bytes;
    pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &table);
    pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &entry_bytes);
    PCRE2_SPTR entry = table + (size_t)index * entry_bytes;
    return (struct group){.name = (const char *)entry + 2, .number = (unsigned)(entry[0] << 8 | entry[1])};
}

static uint32_t group_count(const pcre2_code *code)
{
    uint32_t count;
    pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &count);
    return count;
}

static pcre2_code *compile(const char *expression, struct error *error)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        abort();
    pcre2_set_max_pattern_length(context, LOG_PATTERN_MAX);
    int code;
    PCRE2_SIZE at;
    pcre2_code *compiled = pcre2_compile(
        (PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
        PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF | PCRE2_DUPNAMES, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        PCRE2_UCHAR reason[REASON_MAX];
        pcre2_get_error_message(code, reason, sizeof reason);
        error_set(error, ERROR_INVALID, "is not a valid regular expression (PCRE2): %s at character %zu",
                  (const char *)reason, (size_t)at);
    }
    return compiled;
}

int log_pattern_new(const char *expression, struct log_pattern **ret_pattern, struct error *error)
{
    pcre2_code *code = compile(expression, error);
    if (!code)
        return -1;
    if (group_count(code) == 0) {
        pcre2_code_free(code);
        return error_set(error, ERROR_INVALID, "has no named group, such as (?<loss>[0-9.]+)");
    }
    struct log_pattern *pattern = memory_allocate(1, sizeof *pattern);
    pattern->code = code;
    pattern->limits = pcre2_match_context_create(NULL);
    pattern->match = pcre2_match_data_create_from_pattern(code, NULL);
    if (!pattern->limits || !pattern->match)
        abort();
    pcre2_set_heap_limit(pattern->limits, HEAP_MAX_KIB);
    *ret_pattern = pattern;
    return 0;
}

void log_pattern_free(struct log_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_match_data_free(pattern->match);
    pcre2_match_context_free(pattern->limits);
    pcre2_code_free(pattern->code);
    free(pattern);
}

int log_pattern_check(const char *expression, struct error *error)
{
    struct log_pattern *pattern;
    if (log_pattern_new(expression, &pattern, error) < 0)
        return -1;
    log_pattern_free(pattern);
    return 0;
}

static void report_groups(const struct log_pattern *pattern, const char *text, log_pattern_found *found, void *context)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(pattern->match);
    for (uint32_t i = 0; i < group_count(pattern->code); i++) {
        struct group group = group_at(pattern->code, i);
        PCRE2_SIZE begin = ends[2 * group.number], end = ends[2 * group.number + 1];
        if (begin != PCRE2_UNSET && end > begin)
            found(context, group.name, text + begin, end - begin);
    }
}

/* Called by the library between two items of the expression. The library's own limits begin anew at each byte of the text. */
static int count_work(pcre2_callout_block *block, void *context)
{
    int64_t *left = context;
    *left -= 1 + (int64_t)(block->subject_length / BYTES_A_UNIT);
    return *left < 0 ? PCRE2_ERROR_CALLOUT : 0;
}

static int refuse_search(int code, struct error *error)
{
    PCRE2_UCHAR reason[REASON_MAX];
    if (code == PCRE2_ERROR_CALLOUT || code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
        code == PCRE2_ERROR_HEAPLIMIT)
        return error_set(error, ERROR_TOO_LARGE,
                         "searching the log takes too long; simplify this pattern or those before it");
    pcre2_get_error_message(code, reason, sizeof reason);
    return error_set(error, ERROR_INTERNAL, "PCRE2 cannot search the log: %s", (const char *)reason);
}

int log_pattern_search(struct log_pattern *pattern, const char *line, size_t length, int64_t *work_left,
                       log_pattern_found *found, void *context, struct error *error)
{
    if (length > LOG_LINE_MAX) {
        line += length - LOG_LINE_MAX;
        length = LOG_LINE_MAX;
    }
    pcre2_set_callout(pattern->limits, count_work, work_left);
    for (size_t from = 0; from <= length;) {
        int count = pcre2_match(pattern->code, (PCRE2_SPTR)line, length, from, 0, pattern->match, pattern->limits);
        if (count == PCRE2_ERROR_NOMATCH)
            return 0;
        if (count < 0)
            return refuse_search(count, error);
        report_groups(pattern, line, found, context);
        size_t end = pcre2_get_ovector_pointer(pattern->match)[1];
        from = end > from ? end : from + 1;
    }
    return 0;
}
