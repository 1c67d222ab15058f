/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/memory.h"
#include "operator/cli/control_plane.h"
#include "operator/cli/run_list.h"
#include "operator/cli/run_print.h"
#include "operator/cli/ui/version.h"

#define READ_MS 1000
#define MEASURE_AGAIN_MS 30000 /* the disk usage of a run that goes on */
#define MEASURE_MS 200         /* after so long, the other runs are measured with the next list */
#define CELL_MAX 512
#define ROWS_MAX (16 * 1024 * 1024)

/* What a run takes on the disk. */
struct measure {
    char *directory;
    int64_t bytes, updated_ms, measured_ms;
};

/* A run whose jobs are looked at. */
struct opened {
    char *run, *directory;       /* run: the name in its row (run_of); directory NULL: a free place */
    struct control_plane *plane; /* NULL: that of its `cox run`, which goes on */
    struct kube_config config;
    struct kube_client *client;
    int64_t used_ms;
};

struct ui_runs {
    struct event_loop *loop;
    struct opened opened[UI_RUNS_OPEN_MAX];
    struct measure *measures;
    size_t measure_count;
    char *list; /* {"rows": […], "unlisted": N} of the last reading; NULL: none yet */
    uint64_t version;
    int64_t read_ms;
};

struct ui_runs *ui_runs_new(struct event_loop *loop)
{
    struct ui_runs *runs = memory_allocate(1, sizeof *runs);
    *runs = (struct ui_runs){.loop = loop, .version = random_version()};
    return runs;
}

static void opened_end(struct opened *opened)
{
    if (opened->client)
        kube_client_free(opened->client);
    kube_config_release(&opened->config);
    if (opened->plane)
        control_plane_end(opened->plane);
    free(opened->run);
    free(opened->directory);
    *opened = (struct opened){.directory = NULL};
}

void ui_runs_free(struct ui_runs *runs)
{
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX; i++)
        if (runs->opened[i].directory)
            opened_end(&runs->opened[i]);
    for (size_t i = 0; i < runs->measure_count; i++)
        free(runs->measures[i].directory);
    free(runs->measures);
    free(runs->list);
    free(runs);
}

/* ---------------------------------------------------------------- the list */

/* Returns the folder of all runs without symbolic links, as directories in a run_list are; free it with free(). */
static char *real_folder(void)
{
    char *folder = run_list_folder(), *whole = realpath(folder, NULL);
    if (!whole)
        return folder;
    free(folder);
    return whole;
}

/* Returns the directory below the folder of all runs, such as "default-digits" or "demo/undisturbed". Unlike a label it stays as it is when another
 * run gets the same job name. */
static const char *run_of(const char *folder, const struct run_entry *entry)
{
    size_t length = strlen(folder);
    bool is_below = strncmp(entry->directory, folder, length) == 0 && entry->directory[length] == '/';
    return entry->directory + (is_below ? length + 1 : 0);
}

static struct opened *opened_of(struct ui_runs *runs, const char *directory)
{
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX; i++)
        if (runs->opened[i].directory && strcmp(runs->opened[i].directory, directory) == 0)
            return &runs->opened[i];
    return NULL;
}

/* Returns the bytes on the disk, or -1 if that is not known yet. `deadline_ms`: nothing is measured after it. */
static int64_t bytes_of(struct ui_runs *runs, const struct run_entry *entry, int64_t deadline_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    struct measure *measure = NULL;
    for (size_t i = 0; i < runs->measure_count && !measure; i++)
        if (strcmp(runs->measures[i].directory, entry->directory) == 0)
            measure = &runs->measures[i];
    bool is_known = measure && (measure->updated_ms == entry->record.updated_ms ||
                                now_ms - measure->measured_ms < MEASURE_AGAIN_MS);
    if (is_known || now_ms > deadline_ms)
        return measure ? measure->bytes : -1;
    if (!measure) {
        runs->measures = memory_resize(runs->measures, runs->measure_count + 1, sizeof *runs->measures);
        measure = &runs->measures[runs->measure_count++];
        *measure = (struct measure){.directory = memory_copy_string(entry->directory)};
    }
    measure->bytes = directory_bytes(entry->directory);
    measure->updated_ms = entry->record.updated_ms;
    measure->measured_ms = now_ms;
    return measure->bytes;
}

static void set_time(struct json *row, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT_MAX] = "";
    if (ms > 0)
        clock_format_seconds(ms, text);
    json_set_string(row, key, text);
}

/* The score in words, and as a number to sort by. */
static void set_score(struct json *row, const struct run_record *record)
{
    SCOPED_BUFFER text;
    double score = isfinite(record->best)       ? record->best
                   : isfinite(record->accuracy) ? record->accuracy
                                                : record->validation_loss;
    buffer_init(&text, CELL_MAX);
    run_record_score(record, &text);
    json_set_string(row, "SCORE", buffer_text(&text));
    if (isfinite(score))
        json_set_number(row, "score", score);
}

