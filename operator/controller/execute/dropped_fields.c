/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/dropped_fields.h"

#include <string.h>

#include "common/buffer.h"
#include "common/memory.h"
#include "operator/controller/execute/status_patch.h"

#define RETRY_MS (5 * 60 * 1000)
#define NAMES_MAX 1024

bool dropped_fields_in_vain(const struct json *patch, const char *version)
{
    return version && strcmp(json_string_at(patch, "metadata.resourceVersion", ""), version) == 0;
}

/* "status.startTime, status.controllerState.attempt" */
static void add_names(const struct json *object, const char *path, struct buffer *names)
{
    for (const struct json *field = json_first(object); field; field = json_next(field)) {
        SCOPED_FREE char *own = memory_format("%s.%s", path, json_key(field));
        if (json_type(field) == JSON_OBJECT)
            add_names(field, own, names);
        else
            buffer_format(names, "%s%s", names->length > 0 ? ", " : "", own);
    }
}

char *dropped_fields_note(struct dropped_fields *dropped, const struct json *patch, int64_t now_ms)
{
    json_free(dropped->patch);
    dropped->patch = json_copy(json_member(patch, "status"));
    dropped->retry_ms = now_ms + RETRY_MS;
    if (dropped->named)
        return NULL;
    dropped->named = true;
    SCOPED_BUFFER names = BUFFER_INIT(NAMES_MAX);
    add_names(dropped->patch, "status", &names);
    return memory_copy_string(buffer_text(&names));
}

bool dropped_fields_cover(const struct dropped_fields *dropped, const struct training_job *job,
                          const struct job_status *after, int64_t now_ms)
{
    if (!dropped->patch || now_ms >= dropped->retry_ms)
        return false;
    SCOPED_JSON *patch = status_patch(job, after);
    return json_equal(json_member(patch, "status"), dropped->patch);
}

void dropped_fields_clear(struct dropped_fields *dropped)
{
    json_free(dropped->patch);
    *dropped = (struct dropped_fields){0};
}
