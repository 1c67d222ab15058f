/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/status_document.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"

static const char *const phase_names[] = {
#define X(name, text) [STATUS_##name] = text,
    STATUS_PHASES(X)
#undef X
};
static const char *const save_failure_names[] = {
#define X(name, text) [name] = (text),
    SAVE_FAILURES(X)
#undef X
};
#define PHASE_COUNT (sizeof phase_names / sizeof *phase_names)

const char *status_phase_name(enum status_phase phase)
{
    return phase_names[phase];
}

const char *save_failure_name(enum save_failure failure)
{
    return save_failure_names[failure];
}

/* Every member that is a whole number or a string, so that printing and parsing cannot drift apart. */
struct member {
    const char *name;
    size_t offset;
    size_t size; /* of a string's array */
};

static const struct member whole_numbers[] = {
    {"incarnation", offsetof(struct status_document, incarnation), 0},
    {"index", offsetof(struct status_document, index), 0},
    {"step", offsetof(struct status_document, step), 0},
    {"totalSteps", offsetof(struct status_document, total_steps), 0},
    {"dataEpoch", offsetof(struct status_document, data_epoch), 0},
    {"secondsRemaining", offsetof(struct status_document, seconds_remaining), 0},
    {"lastCheckpointStep", offsetof(struct status_document, last_checkpoint_step), 0},
    {"failedSaves", offsetof(struct status_document, failed_saves), 0},
    {"refusedPerMinute", offsetof(struct status_document, refused_per_minute), 0},
    {"stragglerIndex", offsetof(struct status_document, straggler_index), 0},
    {"stragglerSeconds", offsetof(struct status_document, straggler_seconds), 0},
};

static const struct member decimals[] = {
    {"examplesPerSecond", offsetof(struct status_document, examples_per_second), 0},
    {"goodput", offsetof(struct status_document, goodput), 0},
    {"stragglerMilliseconds", offsetof(struct status_document, straggler_ms), 0},
    {"stragglerDueMilliseconds", offsetof(struct status_document, straggler_due_ms), 0},
};

static const struct member strings[] = {
    {"jobUID", offsetof(struct status_document, job_uid), sizeof((struct status_document *)NULL)->job_uid},
    {"role", offsetof(struct status_document, role), sizeof((struct status_document *)NULL)->role},
    {"message", offsetof(struct status_document, message), sizeof((struct status_document *)NULL)->message},
    {"saveMessage", offsetof(struct status_document, save_message),
     sizeof((struct status_document *)NULL)->save_message},
    {"refusedFrom", offsetof(struct status_document, refused_from),
     sizeof((struct status_document *)NULL)->refused_from},
    {"refusedReason", offsetof(struct status_document, refused_reason),
     sizeof((struct status_document *)NULL)->refused_reason},
    {"stragglerRole", offsetof(struct status_document, straggler_role),
     sizeof((struct status_document *)NULL)->straggler_role},
};

#define EACH(member, table)                                                                                            \
    for (const struct member *member = table; member < table + sizeof table / sizeof *table; member++)

static void *in(const struct status_document *document, const struct member *member)
{
    return (char *)(uintptr_t)document + member->offset;
}

void status_document_init(struct status_document *document)
{
    *document =
        (struct status_document){.phase = STATUS_STARTING, .percent = STATUS_UNKNOWN, .updated_at_ms = STATUS_UNKNOWN};
    EACH(member, whole_numbers)
    *(int64_t *)in(document, member) = STATUS_UNKNOWN;
    EACH(member, decimals)
    *(double *)in(document, member) = STATUS_UNKNOWN;
}

static unsigned metric_index(const struct status_document *document, const char *name)
{
    unsigned i = 0;
    while (i < document->metric_count && strcmp(document->metrics[i].name, name) != 0)
        i++;
    return i;
}

const struct status_metric *status_document_metric(const struct status_document *document, const char *name)
{
    unsigned i = metric_index(document, name);
    return i < document->metric_count ? &document->metrics[i] : NULL;
}

void status_document_remove_metric(struct status_document *document, const char *name)
{
    unsigned i = metric_index(document, name);
    if (i < document->metric_count)
        document->metrics[i] = document->metrics[--document->metric_count];
}

