/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/job_document.h"

#include "common/job/field_check.h"
#include "common/job/field_default.h"
#include "common/job/field_read.h"
#include "common/job/field_write.h"

int job_document_parse(const struct json *source, struct job_document *ret_document, struct error *error)
{
    SCOPED_JSON *object = json_copy(source);
    fields_default(&job_document_type, object);
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, "");
    fields_check(&job_document_type, object, NULL, true, &violations);
    if (violations_to_error(&violations, error) < 0)
        return -1;
    *ret_document = (struct job_document){.opaque = json_new_array()};
    struct field_reader reader = {.arena = &ret_document->arena, .opaque = ret_document->opaque};
    fields_unset(&job_document_type, ret_document);
    fields_read(&job_document_type, object, ret_document, &reader);
    return 0;
}

void job_document_release(struct job_document *document)
{
    arena_release(&document->arena);
    if (document->opaque)
        json_free(document->opaque);
    *document = (struct job_document){0};
}

bool job_document_uses_plugin(const struct job_document *document)
{
    return document->model.program_path != NULL || document->devices.type == DEVICE_TYPE_TPU ||
           document->devices.plugin != NULL;
}

bool job_document_has_global_statistics(const struct job_document *document)
{
    const struct model_spec *model = &document->model;
    bool global = model->statistics == STATISTICS_GLOBAL;
    for (unsigned i = 0; i < model->layer_count; i++)
        global |= model->layers[i].statistics == STATISTICS_GLOBAL;
    return global;
}

struct json *job_document_to_json(const struct job_document *document)
{
    struct json *object = json_new_object();
    fields_write(&job_document_type, document, object);
    return object;
}
