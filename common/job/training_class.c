/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/training_class.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/job/field_check.h"
#include "common/job/template_overlay.h"
#include "common/memory.h"

/* ---------------------------------------------------------------- templates */

static bool is_named(const struct json *list, const char *name)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return true;
    return false;
}

/* Gives the class's main container the name that the job's has, so that the two are merged. If the class has a container of that name,
 * the job changes that one, and the class's main container stays. */
static void rename_main(struct json *template, const struct json *own)
{
    struct json *main = template_main_container(template);
    const char *name = json_string_at(template_main_container(own), "name", NULL);
    if (main && name && !is_named(json_at(template, "spec.containers"), name))
        json_set_string(main, "name", name);
}

static bool is_same_taint(const struct json *one, const struct json *other)
{
    static const char *const keys[] = {"key", "effect"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(json_string_at(one, keys[i], ""), json_string_at(other, keys[i], "")) != 0)
            return false;
    return true;
}

static bool tolerates(const struct json *list, const struct json *toleration)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (is_same_taint(item, toleration))
            return true;
    return false;
}

/* Merging has replaced the class's tolerations by the job's: adds those again for which the job has none. */
static void add_tolerations(struct json *template, const struct json *tolerations)
{
    struct json *merged = json_at(template, "spec.tolerations");
    for (const struct json *item = json_first(tolerations); json_type(merged) == JSON_ARRAY && item;
         item = json_next(item))
        if (!tolerates(merged, item))
            json_append(merged, json_copy(item));
}

/* A template that is too broad is refused when a pod is made of it. */
static struct json *merged_template(const struct json *defaults, const struct json *own, bool has_image)
{
    if (own && template_overlay_check(own, NULL) < 0)
        return json_copy(own);
    struct json *template = json_copy(defaults);
    if (has_image) /* the main container runs it, whatever image the class's template names */
        json_remove(template_main_container(template), "image");
    if (!own)
        return template;
    rename_main(template, own);
    template_merge(template, own);
    add_tolerations(template, json_at(defaults, "spec.tolerations"));
    return template;
}

/* Merges the template of the class into that of each role of the job. A job without the section `workers` has workers, too. */
static void merge_templates(struct json *spec, const struct json *defaults, bool has_image)
{
    for (int role = 0; role < ROLE_COUNT && json_type(defaults) == JSON_OBJECT; role++) {
        const char *name = role_section((enum role)role);
        struct json *section = json_member(spec, name);
        if (!section && role == ROLE_WORKER)
            section = json_set_object(spec, name);
        if (json_type(section) != JSON_OBJECT)
            continue;
        const struct json *own = json_member(section, "template");
        if (!own || json_type(own) == JSON_OBJECT)
            json_set(section, "template", merged_template(defaults, own, has_image));
    }
}

/* ---------------------------------------------------------------- the rest */

static void merge_storage(struct json *spec, const struct json *defaults)
{
    struct json *own = json_member(spec, "storage");
    if (json_count(defaults) == 0 || (own && json_type(own) != JSON_ARRAY))
        return;
    own = own ? own : json_set_array(spec, "storage");
    for (const struct json *item = json_first(defaults); item; item = json_next(item))
        if (!is_named(own, json_string_at(item, "name", "")))
            json_append(own, json_copy(item));
}

static void merge_run_policy(struct json *spec, const struct json *defaults)
{
    struct json *own = json_count(defaults) > 0 ? json_set_object(spec, "runPolicy") : NULL;
    for (const struct json *member = json_first(defaults); own && member; member = json_next(member))
        if (!json_member(own, json_key(member)))
            json_set(own, json_key(member), json_copy(member));
}

void training_class_merge(struct json *spec, const struct json *defaults)
{
    const struct json *image = json_member(defaults, "image");
    bool has_image = json_member(spec, "image") != NULL;
    merge_templates(spec, json_member(defaults, "template"), has_image);
    merge_storage(spec, json_member(defaults, "storage"));
    merge_run_policy(spec, json_member(defaults, "runPolicy"));
    if (image && !has_image)
        json_set(spec, "image", json_copy(image));
}

char *training_class_words(const struct training_job *job)
{
    const struct pinned_class *class = &job->status.training_class;
    if (!class->name || !class->defaults)
        return memory_copy_string("");
    return memory_format(" (with the defaults of %s %s)", training_class_kind_words[class->kind], class->name);
}

bool training_class_is_kind(const struct json *object)
{
    const char *kind = json_string_at(object, "kind", "");
    return strcmp(kind, CLUSTER_TRAINING_CLASS_KIND) == 0 || strcmp(kind, TRAINING_CLASS_KIND) == 0;
}

const char *training_class_plural(enum training_class_kind kind)
{
    return kind == TRAINING_CLASS_NAMESPACED ? TRAINING_CLASS_PLURAL : CLUSTER_TRAINING_CLASS_PLURAL;
}

/* ---------------------------------------------------------------- check */

static void find_violations(const struct json *object, struct violations *violations)
{
    const struct json *spec = json_member(object, "spec");
    size_t length = violations_enter(violations, "spec");
    if (spec)
        fields_check(&training_class_spec_type, spec, NULL, false, violations);
    else
        violations_add(violations, NULL, "is missing; it is required");
    violations_leave(violations, length);
}

struct json *training_class_violations(const struct json *object)
{
    struct violations violations;
    violations_init(&violations, "");
    find_violations(object, &violations);
    return violations.list;
}

/* Returns the first member that is null, at any depth. */
static const struct json *find_null(const struct json *value)
{
    if (json_type(value) == JSON_NULL)
        return value;
    const struct json *found = NULL;
    for (const struct json *item = json_first(value); item && !found; item = json_next(item))
        found = find_null(item);
    return found;
}

static int check_nulls(const struct json *spec, struct error *error)
{
    const struct json *null = find_null(spec);
    if (!null)
        return 0;
    const char *name = json_key(null);
    return error_set(
        error, ERROR_INVALID,
        "spec has null as %s, which the copy in each job cannot hold: leave it out; only a job's own template "
        "can remove a field with null",
        name ? name : "an element of a list");
}

int training_class_check(const struct json *object, struct error *error)
{
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, "");
    find_violations(object, &violations);
    if (violations_to_error(&violations, error) < 0)
        return -1;
    const struct json *spec = json_member(object, "spec");
    if (check_nulls(spec, error) < 0)
        return -1;
    if (template_overlay_check(json_member(spec, "template"), error) < 0)
        return error_wrap(error, "spec.template");
    SCOPED_BUFFER text = BUFFER_INIT(TRAINING_CLASS_MAX);
    if (json_print(spec, &text, NULL) < 0)
        return error_set(error, ERROR_INVALID,
                         "spec is larger than %d KiB as JSON; make it smaller, since each job keeps a copy",
                         TRAINING_CLASS_MAX / 1024);
    return 0;
}
