/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/job_source.h"

#include <string.h>

#include "common/contract/environment.h"
#include "common/contract/labels.h"
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

/* What the operator makes of a job is not the worker's to see; its crew is told by TF_CONFIG. What is in neither table stays, and is
 * refused. */
static struct json *without_operators_fields(const struct json *spec)
{
    struct json *document = json_new_object();
    for (const struct json *member = json_first(spec); member; member = json_next(member)) {
        const char *name = json_key(member);
        if (field_find(&job_document_type, name) || !field_find(&training_job_spec_type, name))
            json_set(document, name, json_copy(member));
    }
    return document;
}

static int check_is_ours(const struct json *spec, const struct identity *identity, struct error *error)
{
    const char *framework = json_string_at(spec, "framework", "Coxswain");
    if (strcmp(framework, "Coxswain") != 0)
        return error_set(error, ERROR_INVALID, "framework: %.32s jobs run the program of their image, not this one",
                         framework);
    if (strcmp(json_string_at(spec, "encryption", ""), "TLS") == 0 && identity->crew_tls_directory == NULL)
        return error_set(error, ERROR_INVALID,
                         "encryption: TLS needs a certificate; name its directory in " ENV_CREW_TLS_DIR);
    return 0;
}

/* The job document of a TrainingJob: its spec, named as the resource is. */
static struct json *document_of(const struct json *chosen)
{
    if (strcmp(json_string_at(chosen, "kind", ""), TRAINING_JOB_KIND) != 0)
        return json_copy(chosen);
    const struct json *spec = json_member(chosen, "spec");
    struct json *document = spec ? without_operators_fields(spec) : json_new_object();
    const char *name = json_string_at(chosen, "metadata.name", NULL);
    if (name)
        json_set_string(document, "name", name);
    return document;
}

static int read_file(const char *path, const struct identity *identity, struct json **ret_document, struct error *error)
{
    SCOPED_BUFFER text;
    buffer_init(&text, JOB_FILE_MAX);
    struct json *root;
    if (buffer_read_file(&text, path, error) < 0)
        return -1;
    if (yaml_parse(buffer_text(&text), text.length, JOB_FILE_MAX, &root, error) < 0)
        return error_wrap(error, "%s", path);
    SCOPED_JSON *documents = root;
    const struct json *chosen = choose_document(documents);
    if (chosen == NULL)
        return error_set(error, ERROR_INVALID, "%s holds neither one job document nor a TrainingJob", path);
    if (check_is_ours(json_member(chosen, "spec"), identity, error) < 0)
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
