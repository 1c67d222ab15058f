/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the hosts files of the pods that the embedded control plane's node runs; these files replace cluster DNS. A headless Service
 * publishes the pods that its selector matches, that have a hostname and whose subdomain is its name, once they are ready, or at once with
 * publishNotReadyAddresses. Pods that have ended are not published.
 */
#ifndef COXSWAIN_STANDALONE_NODE_HOSTS_H
#define COXSWAIN_STANDALONE_NODE_HOSTS_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/json.h"

#define HOSTS_FILE_MAX (4 * 1024 * 1024)

/* Returns whether `service` publishes `pod` now. */
bool service_publishes(const struct json *service, const struct json *pod);

/* Appends the entries of all published pods for a reader in `name_space`. Pods of the same
 * namespace also get their short name ("host.service"), which a DNS search path would resolve. */
void hosts_published(struct buffer *out, const char *name_space, const struct json *const *services,
                     size_t service_count, const struct json *const *pods, size_t pod_count);

/* Writes the hosts file of `pod`; `published` holds the entries for its namespace. */
void hosts_write(struct buffer *out, const struct json *pod, const struct buffer *published);

#endif
