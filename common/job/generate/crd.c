/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/belonging.h"
#include "common/job/field_default.h"
#include "common/job/generate/generate.h"
#include "common/job/immutability.h"
#include "common/job/rules.h"
#include "common/job/training_sweep.h"
#include "common/yaml.h"

#define PRESERVE "x-kubernetes-preserve-unknown-fields"

static void object_schema(const struct object_type *type, bool with_rules, struct json *schema);

/* ---------------------------------------------------------------- rules */

static struct json *add_rule(struct json *schema, const char *cel, const char *message, const char *field)
{
    char path[128];
    struct json *rule = json_append(json_set_array(schema, "x-kubernetes-validations"), json_new_object());
    json_set_string(rule, "rule", cel);
    json_set_string(rule, "message", message);
    if (field) {
        snprintf(path, sizeof path, ".%s", field);
        json_set_string(rule, "fieldPath", path);
    }
    return rule;
}

static void table_rules(const struct object_type *type, struct json *schema)
{
    for (const struct rule *rule = rules; rule->name; rule++)
        if (rule->cel && rule->about == type)
            add_rule(schema, rule->cel, rule->message, rule->field);
}

/* A decimal has no type in the schema, and CEL sees nothing that has none: the operator judges those. */
static void belonging_rule(void *context, const struct belonging *belonging)
{
    if (belonging->field->kind == FIELD_DECIMAL)
        return;
    SCOPED_BUFFER cel = BUFFER_INIT(BELONGING_CEL_MAX), path = BUFFER_INIT(BELONGING_MESSAGE_MAX),
                  message = BUFFER_INIT(BELONGING_MESSAGE_MAX);
    belonging_cel(belonging, &cel);
    belonging_path(belonging, &path);
    belonging_message(belonging, &message);
    add_rule(context, buffer_text(&cel), buffer_text(&message), buffer_text(&path));
}

static void immutability_rules(const struct object_type *type, struct json *schema)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        char cel[512];
        const char *name = at.field->name;
        bool inside = at.field->flags & FIELD_MUTABLE_INSIDE;
        if ((at.field->flags & (FIELD_MUTABLE | FIELD_MUTABLE_SUSPENDED)) || (inside && at.field->fallback))
            continue;
        if (inside)
            snprintf(cel, sizeof cel, "has(self.%s) == has(oldSelf.%s)", name, name);
        else if (at.field->flags & FIELD_REQUIRED)
            snprintf(cel, sizeof cel, "self.%s == oldSelf.%s", name, name);
        else
            snprintf(cel, sizeof cel, "has(self.%s) == has(oldSelf.%s) && (!has(self.%s) || self.%s == oldSelf.%s)",
                     name, name, name, name, name);
        add_rule(schema, cel, IMMUTABLE_MESSAGE, name);
    }
}

#define IS_SUSPENDED                                                                                                   \
    "(oldSelf.spec.suspend && has(oldSelf.status) && has(oldSelf.status.conditions) && "                               \
    "oldSelf.status.conditions.exists(c, c.type == 'Suspended' && c.status == 'True'))"

/* Whether a job is suspended its status says, so that these rules are the whole object's. `path`: of what `type` describes. */
static void suspension_rules(const struct object_type *type, const char *path, bool optional, struct json *schema)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        char cel[1024], inner[128];
        snprintf(inner, sizeof inner, "%s.%s", path, at.field->name);
        if (at.field->flags & FIELD_MUTABLE_INSIDE)
            suspension_rules(at.field->type, inner, at.field->fallback == NULL, schema);
        if (!(at.field->flags & FIELD_MUTABLE_SUSPENDED))
            continue;
        int length = optional ? snprintf(cel, sizeof cel, "!has(self.%s) || !has(oldSelf.%s) || ", path, path) : 0;
        snprintf(cel + length, sizeof cel - (size_t)length,
                 IS_SUSPENDED " || (has(self.%s) == has(oldSelf.%s) && (!has(self.%s) || self.%s == oldSelf.%s))",
                 inner, inner, inner, inner, inner);
        add_rule(schema, cel, IMMUTABLE_UNLESS_SUSPENDED, inner);
    }
}

/* ---------------------------------------------------------------- scalars */

