/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/api_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/yaml.h"
#include "operator/standalone/protobuf_body.h"

#define ANSWER_MAX (256u << 20)
#define BODY_MAX (3 * 1024 * 1024)

/* ---- what the client wants ---- */

static bool range_has(const char *range, size_t length, const char *parameter)
{
    return memmem(range, length, parameter, strlen(parameter)) != NULL;
}

static enum answer_form form_of_range(const char *range, size_t length)
{
    bool json = range_has(range, length, "application/json");
    if (json && range_has(range, length, "as=Table"))
        return range_has(range, length, "v=v1beta1") ? ANSWER_NONE : ANSWER_TABLE;
    if (json && range_has(range, length, "as=PartialObjectMetadata"))
        return ANSWER_METADATA;
    if (json && range_has(range, length, "as="))
        return ANSWER_NONE;
    if (json || range_has(range, length, "*/*") || range_has(range, length, "application/*"))
        return ANSWER_JSON;
    return range_has(range, length, "application/yaml") ? ANSWER_YAML : ANSWER_NONE;
}

enum answer_form api_answer_form(const struct http_exchange *exchange)
{
    const char *accept = http_exchange_header(exchange, "Accept");
    if (accept == NULL || accept[0] == '\0')
        return ANSWER_JSON;
    while (*accept) {
        size_t length = strcspn(accept, ",");
        enum answer_form form = form_of_range(accept, length);
        if (form != ANSWER_NONE)
            return form;
        accept += length + (accept[length] == ',');
    }
    return ANSWER_NONE;
}

enum table_include api_table_include(const struct http_exchange *exchange)
{
    const char *include = http_exchange_query(exchange, "includeObject");
    if (include && strcmp(include, "Object") == 0)
        return TABLE_INCLUDE_OBJECT;
    return include && strcmp(include, "None") == 0 ? TABLE_INCLUDE_NONE : TABLE_INCLUDE_METADATA;
}

bool api_query_flag(const struct http_exchange *exchange, const char *name)
{
    const char *value = http_exchange_query(exchange, name);
    return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
}

int64_t api_query_integer(const struct http_exchange *exchange, const char *name, int64_t otherwise)
{
    const char *value = http_exchange_query(exchange, name);
    char *end;
    if (value == NULL || value[0] == '\0')
        return otherwise;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    return *end || errno ? otherwise : number;
}

struct json *api_selection_parse(const struct api_request *request, struct api_selection *ret_selection)
{
    struct api_selection selection = {0};
    struct error error = ERROR_INIT;
    const char *labels = http_exchange_query(request->exchange, "labelSelector");
    const char *fields = http_exchange_query(request->exchange, "fieldSelector");
    if (selector_parse_labels(labels, &selection.labels, &error) < 0 ||
        selector_parse_fields(request->resource, fields, &selection.fields, &error) < 0) {
        api_selection_release(&selection);
        return refusal_bad_request("%s", error.message);
    }
    *ret_selection = selection;
    return NULL;
}

void api_selection_release(struct api_selection *selection)
{
    selector_release(&selection->labels);
    selector_release(&selection->fields);
}

bool api_selection_matches(const struct api_selection *selection, const struct json *object)
{
    return selector_matches_labels(&selection->labels, json_at(object, "metadata.labels")) &&
           selector_matches_fields(&selection->fields, object);
}

static bool is_type(const char *content_type, const char *type)
{
    size_t length = strlen(type);
    return strncmp(content_type, type, length) == 0 && strchr("; ", content_type[length]);
}

static int parse_yaml_body(const char *text, size_t length, struct json **ret_body, struct error *error)
{
    SCOPED_JSON *documents = NULL;
    if (yaml_parse(text, length, BODY_MAX, &documents, error) < 0)
        return -1;
    if (json_count(documents) != 1)
        return error_set(error, ERROR_INVALID, "the body must hold one YAML document");
    *ret_body = json_detach(documents, json_first(documents));
    return 0;
}

#define UNKNOWN_BODY                                                                                                   \
    "the body of the request was in an unknown format - accepted media types include: application/json, "              \
    "application/yaml, application/vnd.kubernetes.protobuf"

