/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-side apply of two managers' configurations ([{…},{…}]) ends, and applying one again changes nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "operator/standalone/apply.h"

#define INPUT_MAX (64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static struct resource_table *table_new(void)
{
    static const char definition[] =
        "{\"metadata\":{\"name\":\"things.x.dev\"},\"spec\":{\"group\":\"x.dev\",\"names\":{\"plural\":\"things\","
        "\"kind\":\"Thing\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
        "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"list\":{\"type\":\"array\","
        "\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"a\"],\"items\":{\"type\":\"object\"}},"
        "\"set\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\"}}}}}]}}";
    struct json *json = NULL;
    struct resource_table *table = resource_table_new();
    if (json_parse(definition, strlen(definition), INPUT_MAX, &json, NULL) < 0 ||
        resource_define(table, json, NULL) < 0)
        abort();
    json_free(json);
    return table;
}

static bool apply(const struct resource *resource, const char *manager, const struct json *config, struct json *object)
{
    struct apply_request request = {resource, manager, "", manager[0] == 'b'};
    struct json *fields = NULL;
    struct json *refused = apply_configuration(&request, config, object, &fields);
    json_free(refused);
    if (refused)
        return false;
    json_set(json_set_object(object, "metadata"), "managedFields", fields);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_JSON *configs = NULL;
    if (json_parse((const char *)bytes, length, INPUT_MAX, &configs, NULL) < 0 || json_type(configs) != JSON_ARRAY)
        return 0;
    struct resource_table *table = table_new();
    const struct resource *resource = resource_find(table, "x.dev", "v1", "things");
    SCOPED_JSON *object = json_new_object();
    for (const struct json *config = json_first(configs); config; config = json_next(config)) {
        const char *manager = json_equal(config, json_first(configs)) ? "a" : "b";
        if (json_type(config) != JSON_OBJECT || json_member(config, "metadata") ||
            !apply(resource, manager, config, object))
            continue;
        if (!apply(resource, manager, config, object))
            abort();
    }
    resource_table_free(table);
    return 0;
}