static void text_bounds(int64_t min, int64_t max, enum string_format format, struct json *schema)
{
    json_set_string(schema, "type", "string");
    if (min > 0)
        json_set_integer(schema, "minLength", min);
    if (max > 0)
        json_set_integer(schema, "maxLength", max);
    if (format != STRING_FORMAT_ANY)
        json_set_string(schema, "pattern", string_format_expression(format));
}

static void integer_bounds(int64_t min, int64_t max, struct json *schema)
{
    json_set_string(schema, "type", "integer");
    json_set_string(schema, "format", "int64");
    json_set_integer(schema, "minimum", min);
    if (max != INT64_MAX)
        json_set_integer(schema, "maximum", max);
}

/* Everybody writes learningRate: 1e-3, and no type of a structural schema takes an integer, a fraction and a string. So it
 * has none: what is said here holds for those values that it can be said of, and the operator judges the rest. */
static void decimal_schema(const struct field *field, struct json *schema)
{
    json_set_boolean(schema, PRESERVE, true);
    json_set_number(schema, "minimum", field->lowest);
    if (field->above)
        json_set_boolean(schema, "exclusiveMinimum", true);
    json_set_number(schema, "maximum", field->highest);
    if (field->below)
        json_set_boolean(schema, "exclusiveMaximum", true);
    json_set_integer(schema, "maxLength", DECIMAL_TEXT_MAX);
    json_set_string(schema, "pattern", string_format_expression(STRING_FORMAT_DECIMAL));
}

static void enum_schema(const struct field *field, struct json *schema)
{
    if (field->flags & FIELD_OPEN) {
        text_bounds(field->min, field->max, field->format, schema);
        return;
    }
    json_set_string(schema, "type", "string");
    struct json *words = json_set_array(schema, "enum");
    for (size_t i = 0; field->words[i]; i++)
        if (*field->words[i])
            json_append_string(words, field->words[i]);
}

/* Nor has a value that may be a number, a text or a boolean. */
static void scalar_schema(struct json *schema)
{
    json_set_boolean(schema, PRESERVE, true);
    json_set_integer(schema, "maxLength", SCALAR_TEXT_MAX);
}

/* ---------------------------------------------------------------- lists and objects */

static void list_schema(const struct field *field, struct json *schema)
{
    json_set_string(schema, "type", "array");
    if (field->min > 0)
        json_set_integer(schema, "minItems", field->min);
    json_set_integer(schema, "maxItems", field->max);
    const char *key = field->kind == FIELD_LIST ? field->type->map_key : NULL;
    json_set_string(schema, "x-kubernetes-list-type", key ? "map" : "atomic");
    if (key)
        json_append_string(json_set_array(schema, "x-kubernetes-list-map-keys"), key);
    struct json *items = json_set_object(schema, "items");
    if (field->kind == FIELD_LIST)
        object_schema(field->type, true, items);
    else if (field->kind == FIELD_STRING_LIST)
        text_bounds(1, field_list_text_max(field), field->format, items);
    else if (field->kind == FIELD_SCALAR_LIST)
        scalar_schema(items);
    else
        integer_bounds((int64_t)field->lowest, (int64_t)field->highest, items);
}

static void opaque_schema(struct json *schema)
{
    json_set_string(schema, "type", "object");
    json_set_boolean(schema, PRESERVE, true);
}

static void kind_schema(const struct field *field, struct json *schema)
{
    switch (field->kind) {
    case FIELD_STRING:
        text_bounds(field->min, field->max, field->format, schema);
        return;
    case FIELD_INTEGER:
        integer_bounds(field->min, field->max, schema);
        return;
    case FIELD_DECIMAL:
        decimal_schema(field, schema);
        return;
    case FIELD_BOOLEAN:
        json_set_string(schema, "type", "boolean");
        return;
    case FIELD_ENUM:
        enum_schema(field, schema);
        return;
    case FIELD_TIME:
        json_set_string(schema, "type", "string");
        json_set_string(schema, "format", "date-time");
        return;
    case FIELD_OBJECT:
        object_schema(field->type, true, schema);
        if (field->flags & FIELD_MUTABLE_INSIDE)
            immutability_rules(field->type, schema);
        return;
    case FIELD_LIST:
    case FIELD_STRING_LIST:
    case FIELD_INTEGER_LIST:
    case FIELD_SCALAR_LIST:
        list_schema(field, schema);
        return;
    case FIELD_OPAQUE:
    case FIELD_VOLUME:
        opaque_schema(schema);
        return;
    }
}

