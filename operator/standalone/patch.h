/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies patches of the embedded API server's clients: JSON Patch (RFC 6902) and strategic merge patches, in which lists of known fields
 * merge by key. Merge patches (RFC 7386) are json_merge_patch in common/json.h.
 */
#ifndef COXSWAIN_STANDALONE_PATCH_H
#define COXSWAIN_STANDALONE_PATCH_H

#include "common/error.h"
#include "common/json.h"

#define PATCH_OPERATIONS_MAX 10000

/* Applies an array of add, remove, replace, move, copy and test operations. On failure `*target`
 * may be partly changed, so pass a copy. ERROR_INVALID for a malformed patch or a test that fails. */
int patch_apply_json(struct json **target, const struct json *patch, struct error *error);

/* Returns the key by which a strategic merge patch merges the elements of the field `field`, whose value
 * in the patch is `list`: "name" for containers. NULL if such lists do not merge by a key. */
const char *patch_merge_key(const char *field, const struct json *list);

/* Applies a strategic merge patch. Supports the directives $patch (delete, replace, merge),
 * $deleteFromPrimitiveList/…, $setElementOrder/… and $retainKeys. On failure `target` may be partly
 * changed. ERROR_INVALID for a malformed patch. */
int patch_apply_strategic(struct json *target, const struct json *patch, struct error *error);

#endif
