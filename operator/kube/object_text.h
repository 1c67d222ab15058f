/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares the JSON text of an API object for the parser: removes metadata.managedFields, so that
 * there is less to parse, and replaces NUL characters, which the parser refuses.
 */
#ifndef COXSWAIN_KUBE_OBJECT_TEXT_H
#define COXSWAIN_KUBE_OBJECT_TEXT_H

#include "common/buffer.h"

/* Changes the text in two ways; valid JSON stays valid JSON:
 *  - It cuts out metadata.managedFields, which the API server keeps for server-side apply: half the text of a pod, and
 *    never needed here. It cuts the first list of this name that follows another member. In an object of the API
 *    nothing that a user can write comes before its metadata.
 *  - It replaces NUL characters by U+FFFD. API servers store them, but C strings cannot hold them and the parser refuses
 *    them (common/json.h); one stored NUL must not end a watch. */
void object_text_prepare(struct buffer *text);

#endif
