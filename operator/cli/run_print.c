/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/cli/paths.h"
#include "operator/cli/text_table.h"

#define CELL_MAX 512
#define VALUE_MAX 48
#define DIFFERENCES_MAX 200

void run_print_bytes(int64_t bytes, struct buffer *out)
{
    static const char *const units[] = {"KB", "MB", "GB", "TB"};
    double amount = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        buffer_format(out, "%" PRId64 " B", bytes);
        return;
    }
    for (; amount >= 999.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        amount /= 1000;
    buffer_format(out, "%.1f %s", amount, units[unit]);
}

/* ---------------------------------------------------------------- the list */

static void add_step(const struct run_record *record, struct text_table *table)
{
    char cell[CELL_MAX] = "";
    if (record->step >= 0 && record->total_steps > 0)
        snprintf(cell, sizeof cell, "%" PRId64 "/%" PRId64, record->step, record->total_steps);
    else if (record->step >= 0)
        snprintf(cell, sizeof cell, "%" PRId64, record->step);
    text_table_add(table, cell);
}

static void add_loss(const struct run_record *record, struct text_table *table)
{
    char cell[CELL_MAX] = "";
    if (isfinite(record->loss))
        snprintf(cell, sizeof cell, "%.4f", record->loss);
    text_table_add(table, cell);
}

static void add_score(const struct run_record *record, struct text_table *table)
{
    SCOPED_BUFFER score = BUFFER_INIT(CELL_MAX);
    run_record_score(record, &score);
    text_table_add(table, buffer_text(&score));
}

static void add_time(const struct run_entry *entry, int64_t now_ms, struct text_table *table)
{
    const struct run_record *record = &entry->record;
    char age[32], cell[CELL_MAX];
    clock_format_duration(now_ms > record->updated_ms ? now_ms - record->updated_ms : 0, age, sizeof age);
    snprintf(cell, sizeof cell, "%s ago", age);
    text_table_add(table, !entry->goes_on && record->updated_ms > 0 ? cell : "");
}

static void add_bytes(int64_t bytes, struct text_table *table)
{
    SCOPED_BUFFER size = BUFFER_INIT(CELL_MAX);
    run_print_bytes(bytes, &size);
    text_table_add(table, buffer_text(&size));
}

static void add_directory(const char *directory, struct text_table *table)
{
    SCOPED_FREE char *shown = path_for_people(directory);
    text_table_add(table, shown);
}

void run_print_table(const struct run_list *list, const int64_t *bytes, bool wide, int64_t now_ms, struct buffer *out)
{
    static const char *const titles[] = {"NAME",     "KIND",  "STATE", "STEP",     "LOSS",
                                         "HELD OUT", "ENDED", "DISK",  "DIRECTORY"};
    unsigned columns = sizeof titles / sizeof *titles - (wide ? 0 : 1);
    SCOPED(text_table_release) struct text_table table;
    text_table_init(&table, columns);
    for (unsigned i = 0; i < columns; i++)
        text_table_add(&table, titles[i]);
    for (size_t i = 0; i < list->count; i++) {
        const struct run_entry *entry = &list->entries[i];
        if (entry->trouble)
            continue;
        text_table_add(&table, entry->label);
        text_table_add(&table, entry->record.is_sweep ? "Sweep" : "Job");
        text_table_add(&table, run_state_word(entry->record.state));
        add_step(&entry->record, &table);
        add_loss(&entry->record, &table);
        add_score(&entry->record, &table);
        add_time(entry, now_ms, &table);
        add_bytes(bytes[i], &table);
        if (wide)
            add_directory(entry->directory, &table);
    }
    text_table_print(&table, out);
}

struct json *run_list_json(const struct run_list *list, const int64_t *bytes)
{
    struct json *rows = json_new_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct run_entry *entry = &list->entries[i];
        struct json *row = json_append(rows, entry->trouble ? json_new_object() : run_record_json(&entry->record));
        if (entry->trouble) {
            json_set_string(row, "name", entry->label);
            json_set_string(row, "state", run_state_word(RUN_UNKNOWN));
        }
        json_set_string(row, "run", entry->label);
        json_set_string(row, "directory", entry->directory);
        json_set_boolean(row, "inUse", entry->in_use);
        json_set_integer(row, "bytes", bytes[i]);
        if (entry->trouble)
            json_set_string(row, "trouble", entry->trouble);
    }
    return rows;
}

/* ---------------------------------------------------------------- two manifests */

struct comparison {
    struct text_table table;
    unsigned count;
};

