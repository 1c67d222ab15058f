/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/admission.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/training_class.h"
#include "common/job/training_sweep.h"
#include "operator/standalone/builtin_types.h"
#include "operator/standalone/pod_fields.h"
#include "operator/standalone/schema.h"
#include "operator/standalone/string_data.h"

/* ---- names and labels ---- */

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* DNS-1123: 1 to `longest` characters of a-z, 0-9, '-' and, when `dots`, '.', each part beginning and ending with a
 * letter or digit. */
static bool is_dns_name(const char *name, size_t longest, bool dots)
{
    size_t length = strlen(name);
    if (length == 0 || length > longest)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool first = i == 0 || name[i - 1] == '.', last = i + 1 == length || name[i + 1] == '.';
        bool inner = name[i] == '-' && !first && !last;
        bool dot = name[i] == '.' && dots && !first && i + 1 < length;
        if (!is_name_character(name[i]) && !inner && !dot)
            return false;
    }
    return true;
}

#define SUBDOMAIN_RULE                                                                                                 \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "   \
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "                        \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL_RULE                                                                                                     \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "    \
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "                     \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

static void check_name(const struct resource *resource, const struct json *object, struct json *causes)
{
    const struct json *value = json_at(object, "metadata.name");
    const char *name = json_string(value, "");
    bool label = strcmp(resource->storage, "services") == 0 || strcmp(resource->storage, "namespaces") == 0;
    if (name[0] == '\0') {
        cause_add(causes, CAUSE_REQUIRED, "metadata.name", NULL, "name or generateName is required");
        return;
    }
    if (!is_dns_name(name, label ? 63 : 253, !label))
        cause_add(causes, CAUSE_INVALID, "metadata.name", value, label ? LABEL_RULE : SUBDOMAIN_RULE);
}

static bool is_qualified_part(const char *text, size_t length)
{
    if (length == 0 || length > 63 || !isalnum((unsigned char)text[0]) || !isalnum((unsigned char)text[length - 1]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("-_.", text[i]) == NULL)
            return false;
    return true;
}

static bool is_label_key(const char *key)
{
    const char *slash = strchr(key, '/');
    if (slash == NULL)
        return is_qualified_part(key, strlen(key));
    char prefix[254];
    size_t length = (size_t)(slash - key);
    if (length >= sizeof prefix)
        return false;
    memcpy(prefix, key, length);
    prefix[length] = '\0';
    return is_dns_name(prefix, 253, true) && is_qualified_part(slash + 1, strlen(slash + 1));
}

#define LABEL_VALUE_RULE                                                                                               \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "    \
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "  \
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define LABEL_KEY_RULE                                                                                                 \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " \
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "                            \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static void check_labels(const struct json *object, struct json *causes)
{
    const struct json *labels = json_at(object, "metadata.labels");
    for (const struct json *label = json_first(labels); label; label = json_next(label)) {
        const char *value = json_string(label, NULL);
        if (!is_label_key(json_key(label))) {
            SCOPED_JSON *key = json_new_string(json_key(label));
            cause_add(causes, CAUSE_INVALID, "metadata.labels", key, LABEL_KEY_RULE);
        }
        if (value == NULL || (value[0] && !is_qualified_part(value, strlen(value))))
            cause_add(causes, CAUSE_INVALID, "metadata.labels", label, LABEL_VALUE_RULE);
    }
}

static void check_owners(const struct json *object, struct json *causes)
{
    const struct json *owners = json_at(object, "metadata.ownerReferences");
    size_t index = 0;
    static const char *const required[] = {"apiVersion", "kind", "name", "uid"};
    for (const struct json *owner = json_first(owners); owner; owner = json_next(owner), index++) {
        for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
            char field[64];
            snprintf(field, sizeof field, "metadata.ownerReferences[%zu].%s", index, required[i]);
            if (json_string_at(owner, required[i], "")[0] == '\0')
                cause_add(causes, CAUSE_INVALID, field, json_member(owner, required[i]), "must not be empty");
        }
    }
}

static const struct {
    const char *field;
    enum json_type type;
    const char *go;
} metadata_types[] = {
    {"name", JSON_STRING, "string"},
    {"generateName", JSON_STRING, "string"},
    {"namespace", JSON_STRING, "string"},
    {"uid", JSON_STRING, "types.UID"},
    {"resourceVersion", JSON_STRING, "string"},
    {"labels", JSON_OBJECT, "map[string]string"},
    {"annotations", JSON_OBJECT, "map[string]string"},
    {"ownerReferences", JSON_ARRAY, "[]v1.OwnerReference"},
    {"finalizers", JSON_ARRAY, "[]string"},
};

static struct json *bad_metadata(const struct resource *resource, const char *field, const struct json *value,
                                 const char *go)
{
    return refusal_bad_request("%s in version \"%s\" cannot be handled as a %s: json: cannot unmarshal %s into Go "
                               "struct field ObjectMeta.metadata.%s of type %s",
                               resource->kind, resource->version, resource->kind, json_type_name(json_type(value)),
                               field, go);
}

static bool all_strings(const struct json *container)
{
    for (const struct json *item = json_first(container); item; item = json_next(item))
        if (json_type(item) != JSON_STRING)
            return false;
    return true;
}

