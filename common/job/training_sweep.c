/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/training_sweep.h"

#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/job/condition_list.h"
#include "common/job/enum_words.h"
#include "common/job/field_check.h"
#include "common/job/field_default.h"
#include "common/job/field_read.h"
#include "common/job/field_write.h"
#include "common/job/immutability.h"
#include "common/job/sweep_value.h"

/* ---------------------------------------------------------------- read */

static void metadata_read(const struct json *object, struct training_sweep *sweep)
{
    struct arena *arena = &sweep->arena;
    sweep->name = arena_copy_string(arena, json_string_at(object, "metadata.name", ""));
    sweep->namespace = arena_copy_string(arena, json_string_at(object, "metadata.namespace", ""));
    sweep->uid = arena_copy_string(arena, json_string_at(object, "metadata.uid", ""));
    sweep->resource_version = arena_copy_string(arena, json_string_at(object, "metadata.resourceVersion", ""));
    sweep->generation = json_integer_at(object, "metadata.generation", 0);
    sweep->deleted_ms = FIELD_UNSET;
    clock_parse(json_string_at(object, "metadata.deletionTimestamp", ""), &sweep->deleted_ms);
    sweep->queue_name =
        arena_copy_string(arena, json_string(json_member(json_at(object, "metadata.labels"), LABEL_QUEUE_NAME), NULL));
}

static void status_read(const struct json *object, struct training_sweep *sweep)
{
    struct sweep_status *status = &sweep->status;
    fields_unset(&training_sweep_status_type, status);
    fields_read(&training_sweep_status_type, object, status, &(struct field_reader){.arena = &sweep->arena});
    status->other_conditions = condition_list_read(json_member(object, "conditions"), sweep_condition_words,
                                                   status->conditions, &sweep->arena);
}

/* ---------------------------------------------------------------- check */

bool sweep_name_holds(const char *name)
{
    return strlen(name) <= SWEEP_NAME_MAX && job_name_holds(name);
}

static void violations_find(const struct json *object, const struct json *old, struct violations *violations)
{
    const char *name = json_string_at(object, "metadata.name", NULL);
    if (name && !sweep_name_holds(name)) {
        size_t length = violations_enter(violations, "metadata");
        violations_add(violations, "name", "%s", SWEEP_NAME_MESSAGE);
        violations_leave(violations, length);
    }
    const struct json *spec = json_member(object, "spec"), *old_spec = json_member(old, "spec");
    size_t length = violations_enter(violations, "spec");
    if (spec == NULL)
        violations_add(violations, NULL, "is missing; it is required");
    else
        fields_check(&training_sweep_spec_type, spec, old_spec, false, violations);
    if (spec && old_spec)
        immutability_check(&training_sweep_spec_type, spec, old_spec, false, violations);
    violations_leave(violations, length);
}

static struct json *with_defaults(const struct json *object)
{
    struct json *filled = json_new_object();
    json_set(filled, "metadata", json_copy(json_member(object, "metadata")));
    json_set(filled, "spec", json_copy(json_member(object, "spec")));
    fields_default(&training_sweep_spec_type, json_member(filled, "spec"));
    return filled;
}

int training_sweep_parse(const struct json *object, struct training_sweep *ret_sweep, struct error *error)
{
    *ret_sweep = (struct training_sweep){.opaque = json_new_array()};
    fields_unset(&training_sweep_spec_type, ret_sweep);
    metadata_read(object, ret_sweep);
    status_read(json_member(object, "status"), ret_sweep);
    SCOPED_JSON *filled = with_defaults(object);
    struct field_reader reader = {.arena = &ret_sweep->arena, .opaque = ret_sweep->opaque};
    fields_read(&training_sweep_spec_type, json_member(filled, "spec"), ret_sweep, &reader);
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, "");
    violations_find(filled, NULL, &violations);
    return violations_to_error(&violations, error);
}

void training_sweep_release(struct training_sweep *sweep)
{
    arena_release(&sweep->arena);
    json_free(sweep->opaque);
    *sweep = (struct training_sweep){0};
}

struct json *training_sweep_violations(const struct json *object, const struct json *old)
{
    SCOPED_JSON *filled = with_defaults(object);
    SCOPED_JSON *old_filled = old ? with_defaults(old) : NULL;
    struct violations violations;
    violations_init(&violations, "");
    violations_find(filled, old_filled, &violations);
    return violations.list;
}

/* ---------------------------------------------------------------- grid */

int64_t sweep_grid_size(const struct json *spec)
{
    struct training_sweep sweep = {.opaque = json_new_array()};
    fields_unset(&training_sweep_spec_type, &sweep);
    struct field_reader reader = {.arena = &sweep.arena, .opaque = sweep.opaque};
    fields_read(&training_sweep_spec_type, spec, &sweep, &reader);
    int64_t size = sweep_point_count(&sweep);
    training_sweep_release(&sweep);
    return size;
}

/* ---------------------------------------------------------------- status */

struct json *sweep_status_to_json(const struct sweep_status *status)
{
    struct json *object = json_new_object();
    fields_write(&training_sweep_status_type, status, object);
    condition_list_write(status->conditions, sweep_condition_words, status->other_conditions, object);
    return object;
}