struct status_metric *status_document_set_metric(struct status_document *document, const char *name, double value,
                                                 int64_t step)
{
    unsigned i = metric_index(document, name);
    if (i == STATUS_METRICS_MAX || strlen(name) >= STATUS_METRIC_NAME_MAX)
        return NULL;
    if (i == document->metric_count)
        memcpy(document->metrics[document->metric_count++].name, name, strlen(name) + 1);
    document->metrics[i].value = value;
    document->metrics[i].step = step;
    return &document->metrics[i];
}

bool status_name_has_control_character(const char *name)
{
    while ((unsigned char)*name >= ' ' && *name != '\x7f')
        name++;
    return *name != '\0';
}

void status_count_set(int64_t *count, double value)
{
    if (value >= 0 && value <= STATUS_COUNT_MAX)
        *count = (int64_t)value;
}

bool status_document_has_progress(const struct status_document *document)
{
    return document->metric_count > 0 || document->step != STATUS_UNKNOWN || document->total_steps != STATUS_UNKNOWN ||
           document->data_epoch != STATUS_UNKNOWN || document->percent != STATUS_UNKNOWN;
}

/* ---------------------------------------------------------------- print */

static void metrics_to_json(const struct status_document *document, struct json *metrics)
{
    for (unsigned i = 0; i < document->metric_count; i++) {
        if (!isfinite(document->metrics[i].value))
            continue;
        struct json *metric = json_append(metrics, json_new_object());
        json_set_string(metric, "name", document->metrics[i].name);
        json_set_number(metric, "value", document->metrics[i].value);
        if (document->metrics[i].step > 0)
            json_set_integer(metric, "step", document->metrics[i].step);
    }
}

struct json *status_document_to_json(const struct status_document *document)
{
    struct json *object = json_new_object();
    EACH(member, strings)
    if (*(char *)in(document, member))
        json_set_string(object, member->name, in(document, member));
    json_set_string(object, "phase", status_phase_name(document->phase));
    if (document->save_failure != SAVE_FINE)
        json_set_string(object, "saveFailure", save_failure_name(document->save_failure));
    EACH(member, whole_numbers)
    if (*(int64_t *)in(document, member) >= 0)
        json_set_integer(object, member->name, *(int64_t *)in(document, member));
    EACH(member, decimals)
    if (isfinite(*(double *)in(document, member)) && *(double *)in(document, member) >= 0)
        json_set_number(object, member->name, *(double *)in(document, member));
    if (document->metric_count > 0)
        metrics_to_json(document, json_set_array(object, "metrics"));
    if (document->updated_at_ms >= 0) {
        char time[CLOCK_TEXT_MAX];
        clock_format_seconds(document->updated_at_ms, time);
        json_set_string(object, "updatedAt", time);
    }
    return object;
}

int status_document_print(const struct status_document *document, struct buffer *out, struct error *error)
{
    SCOPED_JSON *object = status_document_to_json(document);
    return json_print(object, out, error);
}

/* ---------------------------------------------------------------- parse */

static int wrong_type(const struct json *value, const char *name, const char *expected, struct error *error)
{
    return error_set(error, ERROR_INVALID, "status document: %s is %s %s, not %s", name,
                     strchr("aeiou", *json_type_name(json_type(value))) ? "an" : "a", json_type_name(json_type(value)),
                     expected);
}

static int string_parse(const struct json *value, const char *name, char *text, size_t size, struct error *error)
{
    if (value == NULL)
        return 0;
    const char *given = json_string(value, NULL);
    if (given == NULL)
        return wrong_type(value, name, "a string", error);
    size_t length = strlen(given);
    if (length >= size)
        return error_set(error, ERROR_INVALID, "status document: %s has %zu bytes, but at most %zu are allowed", name,
                         length, size - 1);
    memcpy(text, given, length + 1);
    return 0;
}

static int whole_number_parse(const struct json *value, const char *name, int64_t *number, struct error *error)
{
    if (value == NULL)
        return 0;
    int64_t given = json_integer(value, STATUS_UNKNOWN);
    if (given < 0)
        return wrong_type(value, name, "a whole number of at least 0", error);
    *number = given;
    return 0;
}

static int decimal_parse(const struct json *value, const char *name, double *number, struct error *error)
{
    if (value == NULL)
        return 0;
    double given = json_number(value, NAN);
    if (!isfinite(given))
        return wrong_type(value, name, "a finite number", error);
    *number = given;
    return 0;
}

