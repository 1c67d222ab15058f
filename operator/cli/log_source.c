/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_source.h"

#include <inttypes.h>
#include <stdio.h>

#include "operator/cli/pod_container.h"
#include "operator/cli/pod_place.h"

/* The one that was asked for, else the one that trains. */
static const char *container_of(const struct command_line *line, const struct json *pod)
{
    return line->container ? line->container : pod_trainer(pod);
}

bool log_may_go_on(const struct command_line *line, const struct json *pod)
{
    return pod && !pod_container_ended(pod, container_of(line, pod));
}

bool log_is_wanted(const struct command_line *line, const struct json *pod)
{
    return pod_is_at(pod, line->role, line->index) && (line->all_attempts || pod_is_current(pod)) &&
           pod_container_started(pod, container_of(line, pod));
}

int log_path(const struct command_line *line, const struct json *pod, bool follow, const char *since,
             struct buffer *path, struct error *error)
{
    struct resource_path log = {KUBE_PODS, json_string_at(pod, "metadata.namespace", ""),
                                json_string_at(pod, "metadata.name", ""), "log"};
    char tail[24] = "";
    if (line->tail >= 0 && !since)
        snprintf(tail, sizeof tail, "%" PRId64, line->tail);
    if (resource_path_append(path, &log, error) < 0 ||
        resource_path_append_query(path, "container", container_of(line, pod), error) < 0 ||
        resource_path_append_query(path, "timestamps", "true", error) < 0 ||
        resource_path_append_query(path, "follow", follow ? "true" : NULL, error) < 0 ||
        resource_path_append_query(path, "sinceTime", since, error) < 0)
        return -1;
    return resource_path_append_query(path, "tailLines", tail, error);
}
