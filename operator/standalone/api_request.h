/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on its way through the server, and the answers to it. Used by the
 * api_*.c files.
 */
#ifndef COXSWAIN_STANDALONE_API_REQUEST_H
#define COXSWAIN_STANDALONE_API_REQUEST_H

#include "common/http_server.h"
#include "operator/standalone/api_path.h"
#include "operator/standalone/api_server.h"
#include "operator/standalone/registry_write.h"
#include "operator/standalone/selector.h"
#include "operator/standalone/table.h"

/* The last event that a watch has sent, printed: all watches of a type send the same bytes. */
struct api_event {
    const struct resource *resource;
    const char *type; /* "ADDED", … */
    char version[API_VERSION_TEXT_MAX];
    struct http_bytes *line; /* NULL: none yet */
};

struct api_server {
    struct http_server *http;
    struct api_event last_event;
    struct event_loop *loop;
    struct registry *registry;
    char *token;
    pod_log_hook *pod_log;
    void *pod_log_context;
};

struct api_request {
    struct api_server *server;
    struct registry *registry;
    struct http_exchange *exchange;
    const char *method;
    struct api_path path;
    const struct resource *resource; /* what the path names; NULL for /apis and the like */
};

/* ---- what the client wants ---- */

enum answer_form { ANSWER_JSON, ANSWER_YAML, ANSWER_TABLE, ANSWER_METADATA, ANSWER_NONE };
/* From Accept; ANSWER_NONE: nothing that we have. */
enum answer_form api_answer_form(const struct http_exchange *exchange);
enum table_include api_table_include(const struct http_exchange *exchange);
bool api_query_flag(const struct http_exchange *exchange, const char *name); /* "1" and "true" */
int64_t api_query_integer(const struct http_exchange *exchange, const char *name, int64_t otherwise);

struct api_selection {
    struct selector labels, fields;
};
struct json *api_selection_parse(const struct api_request *request, struct api_selection *ret_selection);
void api_selection_release(struct api_selection *selection);
bool api_selection_matches(const struct api_selection *selection, const struct json *object);

/* The body as JSON, from JSON or YAML. An empty body gives NULL. */
struct json *api_read_body(const struct api_request *request, struct json **ret_body);

/* ---- answers ---- */

/* All take `value` or `refusal` over. */
void api_answer(struct api_request *request, int status, struct json *value);
void api_refuse(struct api_request *request, struct json *refusal);
/* An object in the form the client asked for (table, metadata only, JSON, YAML). */
void api_answer_object(struct api_request *request, int status, struct json *object);
/* The same, once all writes so far are on disk. */
void api_answer_durably(struct api_request *request, int status, struct json *object);

/* ---- verbs ---- */

void api_get(struct api_request *request);
void api_list(struct api_request *request);
void api_watch(struct api_request *request);
void api_create(struct api_request *request);
void api_update(struct api_request *request);
void api_patch(struct api_request *request);
void api_delete(struct api_request *request);
void api_delete_collection(struct api_request *request);
void api_scale(struct api_request *request);   /* GET, PUT, PATCH …/scale */
void api_pod_log(struct api_request *request); /* GET …/log */
void api_pod_evict(struct api_request *request);
/* True when the request was one for exec, attach or portforward, which no pod of this node serves: it is refused with a sentence. */
bool api_pod_refuse_stream(struct api_request *request); /* POST …/eviction */

/* What PATCH sends: by Content-Type. */
struct json *api_patch_kind(const struct api_request *request, enum patch_kind *ret_kind);
/* A write prepared from the request: place, dryRun, fieldValidation; `warnings` is new. */
struct json *api_write_prepare(const struct api_request *request, struct write *ret_write);

/* ---- views: events.k8s.io/v1 shows core events in its own words ---- */

/* A stored object as `resource` shows it, and what `resource` takes as it is stored; both in place. */
void event_view_show(const struct resource *resource, struct json *object);
void event_view_take(const struct resource *resource, struct json *object);

#endif
