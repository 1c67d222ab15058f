/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves host names to numeric addresses. Results are not cached, because a replaced pod keeps its name and gets another address. Looks
 * in the file named by COXSWAIN_HOSTS_FILE first (in the format of /etc/hosts, updated by the embedded control plane's node), then asks
 * the system's resolver.
 */
#ifndef COXSWAIN_COMM_RESOLVE_H
#define COXSWAIN_COMM_RESOLVE_H

#include <stddef.h>

#include "common/error.h"

#define RESOLVE_ADDRESS_MAX 64
/* A hosts file that is larger or cannot be read is ignored. */
#define RESOLVE_FILE_MAX ((size_t)1 << 20)

/* Finds a numeric address of `host`; blocks while the resolver does. A numeric address is returned unchanged. ERROR_UNAVAILABLE if the name has
 * no address, or none yet. */
int resolve_host(const char *host, char ret_address[RESOLVE_ADDRESS_MAX], struct error *error);

/* Finds the address of `host` in a hosts file's text. Returns -1 if it is not there. */
int resolve_in_hosts_text(const char *text, size_t length, const char *host, char ret_address[RESOLVE_ADDRESS_MAX]);

#endif
