/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/service_build.h"

#include "common/contract/environment.h"
#include "common/contract/labels.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/environment_list.h"

static void add_port(struct json *ports, const char *name, int64_t number)
{
    struct json *port = json_append(ports, json_new_object());
    json_set_string(port, "name", name);
    json_set_integer(port, "port", number);
}

struct json *service_build(const struct training_job *job)
{
    struct json *service = json_new_object();
    json_set_string(service, "apiVersion", "v1");
    json_set_string(service, "kind", "Service");
    child_metadata_fill(json_set(service, "metadata", json_new_object()), job, job->name);
    struct json *spec = json_set(service, "spec", json_new_object());
    json_set_string(spec, "clusterIP", "None");
    json_set_boolean(spec, "publishNotReadyAddresses", true);
    struct json *selector = json_set(spec, "selector", json_new_object());
    json_set_string(selector, LABEL_JOB_UID, job->uid);
    json_set_string(selector, LABEL_CURRENT, "true");
    struct json *ports = json_set(spec, "ports", json_new_array());
    add_port(ports, PORT_CREW_NAME, crew_port(job, crew_chief_role(job)));
    if (job->framework == FRAMEWORK_COXSWAIN)
        add_port(ports, "http", PORT_HTTP);
    return service;
}
