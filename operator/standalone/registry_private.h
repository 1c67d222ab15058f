/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines struct registry, the embedded control plane's store of objects, for the files that implement it: registry.c, registry_write.c and
 * garbage_collector.c. No other file includes this header.
 */
#ifndef COXSWAIN_STANDALONE_REGISTRY_PRIVATE_H
#define COXSWAIN_STANDALONE_REGISTRY_PRIVATE_H

#include "operator/standalone/registry_write.h"

/* A write that is not committed yet. Watches get it after the commit. */
struct change {
    struct change *next;
    enum store_change change;
    char *storage;
    struct json *object, *previous;
};

/* A call of registry_when_durable that waits for the commit. */
struct acknowledgement {
    struct acknowledgement *next;
    registry_durable *done;
    void *context;
};

struct registry_subscription {
    struct registry_subscription *next;
    char *storage; /* NULL: every resource */
    registry_watcher *watcher;
    registry_observer *observer; /* instead of `watcher` */
    void *context;
    bool dead; /* to be freed when no delivery is under way */
};

struct registry {
    struct store *store;
    struct resource_table *resources;
    struct event_loop *loop;
    struct event_timer *commit_timer;
    struct change *changes, **changes_end; /* not yet committed */
    struct acknowledgement *acknowledgements, **acknowledgements_end;
    struct registry_subscription *subscriptions;
    unsigned deliveries; /* nested deliveries under way */
};

/* Stores `object`, whose metadata is complete, and queues the change for the next commit. `previous` is the object
 * before the change; NULL: it is new. Takes no ownership. Returns NULL or a refusal. */
struct json *registry_put(struct registry *registry, const struct resource *resource, struct json *object,
                          const struct json *previous);
/* Removes `object` from the store and queues the change for the next commit. Returns NULL or a refusal. */
struct json *registry_remove(struct registry *registry, const struct resource *resource, struct json *object);

#endif