static char *value_text(const struct json *value)
{
    char *text = json_scalar_text(value);
    SCOPED_BUFFER printed = BUFFER_INIT(RUN_PRINT_MAX);
    if (!text && value && json_print(value, &printed, NULL) == 0)
        text = buffer_take(&printed);
    if (!text)
        text = memory_copy_string("-");
    if (strlen(text) > VALUE_MAX) {
        char *cut = memory_format("%.*s...", VALUE_MAX - 3, text);
        free(text);
        return cut;
    }
    return text;
}

static void add_difference(struct comparison *comparison, const char *path, const struct json *left,
                           const struct json *right)
{
    SCOPED_FREE char *left_text = value_text(left);
    SCOPED_FREE char *right_text = value_text(right);
    if (comparison->count++ >= DIFFERENCES_MAX)
        return;
    text_table_add(&comparison->table, path);
    text_table_add(&comparison->table, left_text);
    text_table_add(&comparison->table, right_text);
}

static void compare(struct comparison *comparison, const char *path, const struct json *left, const struct json *right);

static void compare_member(struct comparison *comparison, const char *path, const char *key, const struct json *left,
                           const struct json *right)
{
    SCOPED_FREE char *below = memory_format("%s%s%s", path, *path ? "." : "", key);
    compare(comparison, below, json_member(left, key), json_member(right, key));
}

static void compare_objects(struct comparison *comparison, const char *path, const struct json *left,
                            const struct json *right)
{
    for (const struct json *item = json_first(left); item; item = json_next(item))
        compare_member(comparison, path, json_key(item), left, right);
    for (const struct json *item = json_first(right); item; item = json_next(item))
        if (!json_member(left, json_key(item)))
            compare_member(comparison, path, json_key(item), left, right);
}

static void compare_lists(struct comparison *comparison, const char *path, const struct json *left,
                          const struct json *right)
{
    size_t count = json_count(left) > json_count(right) ? json_count(left) : json_count(right);
    for (size_t i = 0; i < count; i++) {
        SCOPED_FREE char *below = memory_format("%s[%zu]", path, i);
        compare(comparison, below, json_element(left, i), json_element(right, i));
    }
}

static bool both(enum json_type type, const struct json *left, const struct json *right)
{
    return json_type(left) == type && json_type(right) == type;
}

/* "0.1" and 0.1 are one number in a job. */
static bool are_equal(const struct json *left, const struct json *right)
{
    SCOPED_FREE char *left_text = json_scalar_text(left);
    SCOPED_FREE char *right_text = json_scalar_text(right);
    return left && right &&
           (json_equal(left, right) || (left_text && right_text && strcmp(left_text, right_text) == 0));
}

static void compare(struct comparison *comparison, const char *path, const struct json *left, const struct json *right)
{
    if (both(JSON_OBJECT, left, right))
        compare_objects(comparison, path, left, right);
    else if (both(JSON_ARRAY, left, right))
        compare_lists(comparison, path, left, right);
    else if (!are_equal(left, right))
        add_difference(comparison, path, left, right);
}

/* ---------------------------------------------------------------- two runs */

typedef void add_cell(const struct run_record *record, struct text_table *table);

static void add_state(const struct run_record *record, struct text_table *table)
{
    text_table_add(table, run_state_word(record->state));
}

static void add_duration(const struct run_record *record, struct text_table *table)
{
    char cell[32] = "";
    if (record->started_ms > 0 && record->updated_ms >= record->started_ms)
        clock_format_duration(record->updated_ms - record->started_ms, cell, sizeof cell);
    text_table_add(table, cell);
}

void run_print_comparison(const struct run_entry *left, const struct json *left_manifest, const struct run_entry *right,
                          const struct json *right_manifest, struct buffer *out)
{
    static const struct {
        const char *title;
        add_cell *add;
    } rows[] = {
        {"state", add_state}, {"step", add_step}, {"loss", add_loss}, {"held out", add_score}, {"time", add_duration}};
    struct comparison comparison = {.count = 0};
    text_table_init(&comparison.table, 3);
    text_table_add(&comparison.table, "");
    text_table_add(&comparison.table, left->label);
    text_table_add(&comparison.table, right->label);
    compare(&comparison, "", left_manifest, right_manifest);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_table_add(&comparison.table, rows[i].title);
        rows[i].add(&left->record, &comparison.table);
        rows[i].add(&right->record, &comparison.table);
    }
    text_table_print(&comparison.table, out);
    text_table_release(&comparison.table);
    if (comparison.count > DIFFERENCES_MAX)
        buffer_format(out, "and %u more fields that differ\n", comparison.count - DIFFERENCES_MAX);
    if (comparison.count == 0)
        buffer_append_string(out, "the manifests are equal\n", NULL);
}
