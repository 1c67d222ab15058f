/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_read.h"

#include <stdlib.h>

#include "common/memory.h"
#include "operator/cli/log_source.h"

#define PATH_MAX_LENGTH 4096

void log_texts_release(struct log_texts *texts)
{
    for (unsigned i = 0; i < texts->count; i++)
        buffer_release(&texts->texts[i]);
    free(texts->texts);
    free(texts->logs);
}

static int read_log(struct cluster *cluster, const struct command_line *line, const struct json *pod,
                    struct log_texts *texts, struct error *error)
{
    SCOPED_BUFFER path;
    buffer_init(&path, PATH_MAX_LENGTH);
    struct buffer *text = &texts->texts[texts->count];
    struct log_text *log = &texts->logs[texts->count++];
    buffer_init(text, CLUSTER_ANSWER_MAX);
    log_speaker(pod, log->speaker);
    int result = log_path(line, pod, false, NULL, &path, error);
    if (result == 0)
        result = cluster_read(cluster, buffer_text(&path), text, error);
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
        if (cause.http_status == 401 || cause.http_status == 403) {
            *error = cause;
            return -1;
        }
        texts->unread++;
        unread(texts->logs[texts->count - 1].speaker, pod, &cause);
    }
    return 0;
}
