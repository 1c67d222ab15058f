/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/progress_push.h"

#include <string.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/hexadecimal.h"
#include "common/memory.h"
#include "common/token.h"
#include "operator/controller/objects/environment_list.h"
#include "operator/controller/objects/job_secret.h"

#define PUSH_VOLUME "coxswain-progress"

bool push_is_wanted(const struct training_job *job)
{
    return job->framework != FRAMEWORK_COXSWAIN && job->document.progress.push;
}

bool push_is_possible(const struct training_job *job, const struct push_endpoint *endpoint)
{
    return push_is_wanted(job) && endpoint && endpoint->url;
}

int64_t push_reachable_since(const struct push_endpoint *endpoint, int64_t now_ms)
{
    int64_t since_ms = endpoint->reachable_since_ms;
    return since_ms == FIELD_UNSET ? FIELD_UNSET : now_ms - (clock_monotonic_ms() - since_ms);
}

/* ---------------------------------------------------------------- token */

char *push_token(const struct push_endpoint *endpoint, const char *name_space, const char *job, const char *uid)
{
    unsigned char code[HMAC_BYTES];
    SCOPED_FREE char *message = memory_format("progress/%s/%s/%s", name_space, job, uid); /* names have no slash */
    char *token = memory_allocate(2 * HMAC_BYTES + 1, 1);
    hmac_sha256(endpoint->key, sizeof endpoint->key, message, strlen(message), code);
    hexadecimal_write(code, sizeof code, token);
    return token;
}

bool push_token_matches(const struct push_endpoint *endpoint, const struct push_path *path, const char *token)
{
    SCOPED_FREE char *wanted = push_token(endpoint, path->name_space, path->job, path->uid);
    return token_matches(wanted, token, strlen(token));
}

/* ---------------------------------------------------------------- path */

/* Reads "word" and a name. */
static bool take_part(const char **path, const char *word, char ret_name[PUSH_NAME_MAX])
{
    size_t length = strlen(word);
    if (strncmp(*path, word, length) != 0)
        return false;
    const char *name = *path + length;
    length = strcspn(name, "/");
    if (length == 0 || length >= PUSH_NAME_MAX)
        return false;
    memcpy(ret_name, name, length);
    ret_name[length] = '\0';
    *path = name + length;
    return true;
}

bool push_path_parse(const char *path, struct push_path *ret_path)
{
    struct push_path parts = {.job = ""};
    bool read = take_part(&path, "/v1/namespaces/", parts.name_space) && take_part(&path, "/jobs/", parts.job) &&
                take_part(&path, "/uids/", parts.uid) && take_part(&path, "/pods/", parts.pod) &&
                strcmp(path, "/progress") == 0;
    if (read)
        *ret_path = parts;
    return read;
}

/* ---------------------------------------------------------------- objects */

static char *secret_name(const struct training_job *job)
{
    return job_secret_name(job, "progress");
}

struct json *push_secret_build(const struct training_job *job, const struct push_endpoint *endpoint)
{
    SCOPED_FREE char *name = secret_name(job), *token = push_token(endpoint, job->namespace, job->name, job->uid);
    struct json *secret = job_secret_new(job, name);
    json_set_boolean(secret, "immutable", true);
    job_secret_set_data(secret, PUSH_CA_NAME, endpoint->authority_pem, strlen(endpoint->authority_pem));
    job_secret_set_data(secret, PUSH_TOKEN_NAME, token, strlen(token));
    return secret;
}

/* Optional: a job that exists longer than this operator takes reports has no such Secret, and trains all the same. */
void push_add_volume(struct json *volumes, const struct training_job *job)
{
    SCOPED_FREE char *name = secret_name(job);
    json_set_boolean(job_secret_add_volume(volumes, PUSH_VOLUME, name), "optional", true);
}

void push_add_mount(struct json *mounts)
{
    job_secret_add_mount(mounts, PUSH_VOLUME, PUSH_DIRECTORY);
}

void push_add_environment(struct json *environment, const struct training_job *job,
                          const struct push_endpoint *endpoint, const char *pod_name)
{
    SCOPED_FREE char *url = memory_format("%s/v1/namespaces/%s/jobs/%s/uids/%s/pods/%s/progress", endpoint->url,
                                          job->namespace, job->name, job->uid, pod_name);
    environment_add(environment, ENV_PUSH_URL, url);
    environment_add(environment, ENV_PUSH_CA, PUSH_DIRECTORY "/" PUSH_CA_NAME);
    environment_add(environment, ENV_PUSH_TOKEN, PUSH_DIRECTORY "/" PUSH_TOKEN_NAME);
}