static struct json *field_schema(const struct field *field)
{
    struct json *schema = json_new_object();
    json_set_string(schema, "description", field->description);
    kind_schema(field, schema);
    json_set(schema, "default", field_default_value(field));
    return schema;
}

static void object_schema(const struct object_type *type, bool with_rules, struct json *schema)
{
    json_set_string(schema, "type", "object");
    struct json *properties = json_set_object(schema, "properties");
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        json_set(properties, at.field->name, field_schema(at.field));
        if (at.field->flags & FIELD_REQUIRED)
            json_append_string(json_set_array(schema, "required"), at.field->name);
    }
    if (with_rules) {
        table_rules(type, schema);
        belongings_visit(type, belonging_rule, schema);
    }
}

/* ---------------------------------------------------------------- the resource */

static void plain_property(struct json *properties, const char *name, const char *type, const char *description)
{
    struct json *property = json_set_object(properties, name);
    json_set_string(property, "description", description);
    json_set_string(property, "type", type);
}

struct column {
    const char *name, *type, *path;
    int priority;
    const char *description;
};

/* One CustomResourceDefinition. */
struct definition {
    const char *kind, *plural, *singular, *short_name;
    const char *description, *spec_description;
    const struct object_type *spec, *status;
    int name_max;
    const char *name_message;
    const struct column *columns; /* ends with one without a name */
    bool scales;
    bool is_cluster_wide;
    bool is_mutable; /* every field of the spec may change */
};

static void name_rule(const struct definition *definition, struct json *schema)
{
    char cel[256];
    snprintf(cel, sizeof cel, "self.metadata.name.size() <= %d && self.metadata.name.matches('%s')",
             definition->name_max, string_format_expression(STRING_FORMAT_JOB_NAME));
    add_rule(schema, cel, definition->name_message, "metadata.name");
}

/* A schema may speak of nothing but the name here, and has to for the rule to point at it. */
static void metadata_schema(struct json *schema)
{
    json_set_string(schema, "type", "object");
    json_set_string(json_set_object(json_set_object(schema, "properties"), "name"), "type", "string");
}

static struct json *root_schema(const struct definition *definition)
{
    char kind[64];
    snprintf(kind, sizeof kind, "%s.", definition->kind);
    struct json *schema = json_new_object();
    json_set_string(schema, "description", definition->description);
    json_set_string(schema, "type", "object");
    json_append_string(json_set_array(schema, "required"), "spec");
    struct json *properties = json_set_object(schema, "properties");
    plain_property(properties, "apiVersion", "string", API_GROUP_VERSION ".");
    plain_property(properties, "kind", "string", kind);
    metadata_schema(json_set_object(properties, "metadata"));
    struct json *spec = json_set_object(properties, "spec");
    json_set_string(spec, "description", definition->spec_description);
    object_schema(definition->spec, true, spec);
    if (!definition->is_mutable)
        immutability_rules(definition->spec, spec);
    if (definition->status) {
        struct json *status = json_set_object(properties, "status");
        json_set_string(status, "description", "What the operator has observed.");
        object_schema(definition->status, false, status);
    }
    if (definition->name_max > 0)
        name_rule(definition, schema);
    if (!definition->is_mutable)
        suspension_rules(definition->spec, "spec", false, schema);
    return schema;
}

/* ---------------------------------------------------------------- version and definition */

static const struct column job_columns[] = {
    {"State", "string", ".status.conditions[?(@.status==\"True\")].type", 0, "The first condition that is True."},
    {"Ready", "string", ".status.readySummary", 0, "Ready pods of those required."},
    {"Step", "integer", ".status.progress.step", 0, "Optimizer steps applied."},
    {"Loss", "string", ".status.progress.metrics[?(@.name==\"loss\")].value", 0, "Last training loss."},
    {"Restarts", "integer", ".status.restarts.total", 0, "Replacements of pods."},
    {"Age", "date", ".metadata.creationTimestamp", 0, "Time since creation."},
    {"Strategy", "string", ".spec.coxswain.strategy.type", 1, "The strategy by which the workers share the training."},
    {"Throughput", "string", ".status.progress.examplesPerSecond", 1, "Examples a second."},
    {"ETA", "integer", ".status.progress.secondsRemaining", 1, "Seconds to the last step."},
    {.name = NULL},
};

