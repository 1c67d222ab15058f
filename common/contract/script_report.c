/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/script_report.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/utf8.h"

#define SPACE " \t\r\n"
#define NAME_SHOWN 20 /* bytes of a name that is too long */

/* The report's text; NULL: there is none. */
static const char *find_report(const char *message, size_t *ret_length)
{
    const char *begin = message + strspn(message, SPACE), *end = message + strlen(message);
    while (end > begin && strchr(SPACE, end[-1]))
        end--;
    const char *line = end;
    while (line > begin && line[-1] != '\n')
        line--;
    const char *report = *line == '{' ? line : begin;
    *ret_length = (size_t)(end - report);
    return *report == '{' ? report : NULL;
}

/* What scripts print for numbers that are not finite; not JSON. */
static const char *const not_finite[] = {"NaN", "nan", "-nan", "Infinity", "-Infinity", "inf", "-inf"};

/* The word of `not_finite` with which the text begins; NULL: none. */
static const char *not_finite_at(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof not_finite / sizeof *not_finite; i++)
        if (strlen(not_finite[i]) <= length && memcmp(text, not_finite[i], strlen(not_finite[i])) == 0)
            return not_finite[i];
    return NULL;
}

static bool is_not_finite(const char *text)
{
    const char *word = not_finite_at(text, strlen(text));
    return word && strcmp(word, text) == 0;
}

/* Copies the text with quotes around each such word, except within strings. Returns whether there was one. */
static bool quote_not_finite(const char *text, size_t length, struct buffer *quoted)
{
    bool in_string = false, found = false;
    const char *word;
    size_t taken;
    for (size_t at = 0; at < length; at += taken) {
        if (!in_string && (word = not_finite_at(text + at, length - at))) {
            taken = strlen(word);
            found = true;
            buffer_format(quoted, "\"%s\"", word);
            continue;
        }
        taken = in_string && text[at] == '\\' && at + 1 < length ? 2 : 1;
        in_string ^= text[at] == '"';
        buffer_append(quoted, text + at, taken, NULL);
    }
    return found;
}

/* A number that is not finite becomes a string, so that it costs no other value of the report. A text that is no JSON
 * even so is refused as it stands. */
static int parse_report(const char *text, size_t length, struct json **ret_object, struct error *ret_flaw)
{
    SCOPED_BUFFER quoted = BUFFER_INIT(2 * SCRIPT_REPORT_MAX);
    if (json_parse(text, length, SCRIPT_REPORT_MAX, ret_object, ret_flaw) == 0)
        return 0;
    if (length > SCRIPT_REPORT_MAX || !quote_not_finite(text, length, &quoted) ||
        json_parse(buffer_text(&quoted), quoted.length, 2 * SCRIPT_REPORT_MAX, ret_object, NULL) < 0)
        return -1;
    *ret_flaw = (struct error){.kind = ERROR_NONE};
    return 0;
}

/* The first flaw is told in words. */
struct flaws {
    struct error *first;
    unsigned count;
};

static struct error *flaw(struct flaws *flaws)
{
    return flaws->count++ == 0 ? flaws->first : NULL;
}

static void read_metric(const struct json *member, struct status_document *report, struct flaws *flaws)
{
    const char *name = json_key(member);
    size_t length = strlen(name);
    double value = json_number(member, NAN);
    const char *text = json_string(member, "");
    if (length == 0)
        error_set(flaw(flaws), ERROR_INVALID, "a metric has an empty name");
    else if (length >= STATUS_METRIC_NAME_MAX)
        error_set(flaw(flaws), ERROR_INVALID, "the name of the metric %.*s… has %zu bytes, more than %d",
                  (int)utf8_fit(name, NAME_SHOWN), name, length, STATUS_METRIC_NAME_MAX - 1);
    else if (status_name_has_control_character(name))
        error_set(flaw(flaws), ERROR_INVALID, "the name of a metric has a control character");
    else if (is_not_finite(text))
        error_set(flaw(flaws), ERROR_INVALID, "the metric %s is %s, not a finite number", name, text);
    else if (!isfinite(value))
        error_set(flaw(flaws), ERROR_INVALID, "the metric %s is of type %s, not a number", name,
                  json_type_name(json_type(member)));
    else if (report->metric_count == STATUS_METRICS_MAX)
        error_set(flaw(flaws), ERROR_INVALID, "the report has more than %d metrics; %s is left out", STATUS_METRICS_MAX,
                  name);
    else {
        struct status_metric *metric = &report->metrics[report->metric_count++];
        memcpy(metric->name, name, length + 1);
        metric->value = value;
    }
}

static void read_metrics(const struct json *metrics, struct status_document *report, struct flaws *flaws)
{
    if (metrics && json_type(metrics) != JSON_OBJECT)
        error_set(flaw(flaws), ERROR_INVALID, "metrics is of type %s, not an object such as {\"bleu\": 27.4}",
                  json_type_name(json_type(metrics)));
    else
        for (const struct json *member = json_first(metrics); member; member = json_next(member))
            read_metric(member, report, flaws);
}

static void read_whole_number(const struct json *object, const char *name, int64_t *number, struct flaws *flaws)
{
    const struct json *value = json_member(object, name);
    int64_t given = json_integer(value, STATUS_UNKNOWN);
    if (value && given < 0)
        error_set(flaw(flaws), ERROR_INVALID, "%s is not a whole number of at least 0", name);
    else if (value)
        *number = given;
}

void script_report_read(const char *message, struct status_document *ret_report, struct error *ret_flaw)
{
    SCOPED_JSON *object = NULL;
    size_t length;
    const char *text = find_report(message, &length);
    struct flaws flaws = {.first = ret_flaw};
    *ret_flaw = (struct error){.kind = ERROR_NONE};
    status_document_init(ret_report);
    if (!text || parse_report(text, length, &object, ret_flaw) < 0)
        return;
    read_metrics(json_member(object, "metrics"), ret_report, &flaws);
    read_whole_number(object, "step", &ret_report->step, &flaws);
    read_whole_number(object, "epoch", &ret_report->data_epoch, &flaws);
    if (flaws.count > 1)
        error_wrap(ret_flaw, "%u of its values cannot be used, the first", flaws.count);
}
