/* SPDX-License-Identifier: Apache-2.0
 *
 * X.509 certificates with keys on the curve P-256 (RFC 5280), as PEM. OpenSSL
 * does the work.
 */
#ifndef COXSWAIN_COMMON_CERTIFICATE_H
#define COXSWAIN_COMMON_CERTIFICATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* Both NUL-terminated; release with certificate_release. */
struct certificate {
    char *certificate_pem, *key_pem;
};

struct certificate_request {
    const char *common_name;
    const char *names;        /* "IP:127.0.0.1,DNS:localhost"; NULL: none */
    bool is_authority;        /* may sign others */
    int64_t from_s, until_s;  /* validity, Unix time */
    const char *extended_use; /* "serverAuth"; NULL: any */
};

/* With a new key. `issuer` NULL: it signs itself. ERROR_INTERNAL with OpenSSL's words. */
int certificate_make(const struct certificate_request *request, const struct certificate *issuer,
                     struct certificate *ret_made, struct error *error);
void certificate_release(struct certificate *certificate);

/* When the first certificate of a PEM text ends, Unix time. ERROR_INVALID when there is none. */
int certificate_end(const char *pem, int64_t *ret_until_s, struct error *error);

#endif
