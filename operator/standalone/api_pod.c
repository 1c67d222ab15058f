/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/clock.h"
#include "operator/standalone/api_request.h"

/* ---- log ---- */

static bool has_container(const struct json *pod, const char *name)
{
    static const char *const lists[] = {"spec.containers", "spec.initContainers"};
    for (size_t i = 0; i < 2; i++)
        for (const struct json *item = json_first(json_at(pod, lists[i])); item; item = json_next(item))
            if (strcmp(json_string_at(item, "name", ""), name) == 0)
                return true;
    return false;
}

static struct json *choose_container(const struct api_request *request, const struct json *pod,
                                     const char **ret_container)
{
    const char *asked = http_exchange_query(request->exchange, "container");
    const struct json *containers = json_at(pod, "spec.containers");
    if (asked && asked[0] && !has_container(pod, asked))
        return refusal_bad_request("container %s is not valid for pod %s", asked, request->path.name);
    if ((asked == NULL || asked[0] == '\0') && json_count(containers) > 1)
        return refusal_bad_request("a container name must be specified for pod %s", request->path.name);
    *ret_container = asked && asked[0] ? asked : json_string_at(json_first(containers), "name", "");
    return NULL;
}

static int64_t read_since_ms(const struct http_exchange *exchange)
{
    int64_t seconds = api_query_integer(exchange, "sinceSeconds", 0), when_ms;
    const char *time = http_exchange_query(exchange, "sinceTime");
    if (seconds > 0)
        return clock_now_ms() - seconds * 1000;
    return time && clock_parse(time, &when_ms) ? when_ms : 0;
}

static void serve_log(struct api_request *request, const struct json *pod, const char *container)
{
    const struct http_exchange *exchange = request->exchange;
    struct error error = ERROR_INIT;
    struct pod_log_query query = {
        .container = container,
        .follow = api_query_flag(exchange, "follow"),
        .previous = api_query_flag(exchange, "previous"),
        .timestamps = api_query_flag(exchange, "timestamps"),
        .tail_lines = api_query_integer(exchange, "tailLines", -1),
        .limit_bytes = api_query_integer(exchange, "limitBytes", -1),
        .since_ms = read_since_ms(exchange),
    };
    struct api_server *server = request->server;
    if (server->pod_log == NULL)
        api_refuse(request, refusal_new(501, "NotImplemented", "this server runs no pods and has no logs"));
    else if (server->pod_log(server->pod_log_context, pod, &query, request->exchange, &error) < 0)
        api_refuse(request, error.kind == ERROR_NOT_FOUND ? refusal_new(404, "NotFound", "%s", error.message)
                                                          : refusal_from_error(NULL, NULL, &error));
}

void api_pod_log(struct api_request *request)
{
    SCOPED_JSON *pod = NULL;
    const char *container = NULL;
    struct json *refused =
        registry_read(request->registry, request->resource, request->path.namespace, request->path.name, &pod);
    if (refused == NULL)
        refused = choose_container(request, pod, &container);
    if (refused)
        api_refuse(request, refused);
    else
        serve_log(request, pod, container);
}

/* ---- exec, attach, port-forward ---- */

bool api_pod_refuse_stream(struct api_request *request)
{
    static const struct {
        const char *subresource, *command, *instead;
    } streams[] = {{"exec", "kubectl exec", "run the command on this machine"},
                   {"attach", "kubectl attach", "read what it writes with kubectl logs -f"},
                   {"portforward", "kubectl port-forward", "connect to the pod's own address (status.podIP)"}};
    const struct api_path *path = &request->path;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        if (strcmp(request->resource->storage, "pods") != 0 || strcmp(path->subresource, streams[i].subresource) != 0)
            continue;
        SCOPED_JSON *pod = NULL;
        struct json *refused = registry_read(request->registry, request->resource, path->namespace, path->name, &pod);
        if (!refused)
            refused = refusal_new(501, "NotImplemented",
                                  "the embedded control plane has no %s: its pods are processes of this machine; %s",
                                  streams[i].command, streams[i].instead);
        api_refuse(request, refused);
        return true;
    }
    return false;
}

/* ---- eviction ---- */

/* The condition that the eviction API sets on a pod besides deleting it, so that its end counts as a disruption. */
static const char disruption[] = "{\"status\":{\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\","
                                 "\"reason\":\"EvictionByEvictionAPI\","
                                 "\"message\":\"Eviction API: evicting\"}]}}";

static struct json *mark_disrupted(struct api_request *request, struct write write)
{
    SCOPED_JSON *patch = NULL;
    struct error error = ERROR_INIT;
    if (json_parse(disruption, sizeof disruption - 1, sizeof disruption, &patch, &error) < 0)
        return refusal_from_error(NULL, NULL, &error);
    write.status = true;
    struct json *refused = registry_write_patch(request->registry, &write, PATCH_STRATEGIC, patch);
    json_free(write.result);
    return refused;
}

static struct json *success(void)
{
    struct json *status = json_new_object();
    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    json_set_string(status, "status", "Success");
    json_set_integer(status, "code", 201);
    return status;
}

void api_pod_evict(struct api_request *request)
{
    struct write write;
    SCOPED_JSON *body = NULL;
    struct json *refused = api_read_body(request, &body);
    if (refused == NULL)
        refused = api_write_prepare(request, &write);
    if (refused) {
        api_refuse(request, refused);
        return;
    }
    struct delete_options options = {
        .grace_seconds = json_integer_at(body, "deleteOptions.gracePeriodSeconds", -1),
        .uid = json_string_at(body, "deleteOptions.preconditions.uid", NULL),
    };
    if (!write.dry_run)
        refused = mark_disrupted(request, write);
    if (refused == NULL)
        refused = registry_write_delete(request->registry, &write, &options);
    json_free(write.warnings);
    json_free(write.result);
    if (refused)
        api_refuse(request, refused);
    else
        api_answer_durably(request, 201, success());
}
