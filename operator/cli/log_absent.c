/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_absent.h"

#include <inttypes.h>
#include <string.h>

#include "common/job/training_job.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/log_source.h"
#include "operator/cli/pod_place.h"

static int64_t places_of(const struct json *job, const char *name)
{
    enum role role;
    return role_parse(name, &role) ? spec_role_count(json_member(job, "spec"), role) : 0;
}

static bool is_wanted(const struct command_line *line, const char *role, int64_t index)
{
    return (!line->role || strcmp(line->role, role) == 0) && (line->index < 0 || line->index == index);
}

static const struct json *current_pod(const struct json *pods, const char *role, int64_t index)
{
    for (const struct json *pod = json_first(pods); pod; pod = json_next(pod))
        if (pod_is_current(pod) && pod_is_at(pod, role, index))
            return pod;
    return NULL;
}

/* Returns the reason for which a container waits; NULL: none is given. */
static const char *waiting_reason(const struct json *pod)
{
    static const char *const lists[] = {"status.initContainerStatuses", "status.containerStatuses"};
    for (size_t i = 0; i < 2; i++)
        for (const struct json *item = json_first(json_at(pod, lists[i])); item; item = json_next(item)) {
            const char *reason = json_string_at(item, "state.waiting.reason", NULL);
            if (reason)
                return reason;
        }
    return *json_string_at(pod, "spec.nodeName", "") ? NULL : "it has no node yet";
}

static void print_place(const struct json *job, const char *role, int64_t index, const struct json *pod,
                        struct buffer *out)
{
    buffer_format(out, "%s-%" PRId64 ": ", role, index);
    if (!pod) {
        bool suspended = job_condition_true(job, "Suspended");
        buffer_format(out, "%s\n",
                      job_is_over(job) ? "its pod is gone"
                      : suspended      ? "it has no pod, because the job is suspended"
                                       : "it has no pod yet");
        return;
    }
    const char *reason = waiting_reason(pod);
    buffer_format(out, "pod %s has not started%s%s\n", json_string_at(pod, "metadata.name", ""), reason ? ": " : "",
                  reason ? reason : "");
}

void log_absent_print(const struct command_line *line, const struct json *job, const struct json *pods,
                      struct buffer *out)
{
    int64_t absent = 0;
    for (int i = 0; i < ROLE_COUNT; i++) {
        const char *role = role_name((enum role)i);
        for (int64_t index = 0, count = places_of(job, role); index < count; index++) {
            const struct json *pod = current_pod(pods, role, index);
            if (!is_wanted(line, role, index) || (pod && log_is_wanted(line, pod)))
                continue;
            if (absent++ < LOG_ABSENT_MAX)
                print_place(job, role, index, pod, out);
        }
    }
    if (absent > LOG_ABSENT_MAX)
        buffer_format(out, "and %" PRId64 " more pods have no log\n", absent - LOG_ABSENT_MAX);
}

/* With --all-attempts places that are gone may be asked for, too. */
int log_place_check(const struct command_line *line, const struct json *job, struct error *error)
{
    const char *name = json_string_at(job, "metadata.name", "");
    bool any = false;
    for (int i = 0; i < ROLE_COUNT; i++) {
        const char *role = role_name((enum role)i);
        any |= is_wanted(line, role, line->index) && places_of(job, role) > (line->index < 0 ? 0 : line->index);
    }
    if (any || line->all_attempts)
        return 0;
    if (!line->role)
        return error_set(error, ERROR_NOT_FOUND, "no role of %s has an index %" PRId64, name, line->index);
    int64_t count = places_of(job, line->role);
    if (line->index < 0 || count == 0)
        return error_set(error, ERROR_NOT_FOUND, "%s has no role %s", name, line->role);
    return error_set(error, ERROR_NOT_FOUND, "%s has no %s %" PRId64 ": this role's indices are 0 to %" PRId64, name,
                     line->role, line->index, count - 1);
}
