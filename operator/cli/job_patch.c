/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_patch.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/job/fields.h"
#include "common/job/training_class.h"

static bool are_objects(const struct json *a, const struct json *b)
{
    return json_type(a) == JSON_OBJECT && json_type(b) == JSON_OBJECT;
}

static void ask_for_defaults(const struct json *present, struct json *patch)
{
    for (const struct json *item = json_first(present); item; item = json_next(item)) {
        struct json *wanted = json_member(patch, json_key(item));
        if (!wanted)
            json_set(patch, json_key(item), json_new_null());
        else if (are_objects(item, wanted))
            ask_for_defaults(item, wanted);
    }
}

static void complete(const struct object_type *type, const struct json *present, struct json *patch);

static void complete_inside(const struct field *field, const struct json *value, struct json *patch)
{
    bool was_wanted = json_member(patch, field->name) != NULL;
    struct json *inside = json_set_object(patch, field->name);
    complete(field->type, value, inside);
    if (!was_wanted && json_count(inside) == 0)
        json_remove(patch, field->name);
}

static void complete(const struct object_type *type, const struct json *present, struct json *patch)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        const struct field *field = at.field;
        const struct json *value = json_member(present, field->name), *wanted = json_member(patch, field->name);
        if (!value || field->flags & FIELD_MUTABLE)
            continue;
        if (field->flags & FIELD_MUTABLE_INSIDE && (wanted ? are_objects(value, wanted) : field->fallback != NULL))
            complete_inside(field, value, patch);
        else if (!wanted)
            json_set(patch, field->name, json_new_null());
        else if (are_objects(value, wanted))
            ask_for_defaults(value, json_member(patch, field->name));
    }
}

/* A merge patch replaces lists whole, and API servers drop nulls within them, which they keep at creation. */
static void leave_out_same_lists(const struct json *present, struct json *patch)
{
    for (const struct json *item = json_first(present); item; item = json_next(item)) {
        struct json *wanted = json_member(patch, json_key(item));
        if (are_objects(item, wanted))
            leave_out_same_lists(item, wanted);
        else if (json_type(item) == JSON_ARRAY && json_equal(item, wanted))
            json_remove(patch, json_key(item));
    }
}

struct json *job_patch(const struct json *wanted, const struct json *present)
{
    struct json *patch = json_copy(wanted), *spec = json_member(patch, "spec");
    const struct json *present_spec = json_member(present, "spec");
    bool is_sweep = strcmp(json_string_at(wanted, "kind", ""), TRAINING_SWEEP_KIND) == 0;
    if (!are_objects(spec, present_spec))
        return patch;
    if (training_class_is_kind(wanted))
        ask_for_defaults(present_spec, spec);
    else
        complete(is_sweep ? &training_sweep_spec_type : &training_job_spec_type, present_spec, spec);
    leave_out_same_lists(present_spec, spec);
    return patch;
}
