/* SPDX-License-Identifier: Apache-2.0
 *
 * Any job of v1alpha1 or of Kubeflow becomes a job of the served version, and each note names a field.
 */
#include <stdint.h>

#include "common/yaml.h"
#include "operator/cli/migration.h"
#include "tests/fuzz/expect.h"

#define CEILING (1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect_translated(const struct json *document)
{
    SCOPED_JSON *job = NULL;
    SCOPED_JSON *notes = json_new_array();
    SCOPED_JSON *more = json_new_array();
    struct json *again = NULL;
    if (!migration_translate(document, &job, notes)) {
        expect(!job);
        return;
    }
    expect(!migration_translate(job, &again, more) && json_count(more) == 0);
    for (const struct json *note = json_first(notes); note; note = json_next(note))
        expect(*json_string_at(note, "field", "") && *json_string_at(note, "message", ""));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_JSON *documents = NULL;
    if (yaml_parse((const char *)bytes, length, CEILING, &documents, NULL) < 0)
        return 0;
    for (const struct json *document = json_first(documents); document; document = json_next(document))
        expect_translated(document);
    return 0;
}
