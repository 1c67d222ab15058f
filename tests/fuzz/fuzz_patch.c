/* SPDX-License-Identifier: Apache-2.0
 *
 * {"target":…,"patch":…,"schema":…}: any patches and schemas are applied or refused.
 */
#include <stdint.h>

#include "operator/standalone/patch.h"
#include "operator/standalone/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_JSON *input = NULL;
    if (length > 4096 || json_parse((const char *)bytes, length, 4096, &input, NULL) < 0)
        return 0;
    const struct json *patch = json_member(input, "patch"), *target = json_member(input, "target");
    if (target == NULL || patch == NULL)
        return 0;
    SCOPED_JSON *one = json_copy(target), *two = json_copy(target), *lists = json_new_array();
    patch_apply_json(&one, patch, NULL);
    if (json_type(two) == JSON_OBJECT)
        patch_apply_strategic(two, patch, NULL);
    schema_prune(json_member(input, "schema"), two, lists);
    schema_default(json_member(input, "schema"), two);
    schema_validate(json_member(input, "schema"), two, lists);
    return 0;
}
