/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

struct fixture {
    char path[64];
    struct container_log *log;
};

static void fixture_open(struct fixture *fixture)
{
    snprintf(fixture->path, sizeof fixture->path, "/tmp/node-log-XXXXXX");
    int file = mkstemp(fixture->path);
    cr_assert_geq(file, 0);
    close(file);
    struct error error = ERROR_INIT;
    cr_assert_eq(container_log_open(fixture->path, &fixture->log, &error), 0, "%s", error.message);
}

static void write_text(struct fixture *fixture, enum process_stream stream, const char *text)
{
    container_log_append(fixture->log, stream, text, strlen(text));
}

static void check(const struct fixture *fixture, const struct pod_log_query *query, const char *expected)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    struct error error = ERROR_INIT;
    cr_assert_eq(container_log_read(fixture->path, query, &text, &error), 0, "%s", error.message);
    cr_assert_str_eq(buffer_text(&text), expected);
}

static struct pod_log_query everything(void)
{
    return (struct pod_log_query){.container = "c", .tail_lines = -1, .limit_bytes = -1};
}

Test(node_log, lines_come_back_as_written)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct pod_log_query query = everything();
    write_text(&fixture, PROCESS_STDOUT, "one\ntw");
    write_text(&fixture, PROCESS_STDERR, "error\n");
    write_text(&fixture, PROCESS_STDOUT, "o\n\nunfinished");
    check(&fixture, &query, "one\nerror\ntwo\n\n");
    container_log_free(fixture.log);
    check(&fixture, &query, "one\nerror\ntwo\n\nunfinished");
    unlink(fixture.path);
}

Test(node_log, tail_and_limit)
{
    struct fixture fixture;
    fixture_open(&fixture);
    write_text(&fixture, PROCESS_STDOUT, "one\ntwo\nthree\n");
    struct pod_log_query query = everything();
    query.tail_lines = 2;
    check(&fixture, &query, "two\nthree\n");
    query.tail_lines = 9;
    check(&fixture, &query, "one\ntwo\nthree\n");
    query.tail_lines = 0;
    check(&fixture, &query, "");
    query.tail_lines = -1;
    query.limit_bytes = 6;
    check(&fixture, &query, "one\ntw");
    container_log_free(fixture.log);
    unlink(fixture.path);
}

Test(node_log, since_and_timestamps)
{
    struct fixture fixture;
    fixture_open(&fixture);
    write_text(&fixture, PROCESS_STDOUT, "line\n");
    struct pod_log_query query = everything();
    query.since_ms = clock_now_ms() + 60000;
    check(&fixture, &query, "");
    query.since_ms = clock_now_ms() - 60000;
    check(&fixture, &query, "line\n");
    query.timestamps = true;
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    cr_assert_eq(container_log_read(fixture.path, &query, &text, NULL), 0);
    int64_t written_ms;
    text.data[30] = '\0';
    cr_assert(clock_parse(text.data, &written_ms));
    cr_assert_str_eq(text.data + 31, "line\n");
    container_log_free(fixture.log);
    unlink(fixture.path);
}

Test(node_log, long_lines_are_kept_in_parts)
{
    struct fixture fixture;
    fixture_open(&fixture);
    enum { LENGTH = 3 * CONTAINER_LOG_LINE_MAX + 5 };
    static char line[LENGTH + 2];
    memset(line, 'x', LENGTH);
    line[LENGTH] = '\n';
    write_text(&fixture, PROCESS_STDOUT, line);
    struct pod_log_query query = everything();
    check(&fixture, &query, line);
    container_log_free(fixture.log);
    unlink(fixture.path);
}

Test(node_log, no_file_no_log)
{
    struct pod_log_query query = everything();
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    struct error error = ERROR_INIT;
    cr_assert_eq(container_log_read("/tmp/no-such-log", &query, &text, &error), -1);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND);
}
