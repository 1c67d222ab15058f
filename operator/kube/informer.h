/* SPDX-License-Identifier: Apache-2.0
 *
 * A live copy of one collection: listed once, then kept current by a watch.
 *
 * The first state comes as a watch with sendInitialEvents (Kubernetes 1.27 and later),
 * else, where the server refuses that, as a list in pages. Objects are parsed one
 * at a time into the caller's compact struct; no JSON is kept. A watch that
 * ends is taken up where it stopped; one whose position has expired (410) leads to
 * a new list, and whatever has vanished meanwhile is reported as deleted.
 * A dead connection, a frozen server and a proxy that swallows bytes are all noticed within
 * 30 s: the server is asked to end each watch after `watch_seconds`, which it does with a bookmark, so a
 * longer silence than that (`silence_ms`) means that nobody is there.
 *
 * Keys are "namespace/name", or "name" for what has no namespace.
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

/* So long, at most, an API server is back and nobody looks. */
#define INFORMER_RETRY_MAX_MS 10000

struct informer_options {
    struct kube_resource resource;
    const char *name_space;     /* NULL: all */
    const char *label_selector; /* NULL: everything */
    const char *field_selector;

    /* Makes the caller's struct of an object; NULL: not of interest (as if it were not there). */
    void *(*parse)(void *context, const struct json *object);
    void (*item_free)(void *item);

    /* Called from the loop, after the table has changed; any may be NULL. `old` and a deleted `item` are freed after the
     * call. An object deleted and made anew between two looks (another uid) is reported as deleted, then added. */
    void (*on_added)(void *context, const char *key, const void *item);
    void (*on_changed)(void *context, const char *key, const void *old, const void *item);
    void (*on_deleted)(void *context, const char *key, const void *item);
    void (*on_synced)(void *context); /* once, when the first state is complete */
    /* A refusal (informer_refusal) is over: what was seen before it goes on, or all of it was listed anew. */
    void (*on_shown_again)(void *context);
    /* Something failed and is tried again by itself; for the log. */
    void (*on_trouble)(void *context, const struct error *error);
    void *context;

    size_t object_max;       /* bytes of one object as JSON; 0: KUBE_OBJECT_MAX */
    unsigned page_size;      /* of a list; 0: 500 */
    int64_t watch_seconds;   /* timeoutSeconds asked of the server; 0: 20 */
    int64_t silence_ms;      /* longest silence believed; 0: 28000 */
    int64_t backoff_base_ms; /* after a failure, doubled up to INFORMER_RETRY_MAX_MS, jittered; 0: 500 */
    bool never_stream_list;  /* do not try sendInitialEvents */
};

/* For `parse` and `item_free` of who keeps the whole object: an item is a struct json. */
void *informer_keep(void *context, const struct json *object);
void informer_drop(void *item);

/* Copies `options`. Starts at once. The client must outlive it. */
struct informer *informer_start(struct kube_client *client, const struct informer_options *options);
/* No callback but item_free is called from here on. Not from within one of its own callbacks. */
void informer_free(struct informer *informer);

/* True from the first complete state on; stays true while the watch is re-established. */
bool informer_synced(const struct informer *informer);
/* What the server says to those who may not look (any more), who are not known to it, or who look for what it does not
 * serve: that passes when a person mends it, and until then the copy grows old. NULL: nothing of the kind. */
const struct error *informer_refusal(const struct informer *informer);
size_t informer_count(const struct informer *informer);
/* Borrowed until the loop's next turn; NULL when absent. */
const void *informer_get(const struct informer *informer, const char *key);
/* for (size_t at = 0; informer_next(informer, &at, &key, &item);) in no particular order. */
bool informer_next(const struct informer *informer, size_t *at, const char **ret_key, const void **ret_item);

/* Whether the cache has caught up with a write of ours that was answered with `resource_version` (of an object of this
 * collection): the watch delivers in the order of resourceVersions, which compare as numbers within one resource
 * (KEP-5504). 0: nothing was written. */
bool informer_has_seen(const struct informer *informer, uint64_t resource_version);
/* A resourceVersion as a number; 0 for NULL and what is no number. */
uint64_t resource_version_number(const char *text);

/* How often lists were completed, watches were started, events were taken. What came and went before a list's snapshot
 * nobody has heard of, and that goes for all that was made until it counts. */
struct informer_counts {
    uint64_t lists, watches, events;
};
struct informer_counts informer_counts(const struct informer *informer);

#endif
