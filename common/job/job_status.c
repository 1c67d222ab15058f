/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/job_status.h"

#include <string.h>

#include "common/clock.h"
#include "common/job/condition_list.h"
#include "common/job/enum_words.h"
#include "common/job/field_read.h"
#include "common/job/field_write.h"

static const struct {
    const char *name;
    size_t offset;
} replica_counts[] = {
    {"active", offsetof(struct replica_status, active)},
    {"ready", offsetof(struct replica_status, ready)},
    {"succeeded", offsetof(struct replica_status, succeeded)},
    {"failed", offsetof(struct replica_status, failed)},
};
#define REPLICA_COUNTS (sizeof replica_counts / sizeof *replica_counts)

/* ---------------------------------------------------------------- read */

static int64_t *replica_count(struct replica_status *replicas, size_t index)
{
    return (int64_t *)(void *)((char *)replicas + replica_counts[index].offset);
}

/* Indices without a time that can be read are none. */
static void back_off_read(const struct json *item, struct replica_status *replicas, struct arena *arena)
{
    const char *indices = json_string_at(item, "backingOff", NULL);
    int64_t until_ms;
    if (!indices || !clock_parse(json_string_at(item, "backoffUntil", ""), &until_ms))
        return;
    replicas->backing_off = arena_copy_string(arena, indices);
    replicas->backoff_until_ms = until_ms;
}

/* status.replicaStatuses has the counts, status.controllerState.roles the indices. */
static void replicas_read(const struct json *object, struct job_status *status, struct arena *arena)
{
    enum role role;
    memset(status->replicas, 0, sizeof status->replicas);
    for (const struct json *item = json_first(json_member(object, "replicaStatuses")); item; item = json_next(item))
        for (size_t i = 0; role_parse(json_string_at(item, "role", ""), &role) && i < REPLICA_COUNTS; i++)
            *replica_count(&status->replicas[role], i) = json_integer_at(item, replica_counts[i].name, 0);
    for (const struct json *item = json_first(json_at(object, "controllerState.roles")); item; item = json_next(item)) {
        if (!role_parse(json_string_at(item, "role", ""), &role))
            continue;
        status->replicas[role].pending = arena_copy_string(arena, json_string_at(item, "pending", NULL));
        status->replicas[role].completed = arena_copy_string(arena, json_string_at(item, "completed", NULL));
        status->replicas[role].restarting = arena_copy_string(arena, json_string_at(item, "restarting", NULL));
        back_off_read(item, &status->replicas[role], arena);
    }
}

void job_status_read(const struct json *object, struct job_status *status, struct arena *arena)
{
    fields_unset(&training_job_status_type, status);
    fields_read(&training_job_status_type, object, status, &(struct field_reader){.arena = arena});
    status->other_conditions =
        condition_list_read(json_member(object, "conditions"), condition_type_words, status->conditions, arena);
    replicas_read(object, status, arena);
}

/* ---------------------------------------------------------------- write */

static void counts_to_json(const struct job_status *status, struct json *object)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        struct replica_status replicas = status->replicas[role];
        if (replicas.active + replicas.ready + replicas.succeeded + replicas.failed == 0 && !replicas.pending &&
            !replicas.completed && !replicas.restarting)
            continue;
        struct json *item = json_append(json_set_array(object, "replicaStatuses"), json_new_object());
        json_set_string(item, "role", role_name((enum role)role));
        for (size_t i = 0; i < REPLICA_COUNTS; i++)
            json_set_integer(item, replica_counts[i].name, *replica_count(&replicas, i));
    }
}

static void indices_to_json(const struct job_status *status, struct json *controller_state)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct replica_status *replicas = &status->replicas[role];
        if (!replicas->pending && !replicas->completed && !replicas->restarting)
            continue;
        struct json *item = json_append(json_set_array(controller_state, "roles"), json_new_object());
        json_set_string(item, "role", role_name((enum role)role));
        json_set_string(item, "pending", replicas->pending);
        json_set_string(item, "completed", replicas->completed);
        json_set_string(item, "restarting", replicas->restarting);
        json_set_string(item, "backingOff", replicas->backing_off);
        char time[CLOCK_TEXT_MAX];
        clock_format_microseconds(replicas->backoff_until_ms, time);
        json_set_string(item, "backoffUntil", replicas->backing_off ? time : NULL);
    }
}

struct json *job_status_to_json(const struct job_status *status)
{
    struct json *object = json_new_object();
    fields_write(&training_job_status_type, status, object);
    condition_list_write(status->conditions, condition_type_words, status->other_conditions, object);
    counts_to_json(status, object);
    indices_to_json(status, json_set_object(object, "controllerState"));
    return object;
}

/* ---------------------------------------------------------------- state */

bool condition_is(const struct job_status *status, enum condition_type type, enum condition_status wanted)
{
    return status->conditions[type].status == wanted;
}

bool status_terminal(const struct job_status *status)
{
    return condition_is(status, CONDITION_SUCCEEDED, CONDITION_TRUE) ||
           condition_is(status, CONDITION_FAILED, CONDITION_TRUE);
}

enum condition_type job_status_state(const struct job_status *status)
{
    int type = 0;
    while (type < CONDITION_TYPE_COUNT && status->conditions[type].status != CONDITION_TRUE)
        type++;
    return (enum condition_type)type;
}

const char *job_state_name(enum condition_type state)
{
    return state < CONDITION_TYPE_COUNT ? condition_type_name(state) : "Pending";
}
