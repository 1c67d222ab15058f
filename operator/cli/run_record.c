/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/contract/state_directory.h"
#include "common/contract/status_document.h"
#include "common/memory.h"

#define RECORD_MAX (1024 * 1024)
#define APPLIED_MAX (8 * 1024 * 1024)
#define VERSION 1

static const char *const state_words[] = {
#define X(name, word) word,
    RUN_STATES(X)
#undef X
};
#define STATE_COUNT (sizeof state_words / sizeof *state_words)

const char *run_state_word(enum run_state state)
{
    return state_words[state];
}

void run_record_init(struct run_record *record)
{
    *record = (struct run_record){.step = -1, .total_steps = -1, .loss = NAN, .best = NAN};
    job_score_init(&record->score);
}

void run_record_release(struct run_record *record)
{
    json_free(record->volumes);
    free(record->command);
    record->volumes = NULL;
    record->command = NULL;
}

/* ---------------------------------------------------------------- as JSON */

static void set_time(struct json *object, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT_MAX];
    if (ms <= 0)
        return;
    clock_format_microseconds(ms, text); /* tells which of two runs within a second ended last */
    json_set_string(object, key, text);
}

static void set_number(struct json *object, const char *key, double number)
{
    if (isfinite(number))
        json_set_number(object, key, number);
}

static void set_count(struct json *object, const char *key, int64_t count)
{
    if (count >= 0)
        json_set_integer(object, key, count);
}

struct json *run_record_json(const struct run_record *record)
{
    struct json *object = json_new_object();
    json_set_string(object, "name", record->name);
    json_set_string(object, "namespace", record->name_space);
    json_set_string(object, "kind", record->is_sweep ? TRAINING_SWEEP_KIND : TRAINING_JOB_KIND);
    json_set_string(object, "state", run_state_word(record->state));
    set_count(object, record->is_sweep ? "trialsDone" : "step", record->step);
    set_count(object, record->is_sweep ? "trials" : "steps", record->total_steps);
    set_number(object, "loss", record->loss);
    set_number(object, "accuracy", record->score.accuracy);
    set_number(object, "validationLoss", record->score.loss);
    set_number(object, "validationRMSE", record->score.rmse);
    set_count(object, "bestStep", record->score.best_step);
    if (*record->metric)
        json_set_string(object, "metric", record->metric);
    set_number(object, "best", record->best);
    set_time(object, "startTime", record->started_ms);
    set_time(object, "lastUpdateTime", record->updated_ms);
    if (record->volumes)
        json_set(object, "volumes", json_copy(record->volumes));
    if (record->command)
        json_set_string(object, "command", record->command);
    return object;
}

static enum run_state state_of(const char *word)
{
    for (size_t i = 0; i < STATE_COUNT; i++)
        if (strcmp(state_words[i], word) == 0)
            return (enum run_state)i;
    return RUN_UNKNOWN;
}

static void take_text(const struct json *object, const char *key, char text[RUN_TEXT_MAX])
{
    snprintf(text, RUN_TEXT_MAX, "%s", json_string_at(object, key, ""));
}

static int64_t time_of(const struct json *object, const char *key)
{
    int64_t ms;
    return clock_parse(json_string_at(object, key, ""), &ms) ? ms : 0;
}

static void take(const struct json *object, struct run_record *record)
{
    take_text(object, "name", record->name);
    take_text(object, "namespace", record->name_space);
    take_text(object, "metric", record->metric);
    record->is_sweep = strcmp(json_string_at(object, "kind", ""), TRAINING_SWEEP_KIND) == 0;
    record->state = state_of(json_string_at(object, "state", ""));
    record->step = json_integer_at(object, record->is_sweep ? "trialsDone" : "step", -1);
    record->total_steps = json_integer_at(object, record->is_sweep ? "trials" : "steps", -1);
    record->loss = json_number_at(object, "loss", NAN);
    record->score.accuracy = json_number_at(object, "accuracy", NAN);
    record->score.loss = json_number_at(object, "validationLoss", NAN);
    record->score.rmse = json_number_at(object, "validationRMSE", NAN);
    record->score.best_step = json_integer_at(object, "bestStep", -1);
    record->best = json_number_at(object, "best", NAN);
    record->started_ms = time_of(object, "startTime");
    record->updated_ms = time_of(object, "lastUpdateTime");
    if (json_type(json_member(object, "volumes")) == JSON_OBJECT)
        record->volumes = json_copy(json_member(object, "volumes"));
    if (*json_string_at(object, "command", ""))
        record->command = memory_copy_string(json_string_at(object, "command", ""));
}

