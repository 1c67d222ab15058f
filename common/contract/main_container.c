/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/main_container.h"

#include <stdbool.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/contract/labels.h"

static bool is_trainer(const struct json *container)
{
    return strcmp(json_string_at(container, "name", ""), TRAINER_CONTAINER) == 0;
}

static bool is_told(const struct json *container)
{
    const struct json *environment = json_member(container, "env");
    for (const struct json *item = json_first(environment); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), ENV_JOB_UID) == 0)
            return true;
    return false;
}

static const struct json *first(const struct json *containers, bool (*is)(const struct json *container))
{
    for (const struct json *item = json_first(containers); item; item = json_next(item))
        if (is(item))
            return item;
    return NULL;
}

const struct json *main_container(const struct json *pod)
{
    const struct json *containers = json_at(pod, "spec.containers");
    const struct json *trainer = first(containers, is_trainer), *told = trainer ? NULL : first(containers, is_told);
    return trainer ? trainer : told ? told : json_first(containers);
}
