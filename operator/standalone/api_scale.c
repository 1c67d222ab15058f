/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "operator/standalone/api_request.h"
#include "operator/standalone/json_path.h"
#include "operator/standalone/patch.h"

static const struct json *scale_paths(const struct api_request *request)
{
    return json_at(request->resource->version_definition, "subresources.scale");
}

static struct json *scale_of(const struct api_request *request, const struct json *object)
{
    static const char *const copied[] = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"};
    const struct json *paths = scale_paths(request);
    struct json *scale = json_new_object();
    json_set_string(scale, "kind", "Scale");
    json_set_string(scale, "apiVersion", "autoscaling/v1");
    struct json *metadata = json_set_object(scale, "metadata");
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        json_set_string(metadata, copied[i],
                        json_string(json_member(json_member(object, "metadata"), copied[i]), NULL));
    const struct json *wanted = json_path_first(object, json_string_at(paths, "specReplicasPath", ""));
    const struct json *seen = json_path_first(object, json_string_at(paths, "statusReplicasPath", ""));
    const struct json *selector = json_path_first(object, json_string_at(paths, "labelSelectorPath", ""));
    json_set_object(scale, "spec");
    if (wanted)
        json_set_integer(json_member(scale, "spec"), "replicas", json_integer(wanted, 0));
    struct json *status = json_set_object(scale, "status");
    json_set_integer(status, "replicas", json_integer(seen, 0));
    json_set_string(status, "selector", json_string(selector, NULL));
    return scale;
}

/* ".spec.workers.replicas" becomes {"spec":{"workers":{"replicas":N}}}: the paths of a scale subresource are plain. */
static struct json *replicas_patch(const struct api_request *request, const struct json *scale)
{
    struct json *patch = json_new_object(), *at = patch;
    const char *path = json_string_at(scale_paths(request), "specReplicasPath", ".spec.replicas") + 1;
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        char key[API_SEGMENT_MAX];
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        at = json_set_object(at, key);
    }
    json_set_integer(at, path, json_integer_at(scale, "spec.replicas", 0));
    const char *version = json_string_at(scale, "metadata.resourceVersion", "");
    if (version[0])
        json_set_string(json_set_object(patch, "metadata"), "resourceVersion", version);
    return patch;
}

static struct json *read_scale(const struct api_request *request, struct json **scale)
{
    struct json *body = NULL;
    struct error error = ERROR_INIT;
    enum patch_kind kind = PATCH_MERGE;
    bool patches = strcmp(request->method, "PATCH") == 0;
    struct json *refused = patches ? api_patch_kind(request, &kind) : NULL;
    if (refused == NULL)
        refused = api_read_body(request, &body);
    if (refused)
        return refused;
    if (!patches) {
        json_free(*scale);
        *scale = body;
        return NULL;
    }
    if (kind == PATCH_JSON && patch_apply_json(scale, body, &error) < 0)
        refused = refusal_new(422, "Invalid", "%s", error.message);
    if (kind == PATCH_MERGE || kind == PATCH_APPLY)
        json_merge_patch(scale, body);
    json_free(body);
    return refused;
}

static struct json *check_scale(const struct api_request *request, const struct json *scale)
{
    if (json_type(json_at(scale, "spec.replicas")) == JSON_NUMBER && json_integer_at(scale, "spec.replicas", -1) >= 0)
        return NULL;
    struct json *causes = json_new_array();
    cause_add(causes, CAUSE_INVALID, "spec.replicas", json_at(scale, "spec.replicas"),
              "should be a non-negative integer");
    return refusal_invalid(request->resource, request->path.name, causes);
}

static struct json *write_scale(struct api_request *request, struct json **scale, struct json **ret_stored)
{
    struct write write;
    struct json *refused = read_scale(request, scale);
    if (refused == NULL)
        refused = check_scale(request, *scale);
    if (refused == NULL)
        refused = api_write_prepare(request, &write);
    if (refused)
        return refused;
    SCOPED_JSON *patch = replicas_patch(request, *scale);
    refused = registry_write_patch(request->registry, &write, PATCH_MERGE, patch);
    json_free(write.warnings);
    *ret_stored = write.result;
    return refused;
}

void api_scale(struct api_request *request)
{
    SCOPED_JSON *object = NULL;
    struct json *refused =
        registry_read(request->registry, request->resource, request->path.namespace, request->path.name, &object);
    if (refused) {
        api_refuse(request, refused);
        return;
    }
    SCOPED_JSON *scale = scale_of(request, object);
    if (strcmp(request->method, "GET") != 0) {
        struct json *stored = NULL;
        refused = write_scale(request, &scale, &stored);
        if (refused) {
            json_free(stored);
            api_refuse(request, refused);
            return;
        }
        json_free(object);
        object = stored;
    }
    struct json *answer = scale_of(request, object);
    request->resource = NULL; /* a Scale is answered as it is */
    request->path.plural[0] = '\0';
    api_answer_durably(request, 200, answer);
}