static struct json *parse_body(const char *type, const char *text, size_t length, struct json **ret_body)
{
    struct error error = ERROR_INIT;
    int parsed;
    if (type == NULL || is_type(type, "application/json") || strstr(type, "patch+json"))
        parsed = json_parse(text, length, BODY_MAX, ret_body, &error);
    else if (is_type(type, "application/yaml") || is_type(type, "application/apply-patch+yaml"))
        parsed = parse_yaml_body(text, length, ret_body, &error);
    else if (is_type(type, PROTOBUF_MEDIA_TYPE))
        parsed = protobuf_body_parse(text, length, ret_body, &error);
    else
        return refusal_new(415, "UnsupportedMediaType", UNKNOWN_BODY);
    if (parsed < 0 && error.kind == ERROR_UNSUPPORTED)
        return refusal_new(415, "UnsupportedMediaType", UNKNOWN_BODY ": %s", error.message);
    return parsed < 0 ? refusal_bad_request("the body of the request cannot be read: %s", error.message) : NULL;
}

struct json *api_read_body(const struct api_request *request, struct json **ret_body)
{
    size_t length;
    const char *text = http_exchange_body(request->exchange, &length);
    *ret_body = NULL;
    if (length == 0)
        return NULL;
    return parse_body(http_exchange_header(request->exchange, "Content-Type"), text, length, ret_body);
}

/* ---- answers ---- */

struct answer_text {
    struct buffer text;
    const char *type;
};

static void print_answer(struct answer_text *answer, const struct json *value, bool yaml, bool pretty)
{
    buffer_init(&answer->text, ANSWER_MAX);
    answer->type = yaml ? "application/yaml" : "application/json";
    if (yaml)
        yaml_print(value, &answer->text, NULL);
    else if (pretty)
        json_print_indented(value, &answer->text, NULL);
    else
        json_print(value, &answer->text, NULL);
    buffer_append_byte(&answer->text, '\n', NULL);
}

void api_answer(struct api_request *request, int status, struct json *value)
{
    struct answer_text answer;
    bool yaml = api_answer_form(request->exchange) == ANSWER_YAML;
    print_answer(&answer, value, yaml, api_query_flag(request->exchange, "pretty"));
    http_exchange_set_header(request->exchange, "Cache-Control", "no-cache, private");
    http_exchange_respond(request->exchange, status, answer.type, buffer_text(&answer.text), answer.text.length);
    buffer_release(&answer.text);
    json_free(value);
}

void api_refuse(struct api_request *request, struct json *refusal)
{
    api_answer(request, refusal_code(refusal), refusal);
}

static struct json *in_form(const struct api_request *request, struct json *object)
{
    enum answer_form form = api_answer_form(request->exchange);
    bool is_status = strcmp(json_string_at(object, "kind", ""), "Status") == 0;
    if (request->resource == NULL || is_status || (form != ANSWER_TABLE && form != ANSWER_METADATA))
        return object;
    struct json *answer;
    if (form == ANSWER_TABLE) {
        answer = table_new(request->resource);
        table_add_row(answer, request->resource, object, api_table_include(request->exchange), clock_now_ms());
        json_set_string(json_set_object(answer, "metadata"), "resourceVersion",
                        json_string_at(object, "metadata.resourceVersion", ""));
    } else {
        answer = json_new_object();
        json_set_string(answer, "kind", "PartialObjectMetadata");
        json_set_string(answer, "apiVersion", "meta.k8s.io/v1");
        json_set(answer, "metadata", json_copy(json_member(object, "metadata")));
    }
    json_free(object);
    return answer;
}

void api_answer_object(struct api_request *request, int status, struct json *object)
{
    if (request->resource)
        event_view_show(request->resource, object);
    api_answer(request, status, in_form(request, object));
}

/* An answer that waits for the commit; it outlives the request, not the exchange. */
struct waiting_answer {
    struct api_request request;
    int status;
    struct json *object;
    bool client_left;
};

static void client_left(void *context)
{
    struct waiting_answer *waiting = context;
    waiting->client_left = true;
}

static void send_waiting(void *context, const struct error *failed)
{
    struct waiting_answer *waiting = context;
    struct api_request *request = &waiting->request;
    const struct api_path *path = &request->path;
    /* Types may have been defined anew since. */
    request->resource = resource_find(registry_resources(request->registry), path->group, path->version, path->plural);
    if (waiting->client_left) {
        json_free(waiting->object);
    } else if (failed) {
        json_free(waiting->object);
        api_refuse(request, refusal_from_error(NULL, NULL, failed));
    } else {
        api_answer_object(request, waiting->status, waiting->object);
    }
    free(waiting);
}

void api_answer_durably(struct api_request *request, int status, struct json *object)
{
    if (!store_is_dirty(registry_store(request->registry))) {
        api_answer_object(request, status, object);
        return;
    }
    struct waiting_answer *waiting = memory_allocate(1, sizeof *waiting);
    *waiting = (struct waiting_answer){.request = *request, .status = status, .object = object};
    http_exchange_defer(request->exchange, client_left, waiting);
    registry_when_durable(request->registry, send_waiting, waiting);
}
