/* SPDX-License-Identifier: Apache-2.0
 *
 * What cluster DNS would answer, as the text of a hosts file. A pod with a host
 * name and a subdomain is published by the headless Service of that name when its
 * selector matches the pod's labels, and once the pod is ready unless the Service
 * has publishNotReadyAddresses. Pods that have ended have no address.
 */
#ifndef COXSWAIN_STANDALONE_NODE_HOSTS_H
#define COXSWAIN_STANDALONE_NODE_HOSTS_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/json.h"

#define HOSTS_FILE_MAX (4 * 1024 * 1024)

bool service_publishes(const struct json *service, const struct json *pod);

/* What a reader in `name_space` finds about all pods; those of its own namespace also by their short name ("host.svc"), as
 * its search path would allow. */
void hosts_published(struct buffer *out, const char *name_space, const struct json *const *services,
                     size_t service_count, const struct json *const *pods, size_t pod_count);

/* The file of `pod`, around what is published for its namespace. */
void hosts_write(struct buffer *out, const struct json *pod, const struct buffer *published);

#endif
