/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies in application/vnd.kubernetes.protobuf, which kubectl create sends for
 * built-in types: the envelope "k8s\0" + runtime.Unknown, and in it those types
 * that kubectl makes from its command line. Field numbers are those of
 * k8s.io/api's generated.proto. Empty fields are left out, as JSON has them.
 */
#ifndef COXSWAIN_STANDALONE_PROTOBUF_BODY_H
#define COXSWAIN_STANDALONE_PROTOBUF_BODY_H

#include "common/error.h"
#include "common/json.h"

#define PROTOBUF_MEDIA_TYPE "application/vnd.kubernetes.protobuf"

/* ERROR_UNSUPPORTED for a kind that is not known here, ERROR_INVALID for bytes that are malformed. */
int protobuf_body_parse(const void *bytes, size_t length, struct json **ret_object, struct error *error);

#endif