static int phase_parse(const struct json *value, enum status_phase *phase, struct error *error)
{
    if (value == NULL)
        return 0;
    const char *given = json_string(value, NULL);
    if (given == NULL)
        return wrong_type(value, "phase", "a string", error);
    for (size_t i = 0; i < PHASE_COUNT; i++)
        if (strcmp(given, phase_names[i]) == 0) {
            *phase = (enum status_phase)i;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "the worker's status document: phase '%.32s' is not known to this release",
                     given);
}

/* A word that a newer worker may have is a failure all the same. */
static enum save_failure save_failure_parse(const struct json *value)
{
    const char *given = json_string(value, "");
    if (strcmp(given, save_failure_names[SAVE_VOLUME_FULL]) == 0)
        return SAVE_VOLUME_FULL;
    return *given ? SAVE_FAILED : SAVE_FINE;
}

/* They become a list by name in the job's status, which an API server refuses when a name is empty or stands twice. */
static bool is_repeated(const struct status_document *document)
{
    const struct status_metric *newest = &document->metrics[document->metric_count - 1];
    for (const struct status_metric *metric = document->metrics; metric < newest; metric++)
        if (strcmp(metric->name, newest->name) == 0)
            return true;
    return false;
}

static int metrics_parse(const struct json *list, struct status_document *document, struct error *error)
{
    if (list && json_type(list) != JSON_ARRAY)
        return wrong_type(list, "metrics", "a list", error);
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        if (document->metric_count == STATUS_METRICS_MAX)
            return error_set(error, ERROR_INVALID, "status document: more than %d metrics", STATUS_METRICS_MAX);
        struct status_metric *metric = &document->metrics[document->metric_count++];
        const struct json *value = json_member(item, "value");
        if (json_member(item, "name") == NULL || value == NULL)
            return error_set(error, ERROR_INVALID, "status document: a metric needs a name and a value");
        if (string_parse(json_member(item, "name"), "metrics.name", metric->name, sizeof metric->name, error) < 0 ||
            decimal_parse(value, "metrics.value", &metric->value, error) < 0 ||
            whole_number_parse(json_member(item, "step"), "metrics.step", &metric->step, error) < 0)
            return -1;
        if (*metric->name == '\0')
            return error_set(error, ERROR_INVALID, "the worker's status document: a metric has an empty name");
        if (is_repeated(document))
            return error_set(error, ERROR_INVALID, "status document: the metric %s occurs twice", metric->name);
    }
    return 0;
}

static int time_parse(const struct json *value, int64_t *ms, struct error *error)
{
    if (value == NULL)
        return 0;
    if (!clock_parse(json_string(value, ""), ms))
        return wrong_type(value, "updatedAt", "a time such as 2026-11-20T14:00:00Z", error);
    return 0;
}

static int members_parse(const struct json *object, struct status_document *document, struct error *error)
{
    EACH(member, strings)
    if (string_parse(json_member(object, member->name), member->name, in(document, member), member->size, error) < 0)
        return -1;
    EACH(member, whole_numbers)
    if (whole_number_parse(json_member(object, member->name), member->name, in(document, member), error) < 0)
        return -1;
    EACH(member, decimals)
    if (decimal_parse(json_member(object, member->name), member->name, in(document, member), error) < 0)
        return -1;
    if (phase_parse(json_member(object, "phase"), &document->phase, error) < 0 ||
        metrics_parse(json_member(object, "metrics"), document, error) < 0)
        return -1;
    document->save_failure = save_failure_parse(json_member(object, "saveFailure"));
    return time_parse(json_member(object, "updatedAt"), &document->updated_at_ms, error);
}

int status_document_parse(const char *text, size_t length, struct status_document *ret_document, struct error *error)
{
    SCOPED_JSON *object = NULL;
    if (json_parse(text, length, STATUS_DOCUMENT_MAX, &object, error) < 0)
        return error_wrap(error, "status document");
    if (json_type(object) != JSON_OBJECT)
        return wrong_type(object, "the text", "an object", error);
    struct status_document document;
    status_document_init(&document);
    if (members_parse(object, &document, error) < 0)
        return -1;
    *ret_document = document;
    return 0;
}
