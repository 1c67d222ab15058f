/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/runs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "operator/cli/control_plane.h"
#include "operator/cli/run_list.h"
#include "operator/cli/run_mark.h"
#include "operator/cli/ui/run_rows.h"

/* A run whose jobs are looked at. */
struct opened {
    char *run, *directory;       /* run: the name in its row; directory NULL: a free place */
    struct control_plane *plane; /* NULL: that of its `cox run`, which goes on */
    struct kube_config config;
    struct kube_client *client;
    int64_t used_ms;
    struct run_record record;
};

struct ui_runs {
    struct event_loop *loop;
    struct opened opened[UI_RUNS_OPEN_MAX];
    struct run_rows *rows;
};

static bool is_shown(void *context, const char *directory)
{
    const struct ui_runs *runs = context;
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX; i++)
        if (runs->opened[i].directory && strcmp(runs->opened[i].directory, directory) == 0)
            return runs->opened[i].plane != NULL;
    return false;
}

struct ui_runs *ui_runs_new(struct event_loop *loop)
{
    struct ui_runs *runs = memory_allocate(1, sizeof *runs);
    *runs = (struct ui_runs){.loop = loop, .rows = run_rows_new(is_shown, runs)};
    return runs;
}

static void opened_end(struct opened *opened)
{
    if (opened->client)
        kube_client_free(opened->client);
    kube_config_release(&opened->config);
    if (opened->plane)
        control_plane_end(opened->plane);
    run_record_release(&opened->record);
    free(opened->run);
    free(opened->directory);
    *opened = (struct opened){.directory = NULL};
}

void ui_runs_free(struct ui_runs *runs)
{
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX; i++)
        if (runs->opened[i].directory)
            opened_end(&runs->opened[i]);
    run_rows_free(runs->rows);
    free(runs);
}

void ui_runs_read(struct ui_runs *runs)
{
    run_rows_read(runs->rows, NULL);
}

uint64_t ui_runs_version(const struct ui_runs *runs)
{
    return run_rows_version(runs->rows);
}

int ui_runs_write(struct ui_runs *runs, uint64_t version, struct buffer *out, struct error *error)
{
    return run_rows_write(runs->rows, version, out, error);
}

/* ---------------------------------------------------------------- one run */

/* Returns a free place; if there is none, ends the control plane that was not used for longest. */
static struct opened *free_place(struct ui_runs *runs)
{
    struct opened *oldest = &runs->opened[0];
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX && oldest->directory; i++)
        if (!runs->opened[i].directory || runs->opened[i].used_ms < oldest->used_ms)
            oldest = &runs->opened[i];
    if (oldest->directory)
        opened_end(oldest);
    return oldest;
}

/* Starts a control plane, unless the run goes on and has one (ERROR_UNAVAILABLE), and connects to it. */
static int connect_to(struct ui_runs *runs, struct opened *opened, struct error *error)
{
    struct control_plane_options options = {.state_directory = opened->directory, .kept = true};
    struct kube_client_options how = {.user_agent = "cox", .http2 = true};
    struct error cause = ERROR_INIT;
    SCOPED_FREE char *kubeconfig = memory_format("%s/" STATE_KUBECONFIG, opened->directory);
    if (control_plane_start(runs->loop, &options, &opened->plane, &cause) < 0 &&
        (cause.kind != ERROR_UNAVAILABLE || access(kubeconfig, R_OK) < 0)) {
        *error = cause;
        return -1;
    }
    if (kube_config_load(kubeconfig, NULL, &opened->config, error) < 0)
        return -1;
    return kube_client_new(runs->loop, &opened->config, &how, &opened->client, error);
}

static struct opened *opened_run(struct ui_runs *runs, const char *run)
{
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX; i++)
        if (runs->opened[i].directory && strcmp(runs->opened[i].run, run) == 0)
            return &runs->opened[i];
    return NULL;
}

/* Opens a run that is not open yet; NULL: it fails. */
static struct opened *open_run(struct ui_runs *runs, const char *run, struct error *error)
{
    const char *directory = run_rows_directory(runs->rows, run, error);
    if (!directory)
        return NULL;
    struct opened *opened = free_place(runs);
    opened->run = memory_copy_string(run);
    opened->directory = memory_copy_string(directory);
    (void)run_record_read(directory, &opened->record, NULL); /* one that is damaged has no command */
    if (connect_to(runs, opened, error) == 0)
        return opened;
    opened_end(opened);
    return NULL;
}

int ui_runs_open(struct ui_runs *runs, const char *run, struct ui_run *ret_run, struct error *error)
{
    struct opened *opened = opened_run(runs, run);
    if (!opened)
        opened = open_run(runs, run, error);
    if (!opened)
        return -1;
    opened->used_ms = clock_monotonic_ms();
    *ret_run = (struct ui_run){.client = opened->client,
                               .directory = opened->directory,
                               .kept = opened->plane != NULL,
                               .again = opened->record.command};
    return 0;
}

void ui_runs_close(struct ui_runs *runs, const char *run)
{
    struct opened *opened = opened_run(runs, run);
    if (opened)
        opened_end(opened);
}

int ui_runs_delete(struct ui_runs *runs, const char *run, struct error *error)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    const struct run_entry *entry;
    bool gone;
    const char *directory = run_rows_directory(runs->rows, run, error);
    if (!directory)
        return -1;
    ui_runs_close(runs, run);
    if (run_list_read(NULL, &list, error) < 0 || run_list_find(&list, directory, &entry, error) < 0)
        return -1;
    SCOPED_FREE char *in_list = run_list_user_of(&list, entry);
    SCOPED_FREE char *user = in_list ? NULL : run_mark_user(directory);
    if (entry->in_use)
        return error_set(error, ERROR_INVALID, "%s is in use: end its cox run, or another cox ui, first", entry->label);
    if (in_list || user)
        return error_set(error, ERROR_INVALID,
                         "%s stays: the run %s was given a directory in it by --volume; delete that run first",
                         entry->label, in_list ? in_list : user);
    return state_directory_delete(directory, &gone, error);
}

void ui_runs_work(struct ui_runs *runs)
{
    int64_t now_ms = clock_monotonic_ms();
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX; i++)
        if (runs->opened[i].directory && now_ms - runs->opened[i].used_ms >= UI_RUN_IDLE_MS)
            opened_end(&runs->opened[i]);
}
