/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

#define TEXT_MAX 128

static const struct {
    const char *name;
    size_t offset;
} status_numbers[] = {
    {"attempt", offsetof(struct job_status, attempt)},
    {"incarnation", offsetof(struct job_status, incarnation)},
    {"workers", offsetof(struct job_status, workers)},
    {"restart_count", offsetof(struct job_status, restart_count)},
    {"failures", offsetof(struct job_status, restarts.failures)},
    {"disruptions", offsetof(struct job_status, restarts.disruptions)},
    {"out_of_memory", offsetof(struct job_status, restarts.out_of_memory)},
    {"ignored", offsetof(struct job_status, restarts.ignored)},
    {"backoff_until_ms", offsetof(struct job_status, backoff_until_ms)},
    {"suspended_ms", offsetof(struct job_status, suspended_ms)},
    {"chief_finish_ms", offsetof(struct job_status, chief_finish_ms)},
    {"progress.step", offsetof(struct job_status, progress.step)},
    {"progress.seconds_remaining", offsetof(struct job_status, progress.seconds_remaining)},
    {"progress.percent", offsetof(struct job_status, progress.percent)},
    {"progress.data_epoch", offsetof(struct job_status, progress.data_epoch)},
    {"progress.updated_at_ms", offsetof(struct job_status, progress.updated_at_ms)},
};

static const struct {
    const char *name;
    bool is_text;
    size_t offset;
} role_fields[] = {
    {"active", false, offsetof(struct replica_status, active)},
    {"ready", false, offsetof(struct replica_status, ready)},
    {"succeeded", false, offsetof(struct replica_status, succeeded)},
    {"failed", false, offsetof(struct replica_status, failed)},
    {"backoff_until_ms", false, offsetof(struct replica_status, backoff_until_ms)},
    {"pending", true, offsetof(struct replica_status, pending)},
    {"completed", true, offsetof(struct replica_status, completed)},
    {"restarting", true, offsetof(struct replica_status, restarting)},
    {"backing_off", true, offsetof(struct replica_status, backing_off)},
};

/* In the order of enum action_type. */
static const char *const actions[] = {
    "create_service",   "create_certificate", "look_for_key", "create_key",      "create_group",     "delete_group",
    "create_workload",  "delete_workload",    "create_slice", "resize_workload", "release_workload", "clear_admission",
    "tell_workload",    "create_pod",         "look_for_pod", "adopt_pod",       "remove_current",   "delete_pod",
    "force_delete_pod", "look_at_node",       "delete_job",
};

static bool write_number(int64_t number, char *ret_text)
{
    if (number == FIELD_UNSET)
        snprintf(ret_text, TEXT_MAX, "unset");
    else
        snprintf(ret_text, TEXT_MAX, "%" PRId64, number);
    return true;
}

static bool write_text(const char *text, char *ret_text)
{
    snprintf(ret_text, TEXT_MAX, "%s", text ? text : "none");
    return true;
}

static bool write_role_field(const struct replica_status *replica, const char *name, char *ret_text)
{
    for (size_t i = 0; i < sizeof role_fields / sizeof *role_fields; i++) {
        const char *field = (const char *)replica + role_fields[i].offset;
        if (strcmp(role_fields[i].name, name) != 0)
            continue;
        return role_fields[i].is_text ? write_text(*(const char *const *)(const void *)field, ret_text)
                                      : write_number(*(const int64_t *)(const void *)field, ret_text);
    }
    return false;
}

/* Writes a condition's reason if it has this status, and otherwise nothing. */
static bool write_condition(const struct job_status *status, enum condition_type type, const char *wanted,
                            char *ret_text)
{
    static const char *const names[] = {"absent", "False", "True", "Unknown"};
    const struct condition *condition = &status->conditions[type];
    bool has = strcmp(names[condition->status], wanted) == 0;
    return write_text(has && condition->reason ? condition->reason : "", ret_text);
}

static bool write_of_status(const struct job_status *status, const char *key, char *ret_text)
{
    for (size_t i = 0; i < sizeof status_numbers / sizeof *status_numbers; i++)
        if (strcmp(status_numbers[i].name, key) == 0)
            return write_number(*(const int64_t *)(const void *)((const char *)status + status_numbers[i].offset),
                                ret_text);
    for (int role = 0; role < ROLE_COUNT; role++) {
        size_t length = strlen(role_name((enum role)role));
        if (strncmp(key, role_name((enum role)role), length) == 0 && key[length] == '.')
            return write_role_field(&status->replicas[role], key + length + 1, ret_text);
    }
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++) {
        size_t length = strlen(condition_type_name((enum condition_type)type));
        if (strncmp(key, condition_type_name((enum condition_type)type), length) == 0 && key[length] == ':')
            return write_condition(status, (enum condition_type)type, key + length + 1, ret_text);
    }
    if (strcmp(key, "state") == 0)
        return write_text(job_state_name(job_status_state(status)), ret_text);
    if (strcmp(key, "terminal") == 0)
        return write_number(status_terminal(status), ret_text);
    return false;
}

static bool write_of_plan(const struct scene *scene, const char *key, char *ret_text)
{
    const struct plan *plan = &scene->plan;
    const struct {
        const char *name;
        size_t number;
    } numbers[] = {{"actions", plan->action_count},
                   {"events", plan->event_count},
                   {"write_status", plan->write_status},
                   {"begun", plan->begun},
                   {"behind", plan->behind},
                   {"has_run", plan->has_run},
                   {"first_pods", plan->first_pods},
                   {"counts_wait", plan->counts_wait},
                   {"only_informs", plan_only_informs(plan, &scene->job.status)}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, key) == 0)
            return write_number((int64_t)numbers[i].number, ret_text);
    if (strcmp(key, "event") == 0)
        return write_text(plan->event_count > 0 ? plan->events[0].reason : NULL, ret_text);
    for (size_t type = 0; type < sizeof actions / sizeof *actions; type++)
        if (strcmp(actions[type], key) == 0)
            return write_number((int64_t)scene_count(scene, (enum action_type)type), ret_text);
    return false;
}

static bool write_value(const struct scene *scene, const char *key, char *ret_text)
{
    if (strncmp(key, "job.", 4) == 0)
        return write_of_status(&scene->job.status, key + 4, ret_text);
    return write_of_plan(scene, key, ret_text) || write_of_status(&scene->plan.status, key, ret_text);
}

/* Copies the next word, "" at the end. Skips text in parentheses. */
static const char *next_word(const char *at, char *ret_word)
{
    size_t length = 0;
    while (isspace((unsigned char)*at) || *at == '(')
        at = *at == '(' ? strchr(at, ')') + 1 : at + 1;
    while (*at && !isspace((unsigned char)*at) && length + 1 < TEXT_MAX)
        ret_word[length++] = *at++;
    ret_word[length] = '\0';
    return at;
}

const char *scene_mismatch(const struct scene *scene, const char *expected)
{
    static char message[4 * TEXT_MAX];
    char word[TEXT_MAX], found[TEXT_MAX];
    for (const char *at = next_word(expected, word); *word; at = next_word(at, word)) {
        char *value = strchr(word, '=');
        if (!value)
            value = word + strlen(word);
        else
            *value++ = '\0';
        if (!write_value(scene, word, found))
            snprintf(message, sizeof message, "unknown: %s, in: %s", word, expected);
        else if (strcmp(found, value) != 0)
            snprintf(message, sizeof message, "%s=%s, expected: %s", word, found, expected);
        else
            continue;
        return message;
    }
    return NULL;
}
