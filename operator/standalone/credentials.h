/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes the door safe: a certificate authority of its own, a certificate
 * for 127.0.0.1 and localhost (EC P-256), a random bearer token, and the
 * kubeconfig that hands them to clients.
 *
 * All lie in the state directory with mode 0600 and are used again until the
 * certificate has less than thirty days left. The authority's private key is
 * never stored: it signs once.
 */
#ifndef COXSWAIN_STANDALONE_CREDENTIALS_H
#define COXSWAIN_STANDALONE_CREDENTIALS_H

#include <stdint.h>

#include "common/error.h"

struct credentials {
    char *ca_pem, *cert_pem, *key_pem, *token;
};

int credentials_load(const char *state_directory, struct credentials *ret_credentials, struct error *error);
void credentials_release(struct credentials *credentials);

/* Writes <state_directory>/kubeconfig, whole or not at all. */
int credentials_write_kubeconfig(const struct credentials *credentials, const char *state_directory, uint16_t port,
                                 struct error *error);

#endif