static const struct column sweep_columns[] = {
    {"State", "string", ".status.conditions[?(@.status==\"True\")].type", 0, "The first condition that is True."},
    {"Trials", "integer", ".status.trials.total", 0, "Number of trials in total."},
    {"Running", "integer", ".status.trials.running", 0, "Trials that are running."},
    {"Succeeded", "integer", ".status.trials.succeeded", 0, "Trials that succeeded."},
    {"Failed", "integer", ".status.trials.failed", 0, "Trials that failed."},
    {"Best", "string", ".status.best.trial", 0, "The best trial so far."},
    {"Objective", "string", ".status.best.objective", 0, "Its value of the metric."},
    {"Age", "date", ".metadata.creationTimestamp", 0, "Time since creation."},
    {"Metric", "string", ".spec.objective.metric", 1, "Metric by which trials are compared."},
    {"Diverged", "integer", ".status.trials.diverged", 1, "Trials whose loss became infinite or not a number."},
    {"Stopped", "integer", ".status.trials.stopped", 1, "Trials that were stopped early."},
    {"Paused", "integer", ".status.trials.paused", 1, "Trials that are paused, and may go on."},
    {.name = NULL},
};

static const struct definition job_definition = {
    .kind = TRAINING_JOB_KIND,
    .plural = TRAINING_JOB_PLURAL,
    .singular = "trainingjob",
    .short_name = "tj",
    .description =
        "A TrainingJob trains a neural network on a group of pods, and continues training when some of them are lost.",
    .spec_description = "The model, its data, and how it is trained. At any time suspend, the deadlines, the time to "
                        "live and the workers of an elastic job may change; while the job is suspended also image, "
                        "templates, devices.resourceName and backoffLimit.",
    .spec = &training_job_spec_type,
    .status = &training_job_status_type,
    .name_max = JOB_NAME_MAX,
    .name_message = JOB_NAME_MESSAGE,
    .columns = job_columns,
    .scales = true,
};

static const struct definition sweep_definition = {
    .kind = TRAINING_SWEEP_KIND,
    .plural = TRAINING_SWEEP_PLURAL,
    .singular = "trainingsweep",
    .short_name = "ts",
    .description = "A TrainingSweep runs many TrainingJobs that differ in some fields, and finds the best of them.",
    .spec_description = "The job that each trial runs, the parameters in which trials differ, and the metric that "
                        "compares them. The fields suspend, parallelism, maxTrials, "
                        "maxFailedTrials, budget and ttlSecondsAfterFinished may change.",
    .spec = &training_sweep_spec_type,
    .status = &training_sweep_status_type,
    .name_max = SWEEP_NAME_MAX,
    .name_message = SWEEP_NAME_MESSAGE,
    .columns = sweep_columns,
};

static const struct column class_columns[] = {
    {"Image", "string", ".spec.image", 0, "Container image of jobs that name none."},
    {"Queue", "string", ".spec.queueName", 0, "LocalQueue of jobs without the label."},
    {"Age", "date", ".metadata.creationTimestamp", 0, "Time since creation."},
    {.name = NULL},
};

#define CLASS_SPEC                                                                                                     \
    "Defaults of jobs that name this class in spec.trainingClass. The job's own value wins. A change reaches only "    \
    "jobs that are created after it."

/* Kubernetes bounds the name. */
static const struct definition class_definition = {
    .kind = TRAINING_CLASS_KIND,
    .plural = TRAINING_CLASS_PLURAL,
    .singular = "trainingclass",
    .short_name = "tc",
    .description =
        "A TrainingClass holds an administrator's defaults for the TrainingJobs of its namespace that name it.",
    .spec_description = CLASS_SPEC,
    .spec = &training_class_spec_type,
    .columns = class_columns,
    .is_mutable = true,
};

