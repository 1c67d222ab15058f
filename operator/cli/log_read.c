/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_read.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/log_source.h"

#define PATH_MAX_LENGTH 4096

void log_texts_release(struct log_texts *texts)
{
    for (unsigned i = 0; i < texts->count; i++)
        buffer_release(&texts->texts[i]);
    free(texts->texts);
    free(texts->logs);
}

int log_text_read(struct cluster *cluster, const struct command_line *line, const struct json *pod, const char *since,
                  struct buffer *text, struct error *error)
{
    SCOPED_BUFFER path = BUFFER_INIT(PATH_MAX_LENGTH);
    buffer_init(text, CLUSTER_ANSWER_MAX);
    if (log_path(line, pod, false, since, &path, error) < 0)
        return -1;
    return cluster_read(cluster, buffer_text(&path), text, error);
}

static int read_log(struct cluster *cluster, const struct command_line *line, const struct json *pod,
                    struct log_texts *texts, struct error *error)
{
    struct buffer *text = &texts->texts[texts->count];
    struct log_text *log = &texts->logs[texts->count++];
    log_speaker(pod, log->speaker);
    int result = log_text_read(cluster, line, pod, NULL, text, error);
    log->text = buffer_text(text);
    log->end = log->text + text->length;
    return result;
}

int log_texts_read(struct cluster *cluster, const struct command_line *line, const struct json *pods,
                   log_unread *unread, struct log_texts *texts, struct error *error)
{
    texts->texts = memory_allocate(json_count(pods) + 1, sizeof *texts->texts);
    texts->logs = memory_allocate(json_count(pods) + 1, sizeof *texts->logs);
    for (const struct json *pod = json_first(pods); pod && !cluster->interrupted; pod = json_next(pod)) {
        struct error cause = ERROR_INIT;
        if (!log_is_wanted(line, pod) || read_log(cluster, line, pod, texts, &cause) == 0)
            continue;
        if (access_is_denied(&cause)) {
            *error = cause;
            return -1;
        }
        texts->unread++;
        unread(texts->logs[texts->count - 1].speaker, pod, &cause);
    }
    return 0;
}

unsigned log_texts_width(const struct log_texts *texts)
{
    size_t width = 0;
    for (unsigned i = 0; i < texts->count; i++)
        if (strlen(texts->logs[i].speaker) > width)
            width = strlen(texts->logs[i].speaker);
    return (unsigned)width;
}
