/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/pod_place.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"

static const char *label(const struct json *pod, const char *key, const char *otherwise)
{
    return json_string(json_member(json_at(pod, "metadata.labels"), key), otherwise);
}

bool pod_is_current(const struct json *pod)
{
    return strcmp(label(pod, LABEL_CURRENT, ""), "true") == 0;
}

bool pod_is_at(const struct json *pod, const char *role, int64_t index)
{
    return (!role || strcmp(label(pod, LABEL_ROLE, ""), role) == 0) &&
           (index < 0 || strtoll(label(pod, LABEL_INDEX, "-1"), NULL, 10) == index);
}
