/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/service_view.h"

#include <string.h>

#include "common/memory.h"
#include "operator/controller/observed/owner.h"

#define TEXTS 5

struct service_view *service_view_new(const struct json *service)
{
    struct owner owner = owner_of(service);
    const char *const texts[TEXTS] = {json_string_at(service, "metadata.name", ""), owner.uid, owner.kind, owner.name,
                                      owner_label(service)};
    size_t sizes[TEXTS], total = 0;
    for (size_t i = 0; i < TEXTS; i++)
        total += sizes[i] = strlen(texts[i]) + 1;
    struct service_view *view = memory_allocate(1, sizeof *view + total);
    const char **members[TEXTS] = {&view->name, &view->owner_uid, &view->owner_kind, &view->owner_name, &view->job_uid};
    char *to = (char *)(view + 1);
    for (size_t i = 0; i < TEXTS; to += sizes[i++])
        *members[i] = memcpy(to, texts[i], sizes[i]);
    view->of_job = owner.is_job;
    view->deleting = json_at(service, "metadata.deletionTimestamp") != NULL;
    return view;
}

bool service_view_is_of(const struct service_view *service, const char *job_uid)
{
    return owner_is_job(service->owner_uid, service->job_uid, job_uid);
}
