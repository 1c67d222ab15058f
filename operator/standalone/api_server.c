/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/api_server.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/memory.h"
#include "common/token.h"
#include "operator/standalone/api_request.h"
#include "operator/standalone/discovery.h"

#define KUBERNETES_MAJOR "1"
#define KUBERNETES_MINOR "36"
#define SERVER_VERSION "v1.36.0+coxswain"

static bool same(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

static const char *after(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* ---- authentication ---- */

static bool is_authenticated(const struct api_request *request)
{
    const char *header = http_exchange_header(request->exchange, "Authorization");
    const char *token = header ? after(header, "Bearer ") : NULL;
    return token && token_matches(request->server->token, token, strlen(token));
}

/* ---- pages that are no resources ---- */

static void answer_text(struct api_request *request, int status, const char *text)
{
    http_exchange_respond(request->exchange, status, "text/plain; charset=utf-8", text, strlen(text));
}

static void answer_version(struct api_request *request)
{
    static const char *const members[][2] = {
        {"major", KUBERNETES_MAJOR}, {"minor", KUBERNETES_MINOR}, {"gitVersion", SERVER_VERSION},
        {"gitCommit", ""},           {"gitTreeState", ""},        {"buildDate", "1970-01-01T00:00:00Z"},
        {"goVersion", ""},           {"compiler", "cc"}};
    struct utsname machine;
    struct json *version = json_new_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) /* all are required */
        json_set_string(version, members[i][0], members[i][1]);
    json_set_string(version, "platform",
                    uname(&machine) == 0 && same(machine.machine, "aarch64") ? "linux/arm64" : "linux/amd64");
    api_answer(request, 200, version);
}

static bool serve_public(struct api_request *request, const char *path)
{
    if (same(path, "/version") || same(path, "/version/"))
        answer_version(request);
    else if (same(path, "/healthz") || same(path, "/livez") || same(path, "/readyz"))
        answer_text(request, 200, "ok");
    else
        return false;
    return true;
}

static void serve_openapi_v3(struct api_request *request, const char *rest)
{
    const struct resource_table *table = registry_resources(request->registry);
    struct api_path path;
    if (rest[0] == '\0' || same(rest, "/"))
        api_answer(request, 200, openapi_index(table));
    else if (api_path_parse(rest, &path) && path.version[0] && resource_group_exists(table, path.group, path.version))
        api_answer(request, 200, openapi_document(table, path.group, path.version));
    else
        api_refuse(request, refusal_unknown_path());
}

static bool serve_document(struct api_request *request, const char *path)
{
    const char *rest = after(path, "/openapi/v3");
    if (rest)
        serve_openapi_v3(request, rest);
    return rest != NULL;
}

/* ---- discovery ---- */

static void answer_aggregated(struct api_request *request, bool core)
{
    SCOPED_JSON *list = discovery_aggregated(registry_resources(request->registry), core);
    SCOPED_BUFFER text = BUFFER_INIT(16u << 20);
    json_print(list, &text, NULL);
    http_exchange_respond(request->exchange, 200, AGGREGATED_DISCOVERY_TYPE, buffer_text(&text), text.length);
}

static bool wants_aggregated(const struct http_exchange *exchange)
{
    const char *accept = http_exchange_header(exchange, "Accept");
    return accept && strstr(accept, "as=APIGroupDiscoveryList") && strstr(accept, "v=v2;");
}

static void answer_root(struct api_request *request, bool core)
{
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", api_server_port(request->server));
    if (wants_aggregated(request->exchange))
        answer_aggregated(request, core);
    else
        api_answer(request, 200,
                   core ? discovery_core_versions(address) : discovery_groups(registry_resources(request->registry)));
}

static void serve_discovery(struct api_request *request, bool core)
{
    const struct resource_table *table = registry_resources(request->registry);
    const struct api_path *path = &request->path;
    if (!same(request->method, "GET"))
        api_refuse(request, refusal_method_not_allowed());
    else if (path->version[0] == '\0' && path->group[0] == '\0')
        answer_root(request, core);
    else if (!resource_group_exists(table, path->group, NULL))
        answer_text(request, 404, "404 page not found\n");
    else if (path->version[0] && !resource_group_exists(table, path->group, path->version))
        api_refuse(request, refusal_unknown_path());
    else if (path->version[0] == '\0')
        api_answer(request, 200, discovery_group(table, path->group));
    else
        api_answer(request, 200, discovery_resources(table, path->group, path->version));
}

/* ---- reviews: the token allows everything ---- */

static bool serve_review(struct api_request *request)
{
    const struct api_path *path = &request->path;
    bool access = same(path->group, "authorization.k8s.io") && same(path->plural, "selfsubjectaccessreviews");
    bool who = same(path->group, "authentication.k8s.io") && same(path->plural, "selfsubjectreviews");
    struct json *review = NULL;
    if ((!access && !who) || !same(request->method, "POST"))
        return false;
    struct json *refused = api_read_body(request, &review);
    if (refused == NULL && json_type(review) != JSON_OBJECT)
        refused = refusal_bad_request("a review needs a body");
    if (refused) {
        json_free(review);
        api_refuse(request, refused);
        return true;
    }
    struct json *status = json_set_object(review, "status");
    if (access)
        json_set(status, "allowed", json_new_boolean(true));
    else
        json_set_string(json_set_object(status, "userInfo"), "username", "admin");
    api_answer(request, 201, review);
    return true;
}

/* ---- resources ---- */

typedef void api_verb(struct api_request *request);

static const struct route {
    const char *method;
    const char *subresource; /* "": the resource itself */
    bool named;
    unsigned verb; /* must be among the type's; 0: any type with the subresource */
    api_verb *serve;
} routes[] = {
    {"GET", "", true, VERB_GET, api_get},
    {"GET", "", false, VERB_LIST, api_list},
    {"POST", "", false, VERB_CREATE, api_create},
    {"PUT", "", true, VERB_UPDATE, api_update},
    {"PATCH", "", true, VERB_PATCH, api_patch},
    {"DELETE", "", true, VERB_DELETE, api_delete},
    {"DELETE", "", false, VERB_DELETE_COLLECTION, api_delete_collection},
    {"GET", "status", true, 0, api_get},
    {"PUT", "status", true, VERB_UPDATE, api_update},
    {"PATCH", "status", true, VERB_PATCH, api_patch},
    {"GET", "scale", true, 0, api_scale},
    {"PUT", "scale", true, 0, api_scale},
    {"PATCH", "scale", true, 0, api_scale},
    {"GET", "log", true, 0, api_pod_log},
    {"POST", "eviction", true, 0, api_pod_evict},
};

static bool has_subresource(const struct resource *resource, const char *name)
{
    const struct subresource *sub;
    for (size_t i = 0; (sub = resource_subresource(resource, i)); i++)
        if (same(sub->name, name))
            return true;
    return name[0] == '\0';
}

static const struct route *find_route(const struct api_request *request)
{
    const struct api_path *path = &request->path;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        const struct route *route = &routes[i];
        bool allowed = route->verb == 0 || (request->resource->verbs & route->verb);
        if (allowed && route->named == (path->name[0] != '\0') && same(route->method, request->method) &&
            same(route->subresource, path->subresource))
            return route;
    }
    return NULL;
}

