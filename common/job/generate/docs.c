/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/belonging.h"
#include "common/job/generate/generate.h"
#include "common/job/rules.h"

#define PATH_MAX_TEXT 256

static int object_section(struct buffer *out, const struct object_type *type, const char *path);

/* Text in Markdown: <name> must not read as a tag. */
static void prose(struct buffer *out, const char *text)
{
    for (; *text; text++)
        buffer_append_string(out, *text == '<' ? "&lt;" : (const char[]){*text, '\0'}, NULL);
}

/* ---------------------------------------------------------------- one row */

static void words_text(const struct field *field, struct buffer *out)
{
    const char *between = "";
    for (size_t i = 0; field->words[i]; i++) {
        if (*field->words[i] == '\0')
            continue;
        buffer_format(out, "%s`%s`", between, field->words[i]);
        between = ", ";
    }
}

static void bounds_text(const struct field *field, struct buffer *out)
{
    if (field->max == INT64_MAX)
        buffer_format(out, ", from %lld", (long long)field->min);
    else
        buffer_format(out, ", %lld to %lld", (long long)field->min, (long long)field->max);
}

static void type_text(const struct field *field, struct buffer *out)
{
    switch (field->kind) {
    case FIELD_STRING:
        buffer_append_string(out, "string", NULL);
        return;
    case FIELD_INTEGER:
        buffer_append_string(out, "integer", NULL);
        bounds_text(field, out);
        return;
    case FIELD_DECIMAL:
        buffer_format(out, "number, %s %g %s %g", field->above ? "above" : "from", field->lowest,
                      field->below ? "and below" : "to", field->highest);
        return;
    case FIELD_BOOLEAN:
        buffer_append_string(out, "boolean", NULL);
        return;
    case FIELD_ENUM:
        words_text(field, out);
        return;
    case FIELD_TIME:
        buffer_append_string(out, "time", NULL);
        return;
    case FIELD_OBJECT:
    case FIELD_OPAQUE:
    case FIELD_VOLUME:
        buffer_append_string(out, "object", NULL);
        return;
    case FIELD_LIST:
        buffer_format(out, "list of at most %lld objects", (long long)field->max);
        return;
    case FIELD_STRING_LIST:
        buffer_format(out, "list of at most %lld strings", (long long)field->max);
        return;
    case FIELD_INTEGER_LIST:
        buffer_format(out, "list of at most %lld integers", (long long)field->max);
        return;
    case FIELD_SCALAR_LIST:
        buffer_format(out, "list of at most %lld numbers, strings or booleans", (long long)field->max);
        return;
    }
}

/* Default, or whether the field must be given. */
static void default_text(const struct field *field, struct buffer *out)
{
    if (field->flags & FIELD_REQUIRED)
        buffer_append_string(out, "required", NULL);
    else if (field->fallback && field->kind != FIELD_OBJECT)
        buffer_format(out, "`%s`", field->fallback);
}

static void field_row(struct buffer *out, const struct field *field)
{
    buffer_format(out, "| `%s` | ", field->name);
    type_text(field, out);
    buffer_append_string(out, " | ", NULL);
    default_text(field, out);
    buffer_append_string(out, " | ", NULL);
    prose(out, field->description);
    buffer_append_string(out, " |\n", NULL);
}

/* ---------------------------------------------------------------- one object */

/* `before`: what stands before the first line. */
static void rule_line(struct buffer *out, const char **before, const char *field, const char *message)
{
    buffer_format(out, "%s- `%s`: ", *before, field);
    prose(out, message);
    buffer_append_string(out, ".\n", NULL);
    *before = "";
}

struct rule_list {
    struct buffer *out;
    const char *before;
};

static void belonging_line(void *context, const struct belonging *belonging)
{
    struct rule_list *list = context;
    SCOPED_BUFFER path = BUFFER_INIT(PATH_MAX_TEXT), message = BUFFER_INIT(BELONGING_MESSAGE_MAX);
    belonging_path(belonging, &path);
    belonging_message(belonging, &message);
    rule_line(list->out, &list->before, buffer_text(&path), buffer_text(&message));
}

static void rule_lines(struct buffer *out, const struct object_type *type)
{
    struct rule_list list = {out, "\nRules, by the field they blame and with what they say:\n\n"};
    for (const struct rule *rule = rules; rule->name; rule++)
        if (rule->about == type)
            rule_line(out, &list.before, rule->field ? rule->field : "spec", rule->message);
    belongings_visit(type, belonging_line, &list);
}

static int inner_sections(struct buffer *out, const struct object_type *type, const char *path)
{
    char inner[PATH_MAX_TEXT];
    const struct object_type *before = NULL;
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        bool again = at.field->type == before; /* as of all foreign frameworks */
        before = at.field->type;
        if (again || (at.field->kind != FIELD_OBJECT && at.field->kind != FIELD_LIST))
            continue;
        snprintf(inner, sizeof inner, "%s.%s%s", path, at.field->name, at.field->kind == FIELD_LIST ? "[]" : "");
        if (object_section(out, at.field->type, inner) < 0)
            return -1;
    }
    return 0;
}

