/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/s3_settings.h"

#include <string.h>

#include "common/contract/environment.h"
#include "common/json.h"
#include "common/memory.h"

static int open_client(const struct json *settings, int64_t patience_ms, struct s3_client **ret_client,
                       struct error *error)
{
    const struct s3_options options = {.endpoint = json_string_at(settings, "endpoint", ""),
                                       .bucket = json_string_at(settings, "bucket", ""),
                                       .region = json_string_at(settings, "region", NULL),
                                       .credentials = json_string_at(settings, "credentials", NULL),
                                       .patience_ms = patience_ms};
    const char *prefix = json_string_at(settings, "prefix", "");
    if (strlen(prefix) > S3_KEY_MAX)
        return error_set(error, ERROR_INVALID, "prefix has %zu bytes; the key of an object has at most %d",
                         strlen(prefix), S3_KEY_MAX);
    return s3_client_new(&options, ret_client, error);
}

int s3_settings_open(const char *variable, const char *text, int64_t patience_ms, struct s3_client **ret_client,
                     char **ret_prefix, struct error *error)
{
    struct json *root;
    if (json_parse(text, strlen(text), JOB_DOCUMENT_MAX, &root, error) < 0)
        return error_wrap(error, "%s", variable);
    SCOPED_JSON *settings = root;
    if (open_client(settings, patience_ms, ret_client, error) < 0)
        return error_wrap(error, "%s", variable);
    *ret_prefix = memory_copy_string(json_string_at(settings, "prefix", ""));
    return 0;
}
