/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/labels.h"
#include "operator/cli/pod_place.h"

static const struct json *named(const struct json *list, const char *name)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return item;
    return NULL;
}

/* The one that was asked for, else the one that trains. */
static const char *container_of(const struct command_line *line, const struct json *pod)
{
    const struct json *containers = json_at(pod, "spec.containers");
    if (line->container)
        return line->container;
    return named(containers, TRAINER_CONTAINER) ? TRAINER_CONTAINER
                                                : json_string_at(json_first(containers), "name", TRAINER_CONTAINER);
}

static bool has_started(const struct json *pod, const char *container)
{
    static const char *const lists[] = {"status.containerStatuses", "status.initContainerStatuses"};
    for (size_t i = 0; i < 2; i++) {
        const struct json *state = json_member(named(json_at(pod, lists[i]), container), "state");
        if (json_member(state, "running") || json_member(state, "terminated"))
            return true;
    }
    return false;
}

bool log_is_wanted(const struct command_line *line, const struct json *pod)
{
    return pod_is_at(pod, line->role, line->index) && (line->all_attempts || pod_is_current(pod)) &&
           has_started(pod, container_of(line, pod));
}

int log_path(const struct command_line *line, const struct json *pod, bool follow, struct buffer *path,
             struct error *error)
{
    struct resource_path log = {KUBE_PODS, json_string_at(pod, "metadata.namespace", ""),
                                json_string_at(pod, "metadata.name", ""), "log"};
    char tail[24] = "";
    if (line->tail >= 0)
        snprintf(tail, sizeof tail, "%" PRId64, line->tail);
    if (resource_path_append(path, &log, error) < 0 ||
        resource_path_append_query(path, "container", container_of(line, pod), error) < 0 ||
        resource_path_append_query(path, "timestamps", "true", error) < 0 ||
        resource_path_append_query(path, "follow", follow ? "true" : NULL, error) < 0)
        return -1;
    return resource_path_append_query(path, "tailLines", tail, error);
}
