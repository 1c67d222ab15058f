/* SPDX-License-Identifier: Apache-2.0
 *
 * Accepted text is the same after it is printed and parsed again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/json.h"
#include "tests/fuzz/expect.h"

#define CEILING (1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *value = NULL;
    if (json_parse((const char *)bytes, length, CEILING, &value, &error) < 0) {
        expect(error.kind == ERROR_INVALID && *error.message);
        return 0;
    }
    SCOPED_BUFFER out = BUFFER_INIT(8 * CEILING);
    expect(json_print_indented(value, &out, &error) == 0);
    SCOPED_JSON *again = NULL;
    expect(json_parse(out.data, out.length, 8 * CEILING, &again, &error) == 0);
    expect(json_equal(value, again));
    struct json *patched = json_copy(value);
    json_merge_patch(&patched, again);
    json_free(patched);
    return 0;
}