static void set_bytes(struct json *row, int64_t bytes)
{
    SCOPED_BUFFER text;
    buffer_init(&text, CELL_MAX);
    if (bytes >= 0)
        run_print_bytes(bytes, &text);
    json_set_integer(row, "disk", bytes);
    json_set_string(row, "DISK", buffer_text(&text));
}

/* A control plane that was started here does not mean that the run goes on. */
static enum run_state state_of(struct ui_runs *runs, const struct run_entry *entry)
{
    const struct opened *opened = opened_of(runs, entry->directory);
    bool goes_on = !(opened && opened->plane);
    return entry->record.state == RUN_RUNNING && !goes_on ? RUN_INTERRUPTED : entry->record.state;
}

/* The names of the fields are those of documents.h. */
static struct json *row_of(struct ui_runs *runs, const char *folder, const struct run_entry *entry, int64_t deadline_ms)
{
    const struct run_record *record = &entry->record;
    enum run_state state = state_of(runs, entry);
    struct json *row = json_new_object();
    json_set_string(row, "kind", record->is_sweep ? "sweep" : "job");
    json_set_string(row, "run", run_of(folder, entry));
    json_set_string(row, "NAMESPACE", record->name_space);
    json_set_string(row, "NAME", record->name);
    json_set_string(row, "label", entry->label);
    json_set_string(row, "STATE", run_state_word(state));
    json_set_integer(row, "step", record->step);
    json_set_integer(row, "total", record->total_steps);
    if (isfinite(record->loss)) {
        SCOPED_FREE char *loss = memory_format("%.4f", record->loss);
        json_set_string(row, "LOSS", loss);
    }
    set_score(row, record);
    set_time(row, "created", record->started_ms);
    set_time(row, "finished", state == RUN_RUNNING ? 0 : record->updated_ms);
    set_bytes(row, bytes_of(runs, entry, deadline_ms));
    return row;
}

static int read_runs(struct ui_runs *runs, struct error *error)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    SCOPED_FREE char *folder = real_folder();
    SCOPED_JSON *head = json_new_object();
    SCOPED_BUFFER text;
    int64_t now_ms = clock_monotonic_ms(), unlisted = 0;
    buffer_init(&text, ROWS_MAX);
    if (run_list_read(NULL, &list, error) < 0)
        return -1;
    struct json *rows = json_set_array(head, "rows");
    for (size_t i = 0; i < list.count; i++)
        if (*list.entries[i].trouble)
            unlisted++;
        else
            json_append(rows, row_of(runs, folder, &list.entries[i], now_ms + MEASURE_MS));
    json_set_integer(head, "unlisted", unlisted);
    if (json_print(head, &text, error) < 0)
        return -1;
    runs->read_ms = now_ms;
    if (runs->list && strcmp(runs->list, buffer_text(&text)) == 0)
        return 0;
    free(runs->list);
    runs->list = buffer_take(&text);
    runs->version++;
    return 0;
}

int ui_runs_write(struct ui_runs *runs, uint64_t version, struct buffer *out, struct error *error)
{
    if ((!runs->list || clock_monotonic_ms() - runs->read_ms >= READ_MS) && read_runs(runs, error) < 0)
        return -1;
    bool whole = version != runs->version;
    SCOPED_FREE char *head =
        memory_format("{\"version\":%" PRIu64 ",\"synced\":true,\"kept\":true,\"runs\":true,\"gone\":[],\"whole\":%s,",
                      runs->version, whole ? "true" : "false");
    if (buffer_append_string(out, head, error) < 0)
        return -1;
    return buffer_append_string(out, whole ? runs->list + 1 : "\"rows\":[]}", error); /* without its first brace */
}

/* ---------------------------------------------------------------- one run */

/* Returns the run's directory; free it with free(). */
static char *directory_of(const char *run, struct error *error)
{
    SCOPED(run_list_release) struct run_list list = {.count = 0};
    SCOPED_FREE char *folder = real_folder();
    if (run_list_read(NULL, &list, error) < 0)
        return NULL;
    for (size_t i = 0; i < list.count; i++)
        if (strcmp(run_of(folder, &list.entries[i]), run) == 0)
            return memory_copy_string(list.entries[i].directory);
    error_set(error, ERROR_NOT_FOUND, "There is no such run on this machine any more: go back to the list.");
    error->http_status = 404;
    return NULL;
}

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
    char *directory = directory_of(run, error);
    if (!directory)
        return NULL;
    struct opened *opened = free_place(runs);
    opened->run = memory_copy_string(run);
    opened->directory = directory;
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
    *ret_run = (struct ui_run){.client = opened->client, .directory = opened->directory, .kept = opened->plane != NULL};
    return 0;
}

void ui_runs_close(struct ui_runs *runs, const char *run)
{
    struct opened *opened = opened_run(runs, run);
    if (opened)
        opened_end(opened);
}

void ui_runs_work(struct ui_runs *runs)
{
    int64_t now_ms = clock_monotonic_ms();
    for (size_t i = 0; i < UI_RUNS_OPEN_MAX; i++)
        if (runs->opened[i].directory && now_ms - runs->opened[i].used_ms >= UI_RUN_IDLE_MS)
            opened_end(&runs->opened[i]);
}
