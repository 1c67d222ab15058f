/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes X.509 certificates (RFC 5280) with keys on the curve P-256, as PEM, and reads when a certificate expires. Uses OpenSSL.
 */
#ifndef COXSWAIN_COMMON_CERTIFICATE_H
#define COXSWAIN_COMMON_CERTIFICATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* A certificate and its private key. Release with certificate_release. */
struct certificate {
    char *certificate_pem, *key_pem;
};

struct certificate_request {
    const char *common_name;
    const char *names;        /* subject alternative names, "IP:127.0.0.1,DNS:localhost"; NULL: none */
    bool is_authority;        /* may sign other certificates */
    int64_t from_s, until_s;  /* validity, Unix time in seconds */
    const char *extended_use; /* extended key usage, "serverAuth"; NULL: any */
    const char *key_pem;      /* the key that is certified; NULL: a new one */
};

/* Makes a certificate, signed by `issuer` (NULL: self-signed). ERROR_INTERNAL with OpenSSL's reason. */
int certificate_make(const struct certificate_request *request, const struct certificate *issuer,
                     struct certificate *ret_made, struct error *error);
/* Frees both texts and erases the key's memory first. */
void certificate_release(struct certificate *certificate);

/* Returns whether both texts can be read and the key is the certificate's. */
bool certificate_has_key(const struct certificate *certificate);

/* Reads the time (Unix, in seconds) at which the first certificate of a PEM text expires. ERROR_INVALID if the text has none. */
int certificate_end(const char *pem, int64_t *ret_until_s, struct error *error);

#endif
