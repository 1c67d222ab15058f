/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/step_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/lock.h"
#include "common/log.h"

#define NAME_LENGTH_MAX 128
#define LINE_MAX_BYTES ((size_t)64 << 20)

static struct {
    pthread_mutex_t mutex;
    int file; /* -1: none */
    uint32_t attempt, incarnation, counter;
    char name[NAME_LENGTH_MAX];
} record = {.mutex = PTHREAD_MUTEX_INITIALIZER, .file = -1};

int step_record_open(const char *path, const char *role, int64_t index, uint32_t attempt, uint32_t incarnation,
                     struct error *error)
{
    if (path == NULL)
        return 0;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0)
        return error_set_errno(error, "open %s", path);
    snprintf(record.name, sizeof record.name, "%s-%" PRId64 "-%" PRIu32, role, index, incarnation);
    record.file = file;
    step_record_world(attempt, incarnation, 0);
    return 0;
}

void step_record_close(void)
{
    if (record.file >= 0)
        close(record.file);
    record.file = -1;
}

void step_record_world(uint32_t attempt, uint32_t incarnation, uint32_t counter)
{
    SCOPED_LOCK(&record.mutex);
    record.attempt = attempt;
    record.incarnation = incarnation;
    record.counter = counter;
}

static void begin_line(struct buffer *line, const char *word)
{
    buffer_init(line, LINE_MAX_BYTES);
    SCOPED_LOCK(&record.mutex);
    buffer_format(line, "%s %u.%u.%u %s", word, record.attempt, record.incarnation, record.counter, record.name);
}

static void end_line(struct buffer *line)
{
    buffer_append_byte(line, '\n', NULL);
    if (write(record.file, line->data, line->length) != (ssize_t)line->length) {
        log_warning("the record of steps ends here", "why", strerror(errno), NULL);
        step_record_close();
    }
    buffer_release(line);
}

void step_record_share(const struct sampler *sampler, int64_t step, int64_t data_epoch, int64_t position, int64_t count)
{
    struct buffer line;
    if (record.file < 0 || count == 0)
        return;
    begin_line(&line, "share");
    buffer_format(&line, " %" PRId64 " %" PRId64 " %" PRId64, step, data_epoch, position);
    for (int64_t i = 0; i < count; i++)
        buffer_format(&line, " %" PRId64, sampler_index(sampler, data_epoch, position + i));
    end_line(&line);
}

void step_record_ticket(const char *fate, unsigned worker, int64_t ticket)
{
    struct buffer line;
    if (record.file < 0)
        return;
    begin_line(&line, "ticket");
    buffer_format(&line, " %s %u %" PRId64, fate, worker, ticket);
    end_line(&line);
}

void step_record_server(const char *fate, uint32_t lineage, int64_t number, const char *whose)
{
    struct buffer line;
    if (record.file < 0)
        return;
    begin_line(&line, "server");
    buffer_format(&line, " %s %" PRIu32 " %" PRId64 " %s", fate, lineage, number, whose);
    end_line(&line);
}

void step_record_peer(const char *fate, unsigned seat, int64_t examples)
{
    struct buffer line;
    if (record.file < 0)
        return;
    begin_line(&line, "peer");
    buffer_format(&line, " %s %u %" PRId64, fate, seat, examples);
    end_line(&line);
}

void step_record_checkpoint(int64_t step, const char *directory)
{
    const char *slash = strrchr(directory, '/');
    struct buffer line;
    if (record.file < 0)
        return;
    begin_line(&line, "checkpoint");
    buffer_format(&line, " %" PRId64 " %s", step, slash ? slash + 1 : directory);
    end_line(&line);
}

void step_record_applied(int64_t first, int64_t last)
{
    struct buffer line;
    if (record.file < 0 || last < first)
        return;
    begin_line(&line, "applied");
    buffer_format(&line, " %" PRId64 " %" PRId64 " %" PRId64, first, last, clock_monotonic_ns());
    end_line(&line);
}

void step_record_lost(int64_t updates)
{
    struct buffer line;
    if (record.file < 0)
        return;
    begin_line(&line, "lost");
    buffer_format(&line, " %" PRId64 " %" PRId64, updates, clock_monotonic_ns());
    end_line(&line);
}
