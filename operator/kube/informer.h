/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a local cache of one collection: lists it once, then follows it with a watch.
 *
 * The initial state comes from a watch with sendInitialEvents (Kubernetes 1.27 and later) or, if
 * the server refuses that, from a paged list. Objects are parsed one at a time into the caller's
 * compact struct; no JSON is kept. A watch that ends is resumed at its resourceVersion. If that
 * has expired (410), the collection is listed again and objects that have disappeared are
 * reported as deleted.
 * A dead connection, a frozen server and a proxy that drops bytes are all noticed within 30 s:
 * the server is asked to end each watch after `watch_seconds`, which it does with a bookmark, so
 * a longer silence (`silence_ms`) means that the connection is broken.
 *
 * Keys are "namespace/name", or "name" for cluster-scoped objects.
 */
#ifndef COXSWAIN_KUBE_INFORMER_H
#define COXSWAIN_KUBE_INFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/json.h"
#include "operator/kube/client.h"

struct informer;

/* Longest pause between two tries while the API server does not answer. */
#define INFORMER_RETRY_MAX_MS 10000

struct informer_options {
    struct kube_resource resource;
    const char *name_space;     /* NULL: all */
    const char *label_selector; /* NULL: everything */
    const char *field_selector;

    /* Parses an object into the caller's struct. NULL: ignore the object, as if it did not exist. */
    void *(*parse)(void *context, const struct json *object);
    void (*item_free)(void *item);

    /* Called from the loop after the cache has changed, also for each object of the initial state; any may be NULL.
     * `old` and a deleted `item` are freed after the call. An object that was deleted and created again between two
     * events (its uid differs) is reported as deleted, then as added. */
    void (*on_added)(void *context, const char *key, const void *item);
    void (*on_changed)(void *context, const char *key, const void *old, const void *item);
    void (*on_deleted)(void *context, const char *key, const void *item);
    void (*on_synced)(void *context); /* once, when the initial state is complete */
    /* The server grants access again after a refusal (informer_refusal): the watch was resumed, or the list repeated. */
    void (*on_access_restored)(void *context);
    /* A request failed; the informer retries by itself. For the log. */
    void (*on_failure)(void *context, const struct error *error);
    void *context;

    size_t object_max;       /* bytes of one object as JSON; 0: KUBE_OBJECT_MAX */
    unsigned page_size;      /* of a list; 0: 500 */
    int64_t watch_seconds;   /* timeoutSeconds asked of the server; 0: 20 */
    int64_t silence_ms;      /* longest silence before a watch is given up; 0: 28000 */
    int64_t backoff_base_ms; /* after a failure, doubled up to INFORMER_RETRY_MAX_MS, jittered; 0: 500 */
    bool never_stream_list;  /* do not try sendInitialEvents */
};

/* Use these as `parse` and `item_free` to cache whole objects: each item is then a struct json. */
void *informer_item_copy(void *context, const struct json *object);
void informer_item_free(void *item);

/* Starts an informer at once. Copies `options`. The client must outlive it. */
struct informer *informer_start(struct kube_client *client, const struct informer_options *options);
/* Stops and frees the informer; from here on no callback but item_free is called. Must not be called from one of its own
 * callbacks. */
void informer_free(struct informer *informer);

/* Returns whether the initial state is complete. Stays true while the watch is re-established. */
bool informer_synced(const struct informer *informer);
/* Returns the last error if the server refuses access to the collection: 401, 403, or 404 (it does not serve this
 * resource). The informer keeps trying, but the cache is outdated until a person grants access. NULL: not refused. */
const struct error *informer_refusal(const struct informer *informer);
size_t informer_count(const struct informer *informer);
/* Borrowed until the loop's next turn; NULL when absent. */
const void *informer_get(const struct informer *informer, const char *key);
/* Iterates in no particular order: for (size_t at = 0; informer_next(informer, &at, &key, &item);) */
bool informer_next(const struct informer *informer, size_t *at, const char **ret_key, const void **ret_item);

/* Returns whether the cache includes our write that was answered with `resource_version`, of an object of this
 * collection. The watch delivers in the order of resourceVersions, which compare as numbers within one resource
 * (KEP-5504). True for 0, which means that nothing was written. */
bool informer_has_seen(const struct informer *informer, uint64_t resource_version);
/* Returns a resourceVersion as a number; 0 for NULL or text that is not a number. */
uint64_t resource_version_number(const char *text);

/* Lists completed, watches started and events received so far. An object that was created and deleted before a list's
 * snapshot is never reported; compare `lists` to find out whether a list was completed in between. */
struct informer_counts {
    uint64_t lists, watches, events;
};
struct informer_counts informer_counts(const struct informer *informer);

#endif
