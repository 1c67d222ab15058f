/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads where a job saves in object storage: the JSON that the operator gives the trainer in ENV_CHECKPOINT_S3 or ENV_EXPORT_S3
 * (common/contract/environment.h).
 */
#ifndef COXSWAIN_CHECKPOINT_S3_SETTINGS_H
#define COXSWAIN_CHECKPOINT_S3_SETTINGS_H

#include "common/s3_client.h"

/* Connections over which one process uploads and downloads. */
#define S3_SETTINGS_CONNECTIONS 8

/* Creates a client for the bucket. `text` is the value of the environment variable `variable`, at most JOB_DOCUMENT_MAX bytes; `patience_ms`
 * is how long the client repeats a failing request (s3_client.h). The client is released with s3_client_free, the prefix with free().
 * ERROR_INVALID and ERROR_TOO_LARGE name the variable and the field that is wrong. */
int s3_settings_open(const char *variable, const char *text, int64_t patience_ms, struct s3_client **ret_client,
                     char **ret_prefix, struct error *error);

#endif