/* Items of a namespaced type live in one: only lists and watches may span all. */
static bool is_place_valid(const struct api_request *request)
{
    const struct api_path *path = &request->path;
    if (!request->resource->namespaced)
        return path->namespace[0] == '\0';
    bool collection_read = path->name[0] == '\0' && same(request->method, "GET");
    return path->namespace[0] || collection_read;
}

/* Numbers in the query that must be some. */
static struct json *check_numbers(const struct api_request *request)
{
    static const struct {
        const char *method, *name;
        bool named; /* also for single objects */
    } numbers[] = {
        {"GET", "limit", false},
        {"GET", "timeoutSeconds", false},
        {"DELETE", "limit", false},
        {"DELETE", "gracePeriodSeconds", true},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const char *text = http_exchange_query(request->exchange, numbers[i].name);
        bool read_by = same(request->method, numbers[i].method) && (numbers[i].named || request->path.name[0] == '\0');
        bool unread = api_query_integer(request->exchange, numbers[i].name, INT64_MIN) == INT64_MIN;
        if (read_by && text && text[0] && unread)
            return refusal_bad_request("strconv.ParseInt: parsing \"%s\": invalid syntax", text);
    }
    return NULL;
}

/* False: the answer is given. */
static bool find_resource(struct api_request *request)
{
    const struct api_path *path = &request->path;
    const struct resource_table *table = registry_resources(request->registry);
    request->resource = resource_find(table, path->group, path->version, path->plural);
    if (request->resource && api_pod_refuse_stream(request))
        return false;
    if (request->resource && has_subresource(request->resource, path->subresource))
        return true;
    if (request->resource == NULL && serve_review(request))
        return false;
    if (request->resource || resource_group_exists(table, path->group, NULL))
        api_refuse(request, refusal_unknown_path());
    else
        answer_text(request, 404, "404 page not found\n");
    return false;
}

