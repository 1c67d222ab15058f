/* SPDX-License-Identifier: Apache-2.0
 *
 * An accepted job document is converted to JSON and back without changes. Any TrainingJob is parsed, judged and released.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/contract/environment.h"
#include "common/job/training_job.h"
#include "tests/fuzz/expect.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void try_document(const struct json *source)
{
    struct error error = ERROR_INIT;
    SCOPED(job_document_release) struct job_document document = {0}, again = {0};
    if (job_document_parse(source, &document, &error) < 0) {
        expect(error.kind == ERROR_INVALID && *error.message);
        return;
    }
    SCOPED_JSON *first = job_document_to_json(&document);
    expect(job_document_parse(first, &again, &error) == 0);
    SCOPED_JSON *second = job_document_to_json(&again);
    expect(json_equal(first, second));
}

static void try_job(const struct json *source)
{
    SCOPED_JSON *object = json_new_object();
    json_set_string(json_set_object(object, "metadata"), "name", "digits");
    json_set(object, "spec", json_copy(source));
    json_set(object, "status", json_copy(source));
    struct error error = ERROR_INIT;
    SCOPED(training_job_release) struct training_job job;
    int result = training_job_parse(object, &job, &error);
    SCOPED_JSON *violations = training_job_violations(object, object);
    expect((result == 0) == (json_count(violations) == 0));
    json_free(job_status_to_json(&job.status));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_JSON *source = NULL;
    if (json_parse((const char *)bytes, length, JOB_DOCUMENT_MAX, &source, NULL) < 0)
        return 0;
    try_document(source);
    try_job(source);
    return 0;
}
