/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and stores the TLS and token credentials of the embedded control plane's API server: a
 * certificate authority, a server certificate for 127.0.0.1 and localhost (EC P-256), a random bearer
 * token, and the kubeconfig with which clients use them.
 *
 * They are stored in the state directory with mode 0600. When the certificate has less than thirty days
 * left, all of them are replaced; clients must then read the new kubeconfig. The authority's private key
 * signs one certificate and is never stored.
 */
#ifndef COXSWAIN_STANDALONE_CREDENTIALS_H
#define COXSWAIN_STANDALONE_CREDENTIALS_H

#include <stdint.h>

#include "common/error.h"

struct credentials {
    char *ca_pem, *cert_pem, *key_pem, *token;
};

/* Reads the stored credentials; creates and stores new ones if they are missing or expire soon. */
int credentials_load(const char *state_directory, struct credentials *ret_credentials, struct error *error);
void credentials_release(struct credentials *credentials);

/* Writes <state_directory>/kubeconfig atomically. */
int credentials_write_kubeconfig(const struct credentials *credentials, const char *state_directory, uint16_t port,
                                 struct error *error);

#endif