static const struct definition cluster_class_definition = {
    .kind = CLUSTER_TRAINING_CLASS_KIND,
    .plural = CLUSTER_TRAINING_CLASS_PLURAL,
    .singular = "clustertrainingclass",
    .short_name = "ctc",
    .description = "A ClusterTrainingClass holds an administrator's defaults for the TrainingJobs that name it.",
    .spec_description = CLASS_SPEC,
    .spec = &training_class_spec_type,
    .columns = class_columns,
    .is_cluster_wide = true,
    .is_mutable = true,
};

static void columns_add(const struct column *column, struct json *version)
{
    struct json *list = json_set_array(version, "additionalPrinterColumns");
    for (; column->name; column++) {
        struct json *entry = json_append(list, json_new_object());
        json_set_string(entry, "name", column->name);
        json_set_string(entry, "type", column->type);
        json_set_string(entry, "jsonPath", column->path);
        json_set_string(entry, "description", column->description);
        if (column->priority > 0)
            json_set_integer(entry, "priority", column->priority);
    }
}

static void subresources_add(bool scales, struct json *version)
{
    struct json *subresources = json_set_object(version, "subresources");
    json_set_object(subresources, "status");
    if (!scales)
        return;
    struct json *scale = json_set_object(subresources, "scale");
    json_set_string(scale, "specReplicasPath", ".spec.workers.replicas");
    json_set_string(scale, "statusReplicasPath", ".status.workers");
    json_set_string(scale, "labelSelectorPath", ".status.selector");
}

static void names_add(const struct definition *definition, struct json *spec)
{
    char list_kind[64];
    snprintf(list_kind, sizeof list_kind, "%sList", definition->kind);
    struct json *names = json_set_object(spec, "names");
    json_set_string(names, "kind", definition->kind);
    json_set_string(names, "listKind", list_kind);
    json_set_string(names, "plural", definition->plural);
    json_set_string(names, "singular", definition->singular);
    json_append_string(json_set_array(names, "shortNames"), definition->short_name);
    if (!definition->is_mutable) /* classes are no work load */
        json_append_string(json_set_array(names, "categories"), "all");
}

static struct json *definition_json(const struct definition *definition)
{
    char name[128];
    snprintf(name, sizeof name, "%s." API_GROUP, definition->plural);
    struct json *crd = json_new_object();
    json_set_string(crd, "apiVersion", "apiextensions.k8s.io/v1");
    json_set_string(crd, "kind", "CustomResourceDefinition");
    json_set_string(json_set_object(crd, "metadata"), "name", name);
    struct json *spec = json_set_object(crd, "spec");
    json_set_string(spec, "group", API_GROUP);
    json_set_string(spec, "scope", definition->is_cluster_wide ? "Cluster" : "Namespaced");
    names_add(definition, spec);
    struct json *version = json_append(json_set_array(spec, "versions"), json_new_object());
    json_set_string(version, "name", API_VERSION);
    json_set_boolean(version, "served", true);
    json_set_boolean(version, "storage", true);
    columns_add(definition->columns, version);
    if (definition->status)
        subresources_add(definition->scales, version);
    json_set(json_set_object(version, "schema"), "openAPIV3Schema", root_schema(definition));
    return crd;
}

static int generate(const struct definition *definition, const char *sources, struct buffer *out, struct error *error)
{
    SCOPED_JSON *crd = definition_json(definition);
    if (buffer_format(out,
                      "# SPDX-License-Identifier: Apache-2.0\n"
                      "# Generated by `make generate` from common/job/%s; do not edit.\n",
                      sources) < 0)
        return error_set(error, ERROR_TOO_LARGE,
                         "the definition does not fit into its buffer: raise OUTPUT_MAX in common/job/generate/main.c");
    return yaml_print(crd, out, error);
}

int crd_generate(struct buffer *out, struct error *error)
{
    return generate(&job_definition, "fields.c and rules.c", out, error);
}

int sweep_crd_generate(struct buffer *out, struct error *error)
{
    return generate(&sweep_definition, "sweep_fields.c and rules.c", out, error);
}

int cluster_class_crd_generate(struct buffer *out, struct error *error)
{
    return generate(&cluster_class_definition, "fields.c and rules.c", out, error);
}

int class_crd_generate(struct buffer *out, struct error *error)
{
    return generate(&class_definition, "fields.c and rules.c", out, error);
}
