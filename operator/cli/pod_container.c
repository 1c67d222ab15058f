/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/pod_container.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/contract/main_container.h"

static const struct json *named(const struct json *list, const char *name)
{
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return item;
    return NULL;
}

const char *pod_trainer(const struct json *pod)
{
    return json_string_at(main_container(pod), "name", TRAINER_CONTAINER);
}

const struct json *pod_container_status(const struct json *pod, const char *container)
{
    const struct json *status = named(json_at(pod, "status.containerStatuses"), container);
    return status ? status : named(json_at(pod, "status.initContainerStatuses"), container);
}

bool pod_container_started(const struct json *pod, const char *container)
{
    const struct json *state = json_member(pod_container_status(pod, container), "state");
    return json_member(state, "running") || json_member(state, "terminated");
}

bool pod_container_ended(const struct json *pod, const char *container)
{
    const char *phase = json_string_at(pod, "status.phase", "");
    return json_at(pod_container_status(pod, container), "state.terminated") || strcmp(phase, "Succeeded") == 0 ||
           strcmp(phase, "Failed") == 0;
}