static void table(struct buffer *out, const struct object_type *type)
{
    buffer_append_string(out, "| field | type | default | |\n|---|---|---|---|\n", NULL);
    for (struct field_cursor at = field_first(type); at.field; field_next(&at))
        field_row(out, at.field);
}

static int object_section(struct buffer *out, const struct object_type *type, const char *path)
{
    if (buffer_format(out, "\n## %s\n\n`%s`\n\n", type->title, path) < 0)
        return -1;
    table(out, type);
    rule_lines(out, type);
    return inner_sections(out, type, path);
}

/* ---------------------------------------------------------------- the page */

static const char introduction[] =
    "<!-- Generated by `make generate` from common/job/fields.c and rules.c; do not edit. -->\n"
    "# API reference\n\n"
    "`apiVersion: " API_GROUP_VERSION "`, `kind: " TRAINING_JOB_KIND
    "`, short name `tj`. `kubectl explain tj.spec` says "
    "the same.\n\n"
    "A job's name is at most 40 lower-case letters, digits and `-`, and begins with a letter. A number with a "
    "fraction\n"
    "may stand in quotes (`3e-4`, `\"3e-4\"`); times are whole seconds. Words are spelled as they stand here: `SGD`, "
    "not\n"
    "`sgd`.\n\n";

static void mutable_fields(struct buffer *out, const struct object_type *type, const char *path, unsigned flag)
{
    char inner[PATH_MAX_TEXT];
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        snprintf(inner, sizeof inner, "%s.%s", path, at.field->name);
        if (at.field->flags & flag)
            buffer_format(out, "\n- `%s`", inner);
        else if (at.field->flags & FIELD_MUTABLE_INSIDE)
            mutable_fields(out, at.field->type, inner, flag);
    }
}

static const char sweep_introduction[] =
    "\n## TrainingSweep\n\n"
    "`kind: " TRAINING_SWEEP_KIND "`, short name `ts`; [sweeps](sweeps.md) explains it. A sweep's name has at most 35 "
    "characters. These fields may change after creation:\n";

static int sweep_sections(struct buffer *out)
{
    buffer_append_string(out, sweep_introduction, NULL);
    mutable_fields(out, &training_sweep_spec_type, "spec", FIELD_MUTABLE);
    buffer_append_string(out, "\n", NULL);
    return object_section(out, &training_sweep_spec_type, "spec") < 0 ||
                   object_section(out, &training_sweep_status_type, "status") < 0
               ? -1
               : 0;
}

static const char class_introduction[] =
    "\n## Training classes\n\n"
    "`kind: " CLUSTER_TRAINING_CLASS_KIND "`, short name `ctc`, without a namespace, and `kind: " TRAINING_CLASS_KIND
    "`, short name `tc`, in the namespace of its jobs; [operations](operations.md#training-classes) explains it. Every "
    "field may change; jobs that have been created keep what they were created with.\n";

static const char document_introduction[] =
    "\n## Job document\n\n"
    "What a worker reads from `COXSWAIN_JOB` or `--job`: the members of `spec.coxswain`, and beside them:\n\n";

static void document_rows(struct buffer *out)
{
    buffer_append_string(out, "| field | type | default | |\n|---|---|---|---|\n", NULL);
    for (unsigned i = 0; i < job_document_type.field_count; i++)
        field_row(out, &job_document_type.fields[i]);
}

static int class_section(struct buffer *out)
{
    buffer_append_string(out, class_introduction, NULL);
    return object_section(out, &training_class_spec_type, "spec");
}

int docs_generate(struct buffer *out, struct error *error)
{
    buffer_append_string(out, introduction, error);
    buffer_append_string(out, "After creation these fields may change (`workers.replicas` of elastic jobs only):\n",
                         error);
    mutable_fields(out, &training_job_spec_type, "spec", FIELD_MUTABLE);
    buffer_append_string(
        out,
        "\n\nand these while the job is suspended (`spec.suspend` is true and the condition `Suspended` "
        "says that no pod is left):\n",
        error);
    mutable_fields(out, &training_job_spec_type, "spec", FIELD_MUTABLE_SUSPENDED);
    buffer_append_string(out, "\n", error);
    if (object_section(out, &training_job_spec_type, "spec") < 0 ||
        object_section(out, &training_job_status_type, "status") < 0)
        return error_set(error, ERROR_TOO_LARGE,
                         "the page does not fit into its buffer: raise OUTPUT_MAX in common/job/generate/main.c");
    buffer_append_string(out, document_introduction, error);
    document_rows(out);
    if (object_section(out, field_find(&job_document_type, "crew")->type, "crew") < 0 || sweep_sections(out) < 0 ||
        class_section(out) < 0)
        return error_set(error, ERROR_TOO_LARGE,
                         "the page does not fit into its buffer: raise OUTPUT_MAX in common/job/generate/main.c");
    return 0;
}