static void serve_resource(struct api_request *request)
{
    if (!find_resource(request))
        return;
    const struct route *route = is_place_valid(request) ? find_route(request) : NULL;
    struct json *refused = route ? check_numbers(request) : refusal_method_not_allowed();
    if (refused)
        api_refuse(request, refused);
    else if (route->serve == api_list && api_query_flag(request->exchange, "watch"))
        api_watch(request);
    else if (api_answer_form(request->exchange) == ANSWER_NONE && route->serve != api_pod_log)
        api_refuse(request, refusal_new(406, "NotAcceptable",
                                        "only the following media types are accepted: application/json, "
                                        "application/yaml, application/json;as=Table;v=v1;g=meta.k8s.io"));
    else
        route->serve(request);
}

/* ---- the door ---- */

/* Reads must show only what is on disk. Watchers that are told of a commit may write in turn. */
static int commit_all(struct registry *registry)
{
    while (store_is_dirty(registry_store(registry)))
        if (registry_commit(registry, NULL) < 0)
            return -1;
    return 0;
}

static void serve(void *context, struct http_exchange *exchange)
{
    struct api_server *server = context;
    struct api_request request = {
        .server = server,
        .registry = server->registry,
        .exchange = exchange,
        .method = http_exchange_method(exchange),
    };
    const char *path = http_exchange_path(exchange);
    if (serve_public(&request, path))
        return;
    if (!is_authenticated(&request)) {
        api_refuse(&request, refusal_new(401, "Unauthorized", "Unauthorized"));
        return;
    }
    if (same(request.method, "GET") && commit_all(server->registry) < 0)
        api_refuse(&request, refusal_new(500, "InternalError", "the store cannot be written"));
    else if (serve_document(&request, path))
        return;
    else if (!api_path_parse(path, &request.path))
        answer_text(&request, 404, "404 page not found\n");
    else if (request.path.plural[0] == '\0')
        serve_discovery(&request, after(path, "/apis") == NULL);
    else
        serve_resource(&request);
}

int api_server_start(const struct api_server_options *options, struct api_server **ret_server, struct error *error)
{
    struct api_server *server = memory_allocate(1, sizeof *server);
    *server = (struct api_server){
        .loop = options->loop,
        .registry = options->registry,
        .token = memory_copy_string(options->token),
        .pod_log = options->pod_log,
        .pod_log_context = options->pod_log_context,
    };
    struct http_server_options http = {
        .address = "127.0.0.1",
        .port = options->port,
        .tls_cert_pem = options->cert_pem,
        .tls_key_pem = options->key_pem,
        .handler = serve,
        .context = server,
    };
    if (http_server_start_on_loop(&http, options->loop, &server->http, error) < 0) {
        api_server_free(server);
        return -1;
    }
    *ret_server = server;
    return 0;
}

void api_server_free(struct api_server *server)
{
    if (server == NULL)
        return;
    http_server_free(server->http);
    http_bytes_release(server->last_event.line);
    free(server->token);
    free(server);
}

uint16_t api_server_port(const struct api_server *server)
{
    return http_server_port(server->http);
}
