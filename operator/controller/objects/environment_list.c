/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/environment_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/job/template_overlay.h"
#include "common/memory.h"
#include "operator/controller/objects/crew_roles.h"

void environment_add(struct json *list, const char *name, const char *value)
{
    struct json *entry = json_append(list, json_new_object());
    json_set_string(entry, "name", name);
    json_set_string(entry, "value", value);
}

void environment_add_number(struct json *list, const char *name, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    environment_add(list, name, text);
}

char *crew_host(const struct training_job *job, enum role role, int64_t index)
{
    return memory_format("%s-%s-%" PRId64 ".%s.%s.svc", job->name, role_name(role), index, job->name, job->namespace);
}

int64_t crew_port(const struct training_job *job, enum role role)
{
    if (job->framework == FRAMEWORK_COXSWAIN)
        return PORT_CREW;
    const struct json *ports = json_member(template_main_container(job->roles[role].template), "ports");
    for (const struct json *port = json_first(ports); port; port = json_next(port)) {
        int64_t number = json_integer_at(port, "containerPort", 0);
        if (strcmp(json_string_at(port, "name", ""), PORT_CREW_NAME) == 0 && number > 0 && number <= UINT16_MAX)
            return number;
    }
    static const int64_t usual[] = {[FRAMEWORK_COXSWAIN] = PORT_CREW,
                                    [FRAMEWORK_TENSORFLOW] = PORT_CREW,
                                    [FRAMEWORK_PYTORCH] = PORT_PYTORCH,
                                    [FRAMEWORK_JAX] = PORT_JAX};
    return usual[job->framework];
}

bool crew_meeting(const struct training_job *job, enum role role, int64_t index, struct crew_meeting *ret_meeting)
{
    enum role host_role = crew_chief_role(job);
    if (!crew_has_rank(role))
        return false;
    *ret_meeting = (struct crew_meeting){
        .host = crew_host(job, host_role, 0),
        .port = crew_port(job, host_role),
        .rank = crew_rank(job, role, index),
        .size = crew_world_size(job),
    };
    return true;
}
