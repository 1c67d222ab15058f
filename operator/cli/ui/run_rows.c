/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/run_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/memory.h"
#include "operator/cli/run_list.h"
#include "operator/cli/run_print.h"
#include "operator/cli/ui/documents.h"
#include "operator/cli/ui/version.h"
#include "operator/kube/hash_map.h"

#define READ_MS 300
#define READ_PAUSE_MAX_MS 5000
#define READ_SHARE 4           /* after a reading, the pause is so many times as long */
#define MEASURE_AGAIN_MS 30000 /* the disk usage of a run that goes on */
#define MEASURE_MS 100         /* after so long, the other runs are measured with the next list */
#define CELL_MAX 512
#define ROW_MAX (16 * 1024)

struct row {
    char *directory, *text; /* text: JSON */
    char *key;              /* by which the page knows the row */
    char *label;
    uint64_t version;
    enum run_state state;
    bool goes_on;
    int64_t bytes, bytes_in_text;    /* on the disk; -1: not known yet */
    int64_t updated_ms, measured_ms; /* when the run had last changed when it was measured, and when that was */
    const struct run_entry *entry;
};

struct run_rows {
    bool (*is_shown)(void *context, const char *directory);
    void *context;
    struct run_list list;
    struct hash_map rows;            /* by `run` */
    uint64_t version, whole_version; /* pages with a version before whole_version get all rows: some are gone */
    int64_t unlisted, next_ms;       /* next_ms: when the directories may be read again; 0: they were not read yet */
};

struct run_rows *run_rows_new(bool (*is_shown)(void *context, const char *directory), void *context)
{
    struct run_rows *rows = memory_allocate(1, sizeof *rows);
    uint64_t version = random_version();
    *rows = (struct run_rows){.is_shown = is_shown, .context = context, .version = version, .whole_version = version};
    hash_map_init(&rows->rows);
    return rows;
}

static void row_free(void *item)
{
    struct row *row = item;
    free(row->directory);
    free(row->text);
    free(row->key);
    free(row->label);
    free(row);
}

void run_rows_free(struct run_rows *rows)
{
    hash_map_release(&rows->rows, row_free);
    run_list_release(&rows->list);
    free(rows);
}

/* ---------------------------------------------------------------- one row */

static void set_time(struct json *row, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT_MAX] = "";
    if (ms > 0)
        clock_format_seconds(ms, text);
    json_set_string(row, key, text);
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

static const char *kind_of(const struct run_record *record)
{
    return record->is_sweep ? "sweep" : "job";
}

/* The names of the fields are those of documents.h. */
static struct json *row_json(const char *run, const struct row *row)
{
    const struct run_record *record = &row->entry->record;
    struct json *object = json_new_object();
    json_set_string(object, "kind", kind_of(record));
    json_set_string(object, "run", run);
    json_set_string(object, "NAMESPACE", record->name_space);
    json_set_string(object, "NAME", record->name);
    json_set_string(object, "label", row->label);
    json_set_string(object, "STATE", run_state_word(row->state));
    json_set_integer(object, "step", record->step);
    json_set_integer(object, "total", record->total_steps);
    if (isfinite(record->loss)) {
        SCOPED_FREE char *loss = memory_format("%.4f", record->loss);
        json_set_string(object, "LOSS", loss);
    }
    ui_set_score(object, record);
    set_time(object, "created", record->started_ms);
    set_time(object, "finished", row->goes_on ? 0 : record->updated_ms);
    set_bytes(object, row->bytes);
    return object;
}

static bool is_up_to_date(const struct row *row, enum run_state state, bool goes_on)
{
    return row->text && row->entry->is_same && row->state == state && row->goes_on == goes_on &&
           row->bytes == row->bytes_in_text && strcmp(row->label, row->entry->label) == 0;
}

/* Writes the row anew if anything in it has changed. */
static void write_row(struct run_rows *rows, const char *run, struct row *row)
{
    const struct run_record *record = &row->entry->record;
    /* A control plane that was started here does not mean that the run goes on. */
    bool goes_on = row->entry->goes_on && !rows->is_shown(rows->context, row->entry->directory);
    enum run_state state = record->state == RUN_RUNNING && !goes_on ? RUN_INTERRUPTED : record->state;
    SCOPED_BUFFER text = BUFFER_INIT(ROW_MAX);
    if (is_up_to_date(row, state, goes_on))
        return;
    free(row->label);
    row->label = memory_copy_string(row->entry->label);
    row->state = state;
    row->goes_on = goes_on;
    row->bytes_in_text = row->bytes;
    SCOPED_JSON *object = row_json(run, row);
    SCOPED_FREE char *key = memory_format("%s/%s/%s", kind_of(record), record->name_space, record->name);
    if (json_print(object, &text, NULL) < 0 || (row->text && strcmp(row->text, buffer_text(&text)) == 0))
        return;
    row->version = ++rows->version;
    if (row->key && strcmp(row->key, key) != 0)
        rows->whole_version = row->version; /* another job has the directory now */
    free(row->text);
    row->text = buffer_take(&text);
    free(row->key);
    row->key = memory_copy_string(key);
}

/* ---------------------------------------------------------------- disk usage */

static int newest_first(const void *left, const void *right)
{
    const struct row *a = *(const struct row *const *)left, *b = *(const struct row *const *)right;
    int64_t left_ms = a->entry->record.started_ms, right_ms = b->entry->record.started_ms;
    return left_ms < right_ms ? 1 : left_ms > right_ms ? -1 : 0;
}

