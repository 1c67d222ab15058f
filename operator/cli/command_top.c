/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_follow.h"
#include "operator/cli/terminal.h"
#include "operator/cli/top_table.h"
#include "operator/cli/view_print.h"
#include "operator/kube/informer.h"

#define REFRESH_MS 1000
#define JOB_REFRESH_MS 200
#define SYNC_TIMEOUT_MS 30000

static const struct command_usage usage = {
    .text =
        "usage: cox top [NAME] [options]\n"
        "\n"
        "Shows training jobs live, the fastest first: throughput, time left, and the curve of the loss since the "
        "command\n"
        "was started. With a name it shows that job with its pods, until the job is over. Ctrl-C ends the command. If "
        "the\n"
        "output is not a terminal, or with --once, it prints the present state once.\n"
        "\n"
        "  -A, --all-namespaces   show jobs of all namespaces\n"
        "  -l, --selector TEXT    show jobs with these labels, such as team=vision\n"
        "  --once                 print once\n"
        "\n"
        "Exit code: 0 shown, 1 there is no such job or the cluster did not answer, 2 wrong usage, 130 interrupted.\n",
    .options = "AlOs",
    .names_min = 0,
    .names_max = 1};

/* ---------------------------------------------------------------- all jobs */

struct top {
    const struct command_line *line;
    struct terminal terminal;
    struct top_row *rows;
    unsigned count, room;
};

static struct top_row *row_of(struct top *top, const struct json *job)
{
    for (unsigned i = 0; i < top->count; i++) {
        const struct json *have = top->rows[i].job;
        if (strcmp(json_string_at(have, "metadata.name", ""), json_string_at(job, "metadata.name", "")) == 0 &&
            strcmp(json_string_at(have, "metadata.namespace", ""), json_string_at(job, "metadata.namespace", "")) == 0)
            return &top->rows[i];
    }
    return NULL;
}

static void job_seen(void *context, const char *key, const void *item)
{
    (void)key;
    struct top *top = context;
    struct top_row *row = row_of(top, item);
    if (!row) {
        if (top->count == top->room) {
            top->room = top->room ? 2 * top->room : 64;
            top->rows = memory_resize(top->rows, top->room, sizeof *top->rows);
        }
        row = &top->rows[top->count++];
        *row = (struct top_row){.job = NULL};
    }
    SCOPED_JSON *shown = json_copy(item);
    if (top->line->kept)
        job_mark_interrupted(shown, top->line->again);
    top_row_take(row, shown);
}

static void job_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    job_seen(context, key, item);
}

static void job_gone(void *context, const char *key, const void *item)
{
    (void)key;
    struct top *top = context;
    struct top_row *row = row_of(top, item);
    if (!row)
        return;
    top_row_release(row);
    *row = top->rows[--top->count];
}

static void show(struct top *top)
{
    SCOPED_BUFFER text = BUFFER_INIT(TOP_TEXT_MAX);
    top_table_sort(top->rows, top->count);
    top_table_print(top->rows, top->count, top->terminal.live ? top->terminal.width : UINT_MAX,
                    top->line->all_namespaces, &text);
    terminal_draw(&top->terminal, buffer_text(&text));
}

static int await_jobs(struct cluster *cluster, const struct informer *jobs, struct error *error)
{
    int64_t end_ms = clock_monotonic_ms() + SYNC_TIMEOUT_MS;
    struct access access = {0};
    while (!informer_synced(jobs) && !cluster->interrupted) {
        if (event_loop_turn(cluster->loop, JOB_REFRESH_MS, error) < 0 ||
            access_check(&access, jobs, clock_monotonic_ms(), error) < 0)
            return -1;
        if (clock_monotonic_ms() > end_ms)
            return error_set(error, ERROR_TIMEOUT, "the API server did not list its jobs within %d s",
                             SYNC_TIMEOUT_MS / 1000);
    }
    return 0;
}

