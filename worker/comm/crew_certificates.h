/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the certificates with which the pods of one job encrypt their connections (spec.coxswain.encryption: TLS).
 *
 * The operator makes the certificates and mounts two files, even.pem and odd.pem: the current certificate and the one before or after it.
 * Each file is a PEM text: a line "from <Unix time>", the certificate, its key. All pods of a job present the same certificate: the newest
 * one whose time has come. They trust the certificates of both files and earlier ones that they have read, so that training continues while
 * the operator replaces the older file, and while the new file reaches some pods a minute before others. They trust no other certificate.
 *
 * There is one set of certificates per process. Functions may be called from any thread.
 */
#ifndef COXSWAIN_COMM_CREW_CERTIFICATES_H
#define COXSWAIN_COMM_CREW_CERTIFICATES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

#define CREW_CERTIFICATE_FILE_MAX (64 * 1024)

/* The certificate and key to present, and all trusted certificates, as PEM. Release with crew_identity_release. */
struct crew_identity {
    char *certificate_pem, *key_pem, *trusted_pem;
};

/* Makes new connections use TLS. ERROR_INVALID or ERROR_NOT_FOUND if neither file in `directory` can be used. NULL turns TLS off again,
 * for tests. */
int crew_certificates_open(const char *directory, struct error *error);
bool crew_certificates_are_set(void);

/* Returns the identity to use now. Reads a file again if it has changed; if it is broken or missing, its last contents are used. */
void crew_identity_now(struct crew_identity *ret_identity);
/* Reads a file again if it has changed, and returns a number that changes whenever the result of crew_identity_now would. */
uint64_t crew_identity_number(void);
void crew_identity_release(struct crew_identity *identity);

#endif
