/* SPDX-License-Identifier: Apache-2.0
 *
 * metadata.managedFields, which the API server keeps for server-side apply: half the
 * text of a pod, and nothing that a cache is asked for. Cut out of the text, it
 * need not be parsed.
 */
#ifndef COXSWAIN_KUBE_MANAGED_FIELDS_H
#define COXSWAIN_KUBE_MANAGED_FIELDS_H

#include "common/buffer.h"

/* Cuts the first list of this name that follows another member: in an object of the API nothing that a user could write
 * comes before its metadata. Valid JSON stays valid JSON; what else the text may be is for the parser to judge. */
void managed_fields_cut(struct buffer *text);

#endif
