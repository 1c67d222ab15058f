/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses request bodies in application/vnd.kubernetes.protobuf, which kubectl create sends to the embedded API server for built-in types:
 * "k8s\0" followed by a runtime.Unknown message. Only types that kubectl makes from its command line are known; others are refused with
 * ERROR_UNSUPPORTED. Field numbers are those of k8s.io/api's generated.proto. Empty fields are omitted, as in JSON.
 */
#ifndef COXSWAIN_STANDALONE_PROTOBUF_BODY_H
#define COXSWAIN_STANDALONE_PROTOBUF_BODY_H

#include "common/error.h"
#include "common/json.h"

#define PROTOBUF_MEDIA_TYPE "application/vnd.kubernetes.protobuf"

/* ERROR_UNSUPPORTED for an unknown kind, ERROR_INVALID for malformed bytes. */
int protobuf_body_parse(const void *bytes, size_t length, struct json **ret_object, struct error *error);

#endif