static bool is_to_be_measured(const struct row *row, int64_t now_ms)
{
    return row->bytes < 0 ||
           (row->updated_ms != row->entry->record.updated_ms && now_ms - row->measured_ms >= MEASURE_AGAIN_MS);
}

static void measure(struct run_rows *rows)
{
    int64_t begun_ms = clock_monotonic_ms();
    struct row **wanted = memory_allocate(rows->rows.count + 1, sizeof *wanted);
    size_t count = 0;
    void *item;
    for (size_t at = 0; hash_map_next(&rows->rows, &at, NULL, &item);)
        if (is_to_be_measured(item, begun_ms))
            wanted[count++] = item;
    qsort(wanted, count, sizeof *wanted, newest_first);
    for (size_t i = 0; i < count && clock_monotonic_ms() - begun_ms < MEASURE_MS; i++) {
        wanted[i]->bytes = directory_bytes(wanted[i]->directory);
        wanted[i]->updated_ms = wanted[i]->entry->record.updated_ms;
        wanted[i]->measured_ms = begun_ms;
    }
    free(wanted);
}

/* ---------------------------------------------------------------- all rows */

/* Returns the directory below the folder of all runs, such as "default-digits" or "demo/undisturbed". Unlike a label it stays as it is when
 * another run gets the same job name. */
static const char *run_of(const char *folder, const struct run_entry *entry)
{
    size_t length = strlen(folder);
    bool is_below = strncmp(entry->directory, folder, length) == 0 && entry->directory[length] == '/';
    return entry->directory + (is_below ? length + 1 : 0);
}

/* Moves the rows of runs that are still there, with what is known of them, into a new map, and drops the others. */
static void take_list(struct run_rows *rows)
{
    SCOPED_FREE char *folder = run_list_folder();
    SCOPED_FREE char *real = realpath(folder, NULL); /* as directories in the list are */
    struct hash_map before = rows->rows;
    hash_map_init(&rows->rows);
    rows->unlisted = 0;
    for (size_t i = 0; i < rows->list.count; i++) {
        const struct run_entry *entry = &rows->list.entries[i];
        const char *run = run_of(real ? real : folder, entry);
        if (entry->trouble) {
            rows->unlisted++;
            continue;
        }
        struct row *row = hash_map_remove(&before, run);
        if (!row) {
            row = memory_allocate(1, sizeof *row);
            *row = (struct row){.directory = memory_copy_string(entry->directory), .bytes = -1};
        }
        row->entry = entry;
        hash_map_set(&rows->rows, run, row);
    }
    if (before.count > 0)
        rows->whole_version = ++rows->version;
    hash_map_release(&before, row_free);
}

static int64_t pause_after(int64_t read_ms)
{
    int64_t pause_ms = READ_SHARE * read_ms;
    if (pause_ms < READ_MS)
        return READ_MS;
    return pause_ms > READ_PAUSE_MAX_MS ? READ_PAUSE_MAX_MS : pause_ms;
}

int run_rows_read(struct run_rows *rows, struct error *error)
{
    int64_t begun_ms = clock_monotonic_ms();
    const char *run;
    void *item;
    if (begun_ms < rows->next_ms)
        return 0;
    if (run_list_read_again(&rows->list, error) < 0)
        return -1;
    take_list(rows);
    int64_t read_ms = clock_monotonic_ms() - begun_ms;
    measure(rows);
    for (size_t at = 0; hash_map_next(&rows->rows, &at, &run, &item);)
        write_row(rows, run, item);
    rows->next_ms = clock_monotonic_ms() + pause_after(read_ms);
    return 0;
}

uint64_t run_rows_version(const struct run_rows *rows)
{
    return rows->version;
}

int run_rows_write(struct run_rows *rows, uint64_t version, struct buffer *out, struct error *error)
{
    const char *before = "";
    void *item;
    if (run_rows_read(rows, error) < 0)
        return -1;
    bool whole = version < rows->whole_version || version > rows->version;
    SCOPED_FREE char *head =
        memory_format("{\"version\":%" PRIu64 ",\"synced\":true,\"kept\":true,\"runs\":true,\"gone\":"
                      "[],\"unlisted\":%" PRId64 ",\"whole\":%s,\"rows\":[",
                      rows->version, rows->unlisted, whole ? "true" : "false");
    if (buffer_append_string(out, head, error) < 0)
        return -1;
    for (size_t at = 0; hash_map_next(&rows->rows, &at, NULL, &item);) {
        const struct row *row = item;
        if (!row->text || (!whole && row->version <= version))
            continue;
        if (buffer_append_string(out, before, error) < 0 || buffer_append_string(out, row->text, error) < 0)
            return -1;
        before = ",";
    }
    return buffer_append_string(out, "]}", error);
}

const char *run_rows_directory(struct run_rows *rows, const char *run, struct error *error)
{
    const struct row *row = hash_map_get(&rows->rows, run);
    if (!row && run_rows_read(rows, error) < 0)
        return NULL;
    row = hash_map_get(&rows->rows, run);
    if (row && state_directory_is_one(row->directory))
        return row->directory;
    error_set(error, ERROR_NOT_FOUND, "There is no such run on this machine any more: go back to the list.");
    error->http_status = 404;
    return NULL;
}
