/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds TF_CONFIG. Dense: every pod gets the addresses of all roles that compute; so does the evaluator, which is not part of the crew.
 * Sparse, for elastic workers, which come and go: a worker gets the address of every ps and its own.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/buffer.h"
#include "common/contract/environment.h"
#include "common/job/job_roles.h"
#include "operator/controller/objects/environment_framework.h"
#include "operator/controller/objects/environment_list.h"

/* {"cluster":…,"task":{"type":"evaluator","index":999},"environment":"cloud"} without the cluster. */
#define AROUND_CLUSTER 96

static void append_address(const struct training_job *job, enum role role, int64_t index, struct buffer *out)
{
    buffer_format(out, "\"%s-%s-%" PRId64 ".%s.%s.svc:%" PRId64 "\"", job->name, role_name(role), index, job->name,
                  job->namespace, crew_port(job, role));
}

static void append_role(const struct training_job *job, enum role role, struct buffer *out)
{
    int64_t count = job_role_count(job, role);
    if (role == ROLE_EVALUATOR || count == 0)
        return;
    buffer_format(out, "%s\"%s\":[", out->length > 1 ? "," : "", role_name(role));
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_byte(out, ',', NULL);
        append_address(job, role, i, out);
    }
    buffer_append_byte(out, ']', NULL);
}

static int dense_cluster(const struct training_job *job, char **ret_text, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(SIZE_MAX / 2);
    buffer_append_byte(&text, '{', NULL);
    for (int role = 0; role < ROLE_COUNT; role++)
        append_role(job, (enum role)role, &text);
    buffer_append_byte(&text, '}', NULL);
    size_t length = text.length + AROUND_CLUSTER;
    if (length > JOB_DOCUMENT_MAX)
        return error_set(error, ERROR_TOO_LARGE,
                         "TF_CONFIG, which names every pod, would take %zu KiB; an environment variable holds %d KiB: "
                         "use fewer pods, or shorter names of job and namespace",
                         (length + 1023) / 1024, JOB_DOCUMENT_MAX / 1024);
    *ret_text = buffer_take(&text);
    return 0;
}

static void append_sparse(const struct training_job *job, int64_t index, struct buffer *out)
{
    buffer_append_byte(out, '{', NULL);
    append_role(job, ROLE_PS, out);
    buffer_format(out, "%s\"worker\":{\"%" PRId64 "\":", out->length > 1 ? "," : "", index);
    append_address(job, ROLE_WORKER, index, out);
    buffer_append_string(out, "}}", NULL);
}

static void add(const struct training_job *job, enum role role, int64_t index, const char *cluster, struct json *list)
{
    SCOPED_BUFFER sparse = BUFFER_INIT(JOB_DOCUMENT_MAX), text = BUFFER_INIT(JOB_DOCUMENT_MAX);
    if (job->elastic.enabled && role == ROLE_WORKER) {
        append_sparse(job, index, &sparse);
        cluster = buffer_text(&sparse);
    }
    buffer_format(&text, "{\"cluster\":%s,\"task\":{\"type\":\"%s\",\"index\":%" PRId64 "},\"environment\":\"cloud\"}",
                  cluster, role_name(role), index);
    environment_add(list, ENV_TF_CONFIG, buffer_text(&text));
}

static const char *const reserved[] = {ENV_TF_CONFIG, NULL};

const struct environment_framework environment_tensorflow = {dense_cluster, add, reserved};
