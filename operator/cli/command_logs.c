/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cli/command.h"
#include "operator/cli/log_absent.h"
#include "operator/cli/log_follow.h"
#include "operator/cli/log_read.h"
#include "operator/cli/terminal.h"

#define ABSENT_MAX_LENGTH 65536

static const struct command_usage usage = {
    .text = "usage: cox logs NAME [options]\n"
            "\n"
            "Prints the logs of all pods of the job as one, ordered by time. Each line begins with the role and index "
            "of its\n"
            "pod (worker-0, ps-1; in colour on a terminal unless NO_COLOR is set), unless both --role and --index are "
            "given.\n"
            "Pods without a log are named on stderr, and the logs of the others are printed.\n"
            "\n"
            "  -f, --follow       print new lines until the job is over, also of pods that are created later\n"
            "  --role ROLE        chief, worker, ps or evaluator only\n"
            "  --index N          that index only\n"
            "  --container NAME   default: trainer, else the pod's first\n"
            "  --tail N           the last N lines of each\n"
            "  --timestamps       with the time of each line\n"
            "  --all-attempts     also pods that were replaced and are still there\n"
            "\n"
            "Exit code: 0 printed, 1 there is no such job or pod, or a log could not be read, 2 wrong usage, 130 "
            "interrupted.\n",
    .options = "friCtTas",
    .names_min = 1,
    .names_max = 1};

static struct log_style style_of(const struct command_line *line)
{
    struct terminal terminal;
    terminal_init(&terminal);
    return (struct log_style){
        .prefix = !(line->role && line->index >= 0), .colour = terminal.colour, .timestamps = line->timestamps};
}

static void tell_unread(const char *speaker, const struct json *pod, const struct error *cause)
{
    fprintf(stderr, "cox logs: %s: pod %s: %s\n", speaker, json_string_at(pod, "metadata.name", ""), cause->message);
}

static void print_texts(struct log_texts *texts, struct log_style style)
{
    SCOPED_BUFFER out = BUFFER_INIT(2 * CLUSTER_ANSWER_MAX);
    style.width = log_texts_width(texts);
    while (log_merge_line(&style, texts->logs, texts->count, &out)) {
        fwrite(buffer_text(&out), 1, out.length, stdout);
        buffer_clear(&out);
    }
}

static void tell_absent(const struct command_line *line, const struct json *job, const struct json *pods)
{
    SCOPED_BUFFER text = BUFFER_INIT(ABSENT_MAX_LENGTH);
    log_absent_print(line, job, pods, &text);
    fputs(buffer_text(&text), stderr);
}

static int print_logs(struct cluster *cluster, const struct command_line *line, const struct json *pods,
                      struct error *error)
{
    SCOPED(log_texts_release) struct log_texts texts = {.count = 0};
    if (log_texts_read(cluster, line, pods, tell_unread, &texts, error) < 0)
        return -1;
    print_texts(&texts, style_of(line));
    return texts.unread > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int logs(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    struct resource_path path = cluster_job_path(cluster, line->names[0]);
    SCOPED_JSON *job = NULL;
    SCOPED_JSON *pods = NULL;
    if (cluster_get(cluster, &path, &job, error) < 0 || log_place_check(line, job, error) < 0 ||
        cluster_pods(cluster, line->names[0], &pods, error) < 0)
        return -1;
    tell_absent(line, job, pods);
    if (!line->follow)
        return print_logs(cluster, line, pods, error);
    struct log_style style = style_of(line);
    return log_follow(cluster, line, &style, error);
}

int command_logs(int count, char **words)
{
    return command_in_cluster(count, words, &usage, logs);
}
