/* SPDX-License-Identifier: Apache-2.0
 *
 * Accepted text is the same after it is printed and read again.
 */
#include <stdint.h>

#include "common/yaml.h"
#include "tests/fuzz/expect.h"

#define CEILING (1024 * 1024)
#define PRINTED_MAX (64 * CEILING)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect_round_trip(const struct json *value)
{
    struct error error = ERROR_INIT;
    SCOPED_BUFFER out = BUFFER_INIT(CEILING);
    if (yaml_print(value, &out, &error) < 0) {
        expect(error.kind == ERROR_TOO_LARGE);
        return;
    }
    SCOPED_JSON *documents = NULL;
    expect(yaml_parse(out.data, out.length, PRINTED_MAX, &documents, &error) == 0);
    expect(json_count(documents) == 1 && json_equal(value, json_first(documents)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *documents = NULL;
    if (yaml_parse((const char *)bytes, length, CEILING, &documents, &error) < 0) {
        expect(*error.message);
        return 0;
    }
    for (const struct json *value = json_first(documents); value; value = json_next(value))
        expect_round_trip(value);
    return 0;
}
