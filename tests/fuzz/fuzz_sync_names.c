/* SPDX-License-Identifier: Apache-2.0
 *
 * The object that lists incomplete folders. Each line is found again, and so is the folder of a file in it.
 */
#include <stdint.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "storage/sync_names.h"
#include "tests/fuzz/expect.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct sync_names names = {.names = NULL};
    size_t lines = length > 0 && bytes[length - 1] != '\n';
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    sync_names_parse(&names, (const char *)bytes, length);
    sync_names_sort(&names);
    expect(names.count == lines);
    for (size_t i = 0; i < names.count; i++) {
        SCOPED_FREE char *file = memory_format("%s/file", names.names[i]);
        expect(!strchr(names.names[i], '\n') && sync_names_has(&names, names.names[i]));
        expect(sync_names_has_folder_of(&names, file));
    }
    sync_names_release(&names);
    return 0;
}
