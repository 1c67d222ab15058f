/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files api_*.c and event_view.c, which together answer the requests of the embedded API server: a request's
 * parameters and body are read, the function of its verb calls the registry, and the object is sent in the form that the client asked for
 * (JSON, YAML, a Table, or metadata only).
 */
#ifndef COXSWAIN_STANDALONE_API_REQUEST_H
#define COXSWAIN_STANDALONE_API_REQUEST_H

#include "common/http_server.h"
#include "operator/standalone/api_path.h"
#include "operator/standalone/api_server.h"
#include "operator/standalone/registry_write.h"
#include "operator/standalone/selector.h"
#include "operator/standalone/table.h"

/* The last watch event as it was sent. All watches of one type send the same bytes, so it is
 * printed once. */
struct api_event {
    const struct resource *resource;
    const char *type; /* "ADDED", … */
    char version[API_VERSION_TEXT_MAX];
    struct http_bytes *line; /* NULL: no event was sent yet */
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
    const struct resource *resource; /* the type in the path; NULL for discovery paths such as /apis */
};

/* ---- parameters ---- */

enum answer_form { ANSWER_JSON, ANSWER_YAML, ANSWER_TABLE, ANSWER_METADATA, ANSWER_NONE };
/* The form that the Accept header asks for; ANSWER_NONE when the server supports none of those it
 * lists. */
enum answer_form api_answer_form(const struct http_exchange *exchange);
enum table_include api_table_include(const struct http_exchange *exchange);
bool api_query_flag(const struct http_exchange *exchange, const char *name); /* true for "1" and "true" */
int64_t api_query_integer(const struct http_exchange *exchange, const char *name, int64_t otherwise);

struct api_selection {
    struct selector labels, fields;
};
struct json *api_selection_parse(const struct api_request *request, struct api_selection *ret_selection);
void api_selection_release(struct api_selection *selection);
bool api_selection_matches(const struct api_selection *selection, const struct json *object);

/* Parses the body (JSON, YAML or protobuf). `*ret_body` is NULL for an empty body. */
struct json *api_read_body(const struct api_request *request, struct json **ret_body);

/* ---- answers ---- */

/* All take ownership of `value`, `refusal` or `object`. */
void api_answer(struct api_request *request, int status, struct json *value);
void api_refuse(struct api_request *request, struct json *refusal);
/* Answers with an object in the form that the client asked for. */
void api_answer_object(struct api_request *request, int status, struct json *object);
/* Like api_answer_object, but waits until all writes so far are on disk. */
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
void api_scale(struct api_request *request);     /* GET, PUT, PATCH …/scale */
void api_pod_log(struct api_request *request);   /* GET …/log */
void api_pod_evict(struct api_request *request); /* POST …/eviction */
/* Refuses exec, attach and portforward, which pods of this node do not support. Returns false for
 * other requests. */
bool api_pod_refuse_stream(struct api_request *request);

/* The kind of a PATCH, by its Content-Type. */
struct json *api_patch_kind(const struct api_request *request, enum patch_kind *ret_kind);
/* Fills a write with the request's object, dryRun and fieldValidation. `warnings` is a new array.
 * */
struct json *api_write_prepare(const struct api_request *request, struct write *ret_write);

/* ---- events.k8s.io/v1: core/v1 events with other field names ---- */

/* Converts a stored event to the version of `resource`, and back, in place. Other types are left as
 * they are. */
void event_view_show(const struct resource *resource, struct json *object);
void event_view_take(const struct resource *resource, struct json *object);

#endif
