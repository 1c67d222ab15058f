/* SPDX-License-Identifier: Apache-2.0
 *
 * Gets temporary credentials for object storage from the identity of a pod's service account, so that no key is kept in a Secret ("workload
 * identity"). The cluster puts the settings into the pod as environment variables, with the names that the AWS SDKs read, in one of two
 * ways:
 *
 *   AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN    The token of the service account is exchanged for credentials by
 *     AssumeRoleWithWebIdentity (IAM roles for service accounts of EKS; MinIO and Ceph have it, too). AWS_ENDPOINT_URL_STS names the
 *     server; without it, the one of AWS in the client's region is asked. AWS_ROLE_SESSION_NAME is optional.
 *   AWS_CONTAINER_CREDENTIALS_FULL_URI, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE    An agent on the node answers with credentials (EKS Pod
 *     Identity). Only https and the addresses of such agents are accepted: a token is sent there.
 *
 * Credentials are kept, and renewed five minutes before they expire. While a renewal fails, they are used until they expire. Token files
 * are read again for each renewal. Uses libcurl.
 */
#ifndef COXSWAIN_COMMON_S3_IDENTITY_H
#define COXSWAIN_COMMON_S3_IDENTITY_H

#include <stdbool.h>

#include "common/error.h"

struct s3_identity;

/* Returns whether the environment has the variables of one of the two ways, and these credentials are meant for `host` ("HOST" or
 * "HOST:PORT"). EKS sets the variables in all pods of a service account, but AWS's credentials are only for AWS's hosts; for MinIO or Ceph,
 * AWS_ENDPOINT_URL_STS must be set. If false, requests are sent without these credentials, as for public buckets of other servers. */
bool s3_identity_is_for(const char *host);

/* The strings are copied. `ca_file` (may be NULL) has the CA certificates (PEM) with which the certificate of the STS server, or of an
 * agent with https, is verified; those of the system are used while there is no such file. It is read again for each renewal. */
struct s3_identity *s3_identity_new(const char *region, const char *ca_file);
/* Frees the identity; NULL is allowed. No call of s3_identity_credentials may be running. */
void s3_identity_free(struct s3_identity *identity);

/* Copies valid credentials; release them with free(). Blocks while it renews them, for at most 20 seconds. Any thread may call it. Errors:
 * UNAVAILABLE (a later call may succeed), FORBIDDEN (the server refuses the token or the role, or its certificate is not trusted), INVALID
 * (a wrong variable), CORRUPT (the answer has no credentials), or that of reading the token file. */
int s3_identity_credentials(struct s3_identity *identity, char **ret_key, char **ret_secret, char **ret_token,
                            struct error *error);

#endif