static struct json *check_metadata_types(const struct resource *resource, struct json *object)
{
    struct json *metadata = json_member(object, "metadata");
    if (metadata && json_type(metadata) != JSON_OBJECT)
        return bad_metadata(resource, "", metadata, "v1.ObjectMeta");
    for (size_t i = 0; i < sizeof metadata_types / sizeof metadata_types[0]; i++) {
        const char *field = metadata_types[i].field;
        const struct json *value = json_member(metadata, field);
        if (json_type(value) == JSON_NULL)
            json_remove(metadata, field);
        else if (value && json_type(value) != metadata_types[i].type)
            return bad_metadata(resource, field, value, metadata_types[i].go);
        else if (value && strcmp(field, "ownerReferences") != 0 && !all_strings(value))
            return bad_metadata(resource, field, json_first(value), "string");
    }
    return NULL;
}

/* ---- custom types ---- */

static struct json *strict_refusal(const struct write *write, const struct json *unknown)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 20);
    for (const struct json *path = json_first(unknown); path; path = json_next(path))
        buffer_format(&text, "%sunknown field \"%s\"", text.length ? ", " : "", json_string(path, ""));
    return refusal_bad_request("%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s",
                               write->resource->kind, write->resource->version, write->resource->kind,
                               buffer_text(&text));
}

static struct json *report_unknown(const struct write *write, const struct json *unknown)
{
    if (json_count(unknown) == 0 || write->field_validation == FIELD_VALIDATION_IGNORE)
        return NULL;
    if (write->field_validation == FIELD_VALIDATION_STRICT)
        return strict_refusal(write, unknown);
    for (const struct json *path = json_first(unknown); path; path = json_next(path)) {
        char warning[1024];
        snprintf(warning, sizeof warning, "unknown field \"%s\"", json_string(path, ""));
        json_append_string(write->warnings, warning);
    }
    return NULL;
}

static bool is_ours(const struct resource *resource, const char *kind)
{
    return strcmp(resource->group, API_GROUP) == 0 && strcmp(resource->kind, kind) == 0;
}

/* NULL: of other types. */
static struct json *violations_of(const struct resource *resource, const struct json *object, const struct json *old)
{
    return is_ours(resource, TRAINING_JOB_KIND)     ? training_job_violations(object, old)
           : is_ours(resource, TRAINING_SWEEP_KIND) ? training_sweep_violations(object, old)
           : is_ours(resource, CLUSTER_TRAINING_CLASS_KIND) || is_ours(resource, TRAINING_CLASS_KIND)
               ? training_class_violations(object)
               : NULL;
}

/* Rules run on what the schema accepts, as in the real one. */
static void check_rules(const struct write *write, const struct json *object, const struct json *old,
                        struct json *causes)
{
    if (json_count(causes) > 0 || write->status)
        return;
    SCOPED_JSON *violations = violations_of(write->resource, object, old);
    for (const struct json *violation = json_first(violations); violation; violation = json_next(violation)) {
        const char *field = json_string_at(violation, "field", "");
        cause_add(causes, CAUSE_INVALID, field, NULL, json_string_at(violation, "message", ""));
    }
}

static struct json *check_custom(const struct write *write, struct json *object, const struct json *old,
                                 struct json *causes)
{
    const struct json *schema = json_at(write->resource->version_definition, "schema.openAPIV3Schema");
    SCOPED_JSON *unknown = json_new_array();
    schema_prune(schema, object, unknown);
    struct json *refused = report_unknown(write, unknown);
    if (refused)
        return refused;
    schema_default(schema, object);
    schema_validate(schema, object, causes);
    check_rules(write, object, old, causes);
    return NULL;
}

/* ---- pods ---- */

/* Pods that an earlier release has stored may have any quantities. Unlike a real API server's refusal, this one names the field. */
static struct json *check_pod_fields(const struct write *write, struct json *object, const struct json *old)
{
    const struct resource *resource = write->resource;
    if (resource->group[0] || strcmp(resource->kind, "Pod") != 0)
        return NULL;
    SCOPED_JSON *unknown = json_new_array();
    SCOPED_FREE char *wrong = pod_fields_check(object, unknown);
    return wrong && !old ? refusal_bad_request("Pod in version \"v1\" cannot be handled as a Pod: %s", wrong)
                         : report_unknown(write, unknown);
}

/* ---- the gate ---- */

struct json *admission_check(const struct write *write, struct json *object, const struct json *old)
{
    const struct resource *resource = write->resource;
    struct json *refused = check_metadata_types(resource, object);
    if (refused == NULL)
        refused = string_data_refuse(resource, object);
    if (refused == NULL)
        refused = check_pod_fields(write, object, old);
    if (refused)
        return refused;
    SCOPED_JSON *causes = json_new_array();
    check_name(resource, object, causes);
    check_labels(object, causes);
    check_owners(object, causes);
    string_data_check(resource, object, causes);
    if (resource->definition)
        refused = check_custom(write, object, old, causes);
    else
        builtin_check(resource, object, write->status ? NULL : old, causes);
    if (refused || json_count(causes) == 0)
        return refused;
    struct json *taken = causes;
    causes = NULL;
    return refusal_invalid(resource, json_string_at(object, "metadata.name", ""), taken);
}

void admission_prepare_new(const struct resource *resource, struct json *object)
{
    if (resource->definition) {
        if (resource->has_status)
            json_remove(object, "status");
        return;
    }
    builtin_default(resource, object);
    builtin_prepare_new(resource, object);
}
