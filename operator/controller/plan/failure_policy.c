/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/failure_policy.h"

#include <string.h>

#include "common/job/enum_words.h"

static bool code_matches(const struct exit_code_match *match, int code)
{
    bool found = false;
    for (unsigned i = 0; i < match->value_count; i++)
        found |= match->values[i] == code;
    return code != EXIT_CODE_NONE && code != 0 && found == (match->operator== EXIT_CODES_IN);
}

/* Looks for a line "type=status". */
static bool has_condition(const char *lines, const char *type, const char *status)
{
    size_t type_length = strlen(type), status_length = strlen(status);
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, type, type_length) == 0 && line[type_length] == '=' &&
            strncmp(line + type_length + 1, status, status_length) == 0 &&
            line[type_length + 1 + status_length] == '\n')
            return true;
    }
    return false;
}

/* Returns whether the exit code says nothing about the program, because the pod was deleted before it ended, by the operator or by a person.
 * Of a pod that was evicted or preempted it counts, since rules can tell these by the condition DisruptionTarget. */
static bool was_deleted(const struct pod_view *pod)
{
    return pod_view_was_asked_to_end(pod) && !pod->disruption_target;
}

static bool rule_matches(const struct failure_rule *rule, const struct pod_view *pod)
{
    if (rule->has_exit_codes)
        return !was_deleted(pod) && code_matches(&rule->exit_codes, pod->exit_code);
    for (unsigned i = 0; i < rule->condition_count; i++)
        if (has_condition(pod->conditions, rule->conditions[i].type,
                          pod_condition_status_words[rule->conditions[i].status]))
            return true;
    return false;
}

void failure_policy_apply(const struct failure_policy *policy, const struct pod_view *pod, struct ending *ending)
{
    static const enum ending_kind kinds[] = {
        [FAILURE_IGNORE] = ENDING_IGNORED,
        [FAILURE_COUNT] = ENDING_FAILURE,
        [FAILURE_FAIL] = ENDING_PERMANENT,
    };
    for (unsigned i = 0; i < policy->rule_count; i++) {
        if (!rule_matches(&policy->rules[i], pod))
            continue;
        ending->kind = kinds[policy->rules[i].action];
        ending->rule = i + 1;
        return;
    }
}
