/* SPDX-License-Identifier: Apache-2.0
 *
 * An accepted selector can be evaluated; a refused one has an error.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/memory.h"
#include "operator/standalone/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_FREE char *text = memory_copy_bytes((const char *)bytes, length);
    SCOPED_JSON *labels = json_new_object();
    struct resource_table *table = resource_table_new();
    struct selector selector;
    struct error error = ERROR_INIT;
    json_set_string(labels, "a", "1");
    if (selector_parse_labels(text, &selector, &error) == 0) {
        selector_matches_labels(&selector, labels);
        selector_release(&selector);
    } else if (error.kind != ERROR_INVALID) {
        abort();
    }
    if (selector_parse_fields(resource_find_plural(table, "pods"), text, &selector, &error) == 0) {
        selector_matches_fields(&selector, labels);
        selector_release(&selector);
    }
    resource_table_free(table);
    return 0;
}
