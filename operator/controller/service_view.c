/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/service_view.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"

struct service_view *service_view_new(const struct json *service)
{
    const char *name = json_string_at(service, "metadata.name", "");
    const char *job_uid = json_string(json_member(json_at(service, "metadata.labels"), LABEL_JOB_UID), "");
    size_t name_size = strlen(name) + 1, uid_size = strlen(job_uid) + 1;
    struct service_view *view = memory_allocate(1, sizeof *view + name_size + uid_size);
    char *text = (char *)(view + 1);
    view->name = memcpy(text, name, name_size);
    view->job_uid = memcpy(text + name_size, job_uid, uid_size);
    view->deleting = json_at(service, "metadata.deletionTimestamp") != NULL;
    return view;
}
