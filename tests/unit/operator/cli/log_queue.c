/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_queue.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct log_style style = {.prefix = true};

static void take(struct log_stream *stream, const char *text, int64_t now_ms)
{
    cr_assert_eq(log_stream_append(stream, text, strlen(text), now_ms, NULL), 0);
}

/* Expects the text of all lines that are due by then. */
static void expect(struct log_queue *queue, int64_t now_ms, const char *expected)
{
    SCOPED_BUFFER out = BUFFER_INIT(65536);
    while (log_queue_next(queue, now_ms, &out))
        continue;
    cr_expect_str_eq(buffer_text(&out), expected);
}

Test(log_queue, lines_wait_for_earlier_ones_of_others)
{
    struct log_queue *queue = log_queue_new(&style);
    struct log_stream *a = log_queue_open(queue, "worker-0"), *b = log_queue_open(queue, "ps-0");
    take(a, "2026-11-20T14:00:01Z one\n2026-11-20T14:00:03Z three\n", 1000);
    expect(queue, 1000, "");
    cr_expect_eq(log_queue_due_ms(queue), 1000 + LOG_HOLD_MS);
    take(b, "2026-11-20T14:00:02Z two\n", 1100);
    expect(queue, 1100, "worker-0 | one\nps-0     | two\n");
    expect(queue, 1000 + LOG_HOLD_MS, "worker-0 | three\n");
    cr_expect_eq(log_queue_due_ms(queue), -1);
    log_queue_free(queue);
}

Test(log_queue, an_overdue_line_takes_earlier_ones_along)
{
    struct log_queue *queue = log_queue_new(&style);
    struct log_stream *a = log_queue_open(queue, "a"), *b = log_queue_open(queue, "b");
    log_queue_open(queue, "c");
    take(a, "2026-11-20T14:00:02Z late\n", 1000);
    take(b, "2026-11-20T14:00:01Z early\n2026-11-20T14:00:04Z later\n", 1000 + LOG_HOLD_MS - 1);
    expect(queue, 1000 + LOG_HOLD_MS - 1, "");
    expect(queue, 1000 + LOG_HOLD_MS, "b | early\na | late\n");
    log_queue_free(queue);
}

Test(log_queue, nobody_waits_for_a_log_that_has_ended)
{
    struct log_queue *queue = log_queue_new(&style);
    struct log_stream *a = log_queue_open(queue, "a"), *b = log_queue_open(queue, "b");
    take(a, "2026-11-20T14:00:02Z one\n", 0);
    take(b, "2026-11-20T14:00:0", 0);
    expect(queue, 0, "");
    take(b, "1Z cut", 0);
    expect(queue, 0, "");
    log_stream_close(b, 0);
    expect(queue, 0, "b | cut\na | one\n");
    log_queue_free(queue);
}

Test(log_queue, a_log_that_was_cut_goes_on_where_it_was)
{
    struct log_queue *queue = log_queue_new(&style);
    struct log_stream *a = log_queue_open(queue, "a"), *b = log_queue_open(queue, "b");
    cr_expect_null(log_position_since(log_stream_position(a)));
    take(a, "2026-11-20T14:00:01.5Z one\n2026-11-20T14:00:02Z two\n2026-11-20T14:00:02Z three\n2026-11-20T14:00:0", 0);
    take(b, "2026-11-20T14:00:09Z other\n", 0);
    expect(queue, 0, "a | one\na | two\na | three\n");
    log_stream_cut(a);
    cr_expect_str_eq(log_position_since(log_stream_position(a)), "2026-11-20T14:00:02Z");
    cr_expect(log_stream_position(a)->repeats);
    expect(queue, LOG_HOLD_MS, "b | other\n");
    take(a, "2026-11-20T14:00:01.5Z one\n2026-11-20T14:00:02Z two\n2026-11-20T14:00:02Z three\n", 0);
    take(a, "2026-11-20T14:00:02Z four\n2026-11-20T14:00:03Z five\n", 0);
    log_stream_close(b, 0);
    expect(queue, 0, "a | four\na | five\n");
    log_queue_free(queue);
}

Test(log_queue, holds_a_limited_amount)
{
    struct log_queue *queue = log_queue_new(&style);
    struct log_stream *a = log_queue_open(queue, "a");
    SCOPED_BUFFER line = BUFFER_INIT(LOG_LINE_MAX), out = BUFFER_INIT(2 * LOG_LINE_MAX);
    log_queue_open(queue, "b");
    for (size_t i = 0; i + 1 < LOG_LINE_MAX; i++)
        buffer_append_byte(&line, 'x', NULL);
    for (size_t held = 0; held <= LOG_HELD_MAX; held += line.length) {
        cr_expect(!log_queue_next(queue, 0, &out));
        take(a, buffer_text(&line), 0);
        take(a, "\n", 0);
    }
    cr_expect(log_queue_next(queue, 0, &out));
    cr_expect(!log_queue_next(queue, 0, &out));
    log_queue_free(queue);
}

/* And comes again in the same pieces. */
Test(log_queue, a_line_that_is_too_long_comes_in_pieces)
{
    struct log_queue *queue = log_queue_new(&style);
    struct log_stream *a = log_queue_open(queue, "a");
    SCOPED_BUFFER line = BUFFER_INIT(4 * LOG_LINE_MAX), out = BUFFER_INIT(8 * LOG_LINE_MAX);
    buffer_append_string(&line, "2026-11-20T14:00:02Z ", NULL);
    for (size_t i = 0; i < 5 * LOG_LINE_MAX / 2; i++)
        buffer_append_byte(&line, "\r#"[i % 2], NULL);
    for (int time = 0; time < 2; time++) {
        take(a, buffer_text(&line), 0);
        take(a, "\n", 0);
        log_stream_cut(a);
    }
    take(a, "2026-11-20T14:00:03Z end\n", 0);
    unsigned lines = 0;
    while (log_queue_next(queue, LOG_HOLD_MS, &out))
        lines++;
    cr_expect_eq(lines, 4);
    cr_expect_eq(out.length, 5 * LOG_LINE_MAX / 2 + strlen("a | \n") * 4 + strlen("end"));
    cr_expect_str_eq(buffer_text(&out) + out.length - strlen("a | end\n"), "a | end\n");
    log_queue_free(queue);
}
