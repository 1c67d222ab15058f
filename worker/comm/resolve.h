/* SPDX-License-Identifier: Apache-2.0
 *
 * Host name to numeric address, freshly on every call: a replaced pod keeps its
 * name and gets another address. The file named by COXSWAIN_HOSTS_FILE (in the
 * format of /etc/hosts, kept current by the node) is asked first, then the
 * system's resolver.
 */
#ifndef COXSWAIN_COMM_RESOLVE_H
#define COXSWAIN_COMM_RESOLVE_H

#include <stddef.h>

#include "common/error.h"

#define RESOLVE_ADDRESS_MAX 64
/* A hosts file beyond this is refused. */
#define RESOLVE_FILE_MAX ((size_t)1 << 20)

/* Numeric addresses are handed back as they are. ERROR_UNAVAILABLE when the name has no address (yet). */
int resolve_host(const char *host, char ret_address[RESOLVE_ADDRESS_MAX], struct error *error);

/* The address of `host` in a hosts file's text; 0 when found, -1 when it is not there. */
int resolve_in_hosts_text(const char *text, size_t length, const char *host, char ret_address[RESOLVE_ADDRESS_MAX]);

#endif