/* ---------------------------------------------------------------- files */

static int read_json(const char *directory, const char *file, size_t ceiling, struct json **ret_value,
                     struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", directory, file);
    SCOPED_BUFFER text = BUFFER_INIT(ceiling);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return error_set(error, ERROR_NOT_FOUND, "%s does not exist: the run ended before it wrote this file", path);
    if (buffer_read_file(&text, path, error) < 0)
        return -1;
    if (json_parse(buffer_text(&text), text.length, ceiling, ret_value, error) < 0)
        return error_wrap(error, "%s is damaged", path);
    return 0;
}

/* A reader finds the old file or the new one, and never a part. */
static int write_json(const char *directory, const char *file, const struct json *value, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", directory, file);
    SCOPED_FREE char *fresh = memory_format("%s.new", path);
    SCOPED_BUFFER text = BUFFER_INIT(APPLIED_MAX);
    if (json_print_indented(value, &text, error) < 0 || buffer_append_byte(&text, '\n', error) < 0 ||
        buffer_write_file(&text, fresh, error) < 0)
        return -1;
    return rename(fresh, path) < 0 ? error_set_errno(error, "write %s", path) : 0;
}

int run_record_read(const char *directory, struct run_record *ret_record, struct error *error)
{
    SCOPED_JSON *object = NULL;
    run_record_init(ret_record);
    if (read_json(directory, STATE_RUN, RECORD_MAX, &object, error) < 0)
        return -1;
    if (json_integer_at(object, "version", 0) != VERSION || !*json_string_at(object, "name", ""))
        return error_set(error, ERROR_INVALID,
                         "%s/" STATE_RUN " is not a record of cox run, or is one of another version", directory);
    take(object, ret_record);
    return 0;
}

int run_record_write(const char *directory, const struct run_record *record, struct error *error)
{
    SCOPED_JSON *object = run_record_json(record);
    json_set_integer(object, "version", VERSION);
    return write_json(directory, STATE_RUN, object, error);
}

int run_record_manifest(const char *directory, struct json **ret_manifest, struct error *error)
{
    return read_json(directory, STATE_JOB, APPLIED_MAX, ret_manifest, error);
}

int run_record_write_manifest(const char *directory, const struct json *manifest, struct error *error)
{
    return write_json(directory, STATE_JOB, manifest, error);
}

/* ---------------------------------------------------------------- volumes */

static bool lies_in(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool run_record_uses(const struct run_record *record, const char *directory)
{
    for (const struct json *volume = json_first(record->volumes); volume; volume = json_next(volume)) {
        SCOPED_FREE char *path = realpath(json_string(volume, ""), NULL);
        if (path && lies_in(path, directory))
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- words */

void run_record_score(const struct run_record *record, struct buffer *out)
{
    if (!isfinite(record->best))
        job_score_print(&record->score, out);
    else if (strcmp(record->metric, METRIC_VALIDATION_ACCURACY) == 0)
        buffer_format(out, "%.1f %%", 100 * record->best);
    else if (strcmp(record->metric, METRIC_VALIDATION_RMSE) == 0)
        buffer_format(out, "RMSE %.6g", record->best);
    else if (strcmp(record->metric, METRIC_VALIDATION_LOSS) == 0)
        buffer_format(out, "loss %.4g", record->best);
    else
        buffer_format(out, "%.4g %s", record->best, record->metric); /* the number first, as names may be cut */
}