static int show_jobs(struct cluster *cluster, const struct informer *jobs, struct top *top, struct error *error)
{
    if (await_jobs(cluster, jobs, error) < 0)
        return -1;
    show(top);
    int64_t shown_ms = clock_monotonic_ms();
    struct access access = {0};
    while (top->terminal.live && !top->line->once && !top->line->kept && !cluster->interrupted) {
        if (event_loop_turn(cluster->loop, REFRESH_MS, error) < 0 ||
            access_check(&access, jobs, clock_monotonic_ms(), error) < 0)
            return -1;
        if (clock_monotonic_ms() - shown_ms < REFRESH_MS)
            continue;
        show(top);
        shown_ms = clock_monotonic_ms();
    }
    return 0;
}

static int top_jobs(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    struct top top = {.line = line};
    terminal_init(&top.terminal);
    struct informer_options options = {
        .resource = {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL},
        .name_space = line->all_namespaces ? NULL : cluster->name_space,
        .label_selector = line->selector,
        .parse = informer_item_copy,
        .item_free = informer_item_free,
        .on_added = job_seen,
        .on_changed = job_changed,
        .on_deleted = job_gone,
        .context = &top,
    };
    struct informer *jobs = informer_start(cluster->client, &options);
    int status = show_jobs(cluster, jobs, &top, error);
    informer_free(jobs);
    for (unsigned i = 0; i < top.count; i++)
        top_row_release(&top.rows[i]);
    free(top.rows);
    return status;
}

/* ---------------------------------------------------------------- one job */

static void nothing(void *context)
{
    (void)context;
}

static void print_once(const struct terminal *terminal, const struct job_view *view)
{
    SCOPED_BUFFER text = BUFFER_INIT(TOP_TEXT_MAX);
    view_print_block(view, terminal->live ? terminal->width : UINT_MAX, terminal->colour, &text);
    fputs(buffer_text(&text), stdout);
}

/* Runs until the job is over and its log is read; once: until there is something to show. */
static int follow_job(struct cluster *cluster, struct job_follow *follow, struct job_view *view, bool once,
                      struct error *error)
{
    struct terminal terminal;
    terminal_init(&terminal);
    once |= !terminal.live;
    while (!cluster->interrupted) {
        if (event_loop_turn(cluster->loop, JOB_REFRESH_MS, error) < 0 ||
            job_follow_check(follow, "cox top", &terminal, error) < 0)
            return -1;
        bool enough = once ? *view->state != '\0' : job_follow_is_over(follow);
        if (enough)
            break;
        if (!once)
            terminal_show(&terminal, view, clock_now_ms());
    }
    if (once)
        print_once(&terminal, view);
    else
        terminal_keep(&terminal, view, clock_now_ms());
    return 0;
}

/* What a run has left does not change. */
static void show_kept(struct json *job, const char *again, struct job_view *view)
{
    struct terminal terminal;
    terminal_init(&terminal);
    job_mark_interrupted(job, again);
    job_view_take_job(view, job);
    print_once(&terminal, view);
}

static int top_job(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    struct resource_path path = cluster_job_path(cluster, line->names[0]);
    SCOPED_JSON *job = NULL;
    int status = 0;
    if (cluster_get(cluster, &path, &job, error) < 0)
        return -1;
    struct job_view *view = memory_allocate(1, sizeof *view);
    job_view_init(view, cluster->name_space, line->names[0]);
    if (cluster->kept) {
        show_kept(job, cluster->again, view);
    } else {
        job_view_take_job(view, job);
        struct job_follow *follow = job_follow_start(cluster->client, view, nothing, NULL);
        status = follow_job(cluster, follow, view, line->once, error);
        job_follow_free(follow);
    }
    job_view_release(view);
    free(view);
    return status;
}

static int top(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    return line->name_count > 0 ? top_job(cluster, line, error) : top_jobs(cluster, line, error);
}

int command_top(int count, char **words)
{
    return command_in_cluster(count, words, &usage, top);
}
