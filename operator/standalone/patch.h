/* SPDX-License-Identifier: Apache-2.0
 *
 * The patches of the Kubernetes API beside RFC 7386 (json_merge_patch in
 * common/json.h): JSON Patch (RFC 6902) and strategic merge, in which lists of
 * known fields merge by key.
 */
#ifndef COXSWAIN_STANDALONE_PATCH_H
#define COXSWAIN_STANDALONE_PATCH_H

#include "common/error.h"
#include "common/json.h"

#define PATCH_OPERATIONS_MAX 10000

/* Applies an array of add, remove, replace, move, copy and test operations to `*target`. On failure the target is half
 * changed: work on a copy. ERROR_INVALID for a malformed patch or a test that fails. */
int patch_apply_json(struct json **target, const struct json *patch, struct error *error);

/* The key by which the elements of this list field merge; NULL: it is replaced as a whole. */
const char *patch_merge_key(const char *field, const struct json *list);

/* Directives understood: $patch (delete, replace, merge), $deleteFromPrimitiveList/…, $setElementOrder/…, $retainKeys. */
int patch_apply_strategic(struct json *target, const struct json *patch, struct error *error);

#endif
