/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/job_source.h"

#include <string.h>

#include "common/contract/environment.h"
#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/job/fields.h"
#include "common/yaml.h"

#define JOB_FILE_MAX ((size_t)1 << 20)

/* A manifest may hold several documents; the job is the first TrainingJob among them, else the only document. */
static const struct json *choose_document(const struct json *documents)
{
    for (const struct json *item = json_first(documents); item; item = json_next(item))
        if (strcmp(json_string_at(item, "kind", ""), TRAINING_JOB_KIND) == 0)
            return item;
    return json_count(documents) == 1 ? json_first(documents) : NULL;
}

/* The worker has no use for what the operator makes of a job, and TF_CONFIG tells it its crew. Members that neither table
 * knows stay, and are refused. */
static void copy_spec(const struct json *spec, struct json *document)
{
    const struct json *section = json_member(spec, "coxswain"), *replicas = json_at(spec, "workers.replicas");
    for (const struct json *member = json_first(section); member; member = json_next(member))
        json_set(document, json_key(member), json_copy(member));
    for (const struct json *member = json_first(spec); member; member = json_next(member)) {
        const char *name = json_key(member);
        if (strcmp(name, "devices") == 0 || strcmp(name, "storage") == 0 || !field_find(&training_job_spec_type, name))
            json_set(document, name, json_copy(member));
    }
    if (replicas)
        json_set(json_set_object(document, "workers"), "replicas", json_copy(replicas));
}

static int check_is_ours(const struct json *chosen, const struct identity *identity, struct error *error)
{
    const struct json *spec = json_member(chosen, "spec");
    if (training_job_check_version(chosen, error) < 0)
        return -1;
    if (spec_framework(spec) != FRAMEWORK_COXSWAIN)
        return error_set(error, ERROR_INVALID, "spec: %s jobs run the program of their image, not this one",
                         framework_words[spec_framework(spec)]);
    if (strcmp(json_string_at(spec, "coxswain.encryption.type", ""), "TLS") == 0 &&
        identity->crew_tls_directory == NULL)
        return error_set(error, ERROR_INVALID,
                         "encryption: TLS needs a certificate; name its directory in " ENV_CREW_TLS_DIR);
    return 0;
}

static bool is_manifest(const struct json *chosen)
{
    return strcmp(json_string_at(chosen, "kind", ""), TRAINING_JOB_KIND) == 0;
}

/* The job document of a TrainingJob: section coxswain of its spec, named as the resource is. */
static struct json *document_of(const struct json *chosen)
{
    if (!is_manifest(chosen))
        return json_copy(chosen);
    struct json *document = json_new_object();
    copy_spec(json_member(chosen, "spec"), document);
    const char *name = json_string_at(chosen, "metadata.name", NULL);
    if (name)
        json_set_string(document, "name", name);
    return document;
}

static int read_file(const char *path, const struct identity *identity, struct json **ret_document, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(JOB_FILE_MAX);
    struct json *root;
    if (buffer_read_file(&text, path, error) < 0)
        return -1;
    if (yaml_parse(buffer_text(&text), text.length, JOB_FILE_MAX, &root, error) < 0)
        return error_wrap(error, "%s", path);
    SCOPED_JSON *documents = root;
    const struct json *chosen = choose_document(documents);
    if (chosen == NULL)
        return error_set(
            error, ERROR_INVALID,
            "%s must contain a TrainingJob, or be a single job document (the section coxswain of a TrainingJob's spec)",
            path);
    if (is_manifest(chosen) && check_is_ours(chosen, identity, error) < 0)
        return error_wrap(error, "%s", path);
    *ret_document = document_of(chosen);
    return 0;
}

static int read_source(const struct arguments *arguments, const struct identity *identity, struct json **ret_document,
                       struct error *error)
{
    if (arguments->job_file)
        return read_file(arguments->job_file, identity, ret_document, error);
    if (identity->job == NULL)
        return error_set(error, ERROR_INVALID, "no job: give --job FILE, or set " ENV_JOB);
    if (json_parse(identity->job, strlen(identity->job), JOB_DOCUMENT_MAX, ret_document, error) < 0)
        return error_wrap(error, ENV_JOB);
    return 0;
}

int job_source_read(const struct arguments *arguments, const struct identity *identity,
                    struct job_document *ret_document, struct error *error)
{
    struct json *source;
    if (read_source(arguments, identity, &source, error) < 0)
        return -1;
    SCOPED_JSON *owned = source;
    return job_document_parse(owned, ret_document, error);
}
