/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/manifest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/contract/labels.h"
#include "common/job/immutability.h"
#include "common/job/training_class.h"
#include "common/job/training_job.h"
#include "common/memory.h"
#include "common/nearest_word.h"
#include "common/yaml.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_patch.h"
#include "operator/cli/job_setting.h"
#include "operator/cli/migration.h"
#include "operator/cli/sweep_metric.h"
#include "operator/cli/unknown_field.h"

#define NEAR_FILES_MAX 1000 /* of a folder that are looked at */

static int document_check(const struct json *document, struct error *error)
{
    static const char *const required[] = {"apiVersion", "kind", "metadata.name"};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!*json_string_at(document, required[i], ""))
            return error_set(error, ERROR_INVALID, "a document has no %s", required[i]);
    }
    return 0;
}

/* Names what is there instead; for jobs of Kubeflow, what to do with them. */
static int no_job_found(const struct json *documents, struct error *error)
{
    const struct json *first = json_first(documents);
    const char *version = json_string_at(first, "apiVersion", ""), *kind = json_string_at(first, "kind", "");
    if (migration_is_kubeflow(first) || migration_is_train_job(first))
        return error_set(error, ERROR_INVALID, "it holds a %s (%s); `cox migrate FILE` translates it to a TrainingJob",
                         kind, version);
    bool kubeflow = strncmp(version, "kubeflow.org/", 13) == 0 || strncmp(version, "trainer.kubeflow.org/", 21) == 0;
    if (kubeflow)
        return error_set(error, ERROR_INVALID,
                         "it holds a %s (%s); write it as a TrainingJob (docs/migration.md has each of its fields)",
                         kind, version);
    static const char *const kinds[] = {TRAINING_JOB_KIND, TRAINING_SWEEP_KIND};
    for (const struct json *item = first; item; item = json_next(item)) {
        const char *written = json_string_at(item, "kind", "");
        const char *meant = nearest_word(written, kinds, sizeof kinds / sizeof *kinds);
        if (meant)
            return error_set(error, ERROR_INVALID,
                             "it holds no TrainingJob or TrainingSweep: kind: %s; did you mean %s?", written, meant);
    }
    if (first)
        return error_set(error, ERROR_INVALID, "it holds a %s (%s) and no TrainingJob or TrainingSweep", kind, version);
    return error_set(error, ERROR_INVALID, "it holds no TrainingJob or TrainingSweep");
}

static int job_find(struct manifest *manifest, struct error *error)
{
    for (struct json *item = json_first(manifest->documents); item; item = json_next(item)) {
        if (document_check(item, error) < 0)
            return -1;
        bool is_sweep = strcmp(json_string_at(item, "kind", ""), TRAINING_SWEEP_KIND) == 0;
        if (!is_sweep && strcmp(json_string_at(item, "kind", ""), TRAINING_JOB_KIND) != 0)
            continue;
        if (training_job_check_version(item, error) < 0)
            return -1;
        if (manifest->job)
            return error_set(error, ERROR_INVALID,
                             "it holds more than one TrainingJob or TrainingSweep; run them one by one");
        manifest->job = item;
        manifest->is_sweep = is_sweep;
    }
    if (!manifest->job)
        return no_job_found(manifest->documents, error);
    return 0;
}

static bool is_set(const struct manifest_request *request, const char *path)
{
    for (unsigned i = 0; i < request->setting_count; i++)
        if (job_setting_has_path(request->settings[i], path))
            return true;
    return false;
}

/* Lets a path that the manifest begins with the job's name follow another name, so that the job under that name does not write over the
 * files of this one. */
static void rename_path(const struct manifest *manifest, const struct manifest_request *request, const char *before,
                        const char *section)
{
    SCOPED_FREE char *place = memory_format("spec.coxswain.%s", section);
    SCOPED_FREE char *setting = memory_format("%s.path", place);
    struct json *object = json_at(manifest->job, place);
    const char *path = json_string_at(object, "path", ""), *name = json_string_at(manifest->job, "metadata.name", "");
    size_t length = strlen(before);
    bool begins =
        length > 0 && strncmp(path, before, length) == 0 && (path[length] == '\0' || strchr("/.", path[length]));
    if (strcmp(before, name) == 0 || !begins || is_set(request, setting))
        return;
    SCOPED_FREE char *renamed = memory_format("%s%s", name, path + length);
    fprintf(stderr, "cox run: %s is now %s, since the job's name is %s\n", setting, renamed, name);
    json_set_string(object, "path", renamed);
}

static int settings_apply(struct manifest *manifest, const struct manifest_request *request, struct error *error)
{
    SCOPED_FREE char *before = memory_copy_string(json_string_at(manifest->job, "metadata.name", ""));
    for (unsigned i = 0; i < request->setting_count; i++)
        if (job_setting_apply(manifest->job, request->settings[i], error) < 0)
            return error_wrap(error, "--set");
    rename_path(manifest, request, before, "export");
    rename_path(manifest, request, before, "checkpoint");
    manifest->name = json_string_at(manifest->job, "metadata.name", "");
    manifest->name_space = json_string_at(manifest->job, "metadata.namespace", request->default_namespace);
    return document_check(manifest->job, error);
}

static bool is_kind(const struct json *document, const char *kind)
{
    return strcmp(json_string_at(document, "kind", ""), kind) == 0;
}

static void effective_make(struct manifest *manifest)
{
    manifest->effective = json_copy(manifest->job);
    struct json *spec = json_at(manifest->effective, manifest->is_sweep ? "spec.template" : "spec");
    const char *name = json_string_at(spec, "trainingClass.name", "");
    const char *kind = json_string_at(spec, "trainingClass.kind", CLUSTER_TRAINING_CLASS_KIND);
    for (const struct json *item = json_first(manifest->documents); item && *name; item = json_next(item))
        if (training_class_is_kind(item) && is_kind(item, kind) &&
            strcmp(json_string_at(item, "metadata.name", ""), name) == 0)
            training_class_merge(spec, json_member(item, "spec"));
}

/* Returns the length of a name without .yaml, .yml or .json; 0: it has none of these. */
static size_t stem_length(const char *name)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (length > strlen(endings[i]) && strcmp(name + length - strlen(endings[i]), endings[i]) == 0)
            return length - strlen(endings[i]);
    return 0;
}

/* Returns the manifest in the folder whose name is nearest to a name, to be freed with free(); NULL: none is near. */
static char *find_near(const char *folder, const char *name)
{
    char *stems[NEAR_FILES_MAX], *files[NEAR_FILES_MAX], *found = NULL;
    size_t count = 0, length = stem_length(name);
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && count < NEAR_FILES_MAX && (entry = readdir(directory));) {
        size_t stem = stem_length(entry->d_name);
        if (stem == 0)
            continue;
        stems[count] = memory_format("%.*s", (int)stem, entry->d_name);
        files[count++] = memory_copy_string(entry->d_name);
    }
    if (directory)
        closedir(directory);
    SCOPED_FREE char *wanted = length > 0 ? memory_format("%.*s", (int)length, name) : memory_copy_string(name);
    const char *nearest = nearest_word(wanted, (const char *const *)stems, count);
    for (size_t i = 0; i < count; i++) {
        if (stems[i] == nearest)
            found = memory_copy_string(files[i]);
        free(stems[i]);
        free(files[i]);
    }
    return found;
}

/* Adds to the message about a file that is not there the name that was probably meant. Returns -1. */
static int suggest_file(const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    SCOPED_FREE char *folder = slash ? memory_format("%.*s", (int)(slash + 1 - path), path) : memory_copy_string("");
    SCOPED_FREE char *near = access(path, F_OK) < 0 ? find_near(*folder ? folder : ".", name) : NULL;
    if (!near || !error)
        return -1;
    SCOPED_FREE char *message = memory_copy_string(error->message);
    return error_set(error, error->kind, "%s; did you mean %s%s?", message, folder, near);
}

int manifest_documents(const char *path, struct json **ret_documents, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_MAX);
    bool is_input = strcmp(path, "-") == 0;
    if (buffer_read_file(&text, is_input ? "/dev/stdin" : path, error) < 0)
        return is_input ? -1 : suggest_file(path, error);
    if (yaml_parse(buffer_text(&text), text.length, MANIFEST_MAX, ret_documents, error) < 0)
        return error_wrap(error, "%s", path);
    return 0;
}

static int sweep_check(const struct json *sweep, struct error *error)
{
    return unknown_field_check_template(sweep, error) < 0 ? -1 : job_setting_check_parameters(sweep, error);
}

int manifest_read(const struct manifest_request *request, struct manifest *ret_manifest, struct error *error)
{
    struct manifest manifest = {.documents = NULL};
    if (manifest_documents(request->path, &manifest.documents, error) < 0)
        return -1;
    if (job_find(&manifest, error) < 0 || settings_apply(&manifest, request, error) < 0 ||
        (manifest.is_sweep && sweep_check(manifest.job, error) < 0)) {
        manifest_release(&manifest);
        return error_wrap(error, "%s", request->path);
    }
    effective_make(&manifest);
    if (manifest.is_sweep && sweep_metric_check(manifest.effective, error) < 0) {
        manifest_release(&manifest);
        return error_wrap(error, "%s", request->path);
    }
    *ret_manifest = manifest;
    return 0;
}

void manifest_release(struct manifest *manifest)
{
    json_free(manifest->documents);
    json_free(manifest->effective);
    *manifest = (struct manifest){.documents = NULL};
}

/* ---------------------------------------------------------------- into the cluster */

struct answer {
    bool came;
    bool failed;
    struct error error;
    struct json *object;
};

static void answered(void *context, const struct kube_answer *answer)
{
    struct answer *result = context;
    result->came = true;
    result->failed = answer->error != NULL;
    if (answer->error)
        result->error = *answer->error;
    else if (answer->object)
        result->object = json_copy(answer->object);
}

static int wait_for(struct kube_call *call, struct kube_client *client, const struct answer *answer,
                    const bool *interrupted, struct error *error)
{
    while (!answer->came && !*interrupted)
        if (event_loop_turn(kube_client_loop(client), -1, error) < 0)
            return -1;
    if (!answer->came) {
        kube_call_cancel(call);
        return error_set(error, ERROR_CANCELLED, "interrupted before the API server answered");
    }
    if (answer->failed && error)
        *error = answer->error;
    return answer->failed ? -1 : 0;
}

/* "coxswain.dev/v1beta1" and "TrainingJob": the plural is the kind in lower case and an s, for the kinds that go with a
 * job (Service, ConfigMap, Secret, PersistentVolumeClaim, …), but for its class. */
static void path_of(const struct json *document, const char *name_space, char group[128], char plural[128],
                    struct resource_path *path)
{
    const char *version = json_string_at(document, "apiVersion", ""), *slash = strchr(version, '/');
    snprintf(group, 128, "%.*s", slash ? (int)(slash - version) : 0, version);
    snprintf(plural, 128, "%s%s", json_string_at(document, "kind", ""), training_class_is_kind(document) ? "es" : "s");
    for (char *at = plural; *at; at++) {
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    }
    *path = (struct resource_path){.resource = {group, slash ? slash + 1 : version, plural},
                                   .name_space = is_kind(document, CLUSTER_TRAINING_CLASS_KIND)
                                                     ? NULL
                                                     : json_string_at(document, "metadata.namespace", name_space)};
}

/* How documents get into a cluster. */
struct application {
    struct kube_client *client;
    const char *name_space;
    const bool *interrupted;
    bool resume; /* as for manifest_apply */
};

/* Changes the existing object to match the document. */
static int document_patch(const struct application *to, const struct resource_path *path, const struct json *document,
                          bool *ret_suspended, struct error *error)
{
    struct answer found = {.came = false}, patched = {.came = false};
    SCOPED_JSON *patch = NULL;
    struct kube_call_options options = {.strict = true, .answered = answered, .context = &found};
    struct kube_call *call = kube_client_get(to->client, path, &options);
    if (wait_for(call, to->client, &found, to->interrupted, error) < 0)
        return -1;
    bool is_ours = strcmp(path->resource.group, API_GROUP) == 0;
    patch = is_ours ? job_patch(document, found.object) : json_copy(document);
    *ret_suspended = is_ours && json_boolean_at(found.object, "spec.suspend", false) && !job_is_over(found.object);
    if (to->resume && *ret_suspended && !json_at(document, "spec.suspend"))
        json_set_boolean(json_member(patch, "spec"), "suspend", false);
    json_free(found.object);
    options.context = &patched;
    call = kube_client_patch(to->client, path, patch, &options);
    int result = wait_for(call, to->client, &patched, to->interrupted, error);
    json_free(patched.object);
    return result;
}

static int document_apply(const struct application *to, const struct json *document, struct manifest_result *ret_result,
                          struct error *error)
{
    char group[128], plural[128];
    struct resource_path path;
    struct error cause = ERROR_INIT;
    path_of(document, to->name_space, group, plural, &path);
    struct answer created = {.came = false};
    struct kube_call_options options = {.strict = true, .answered = answered, .context = &created};
    struct kube_call *call = kube_client_create(to->client, &path, document, &options);
    ret_result->created = wait_for(call, to->client, &created, to->interrupted, &cause) == 0;
    json_free(created.object);
    if (ret_result->created)
        return 0;
    if (cause.kind == ERROR_ALREADY_EXISTS) {
        path.name = json_string_at(document, "metadata.name", "");
        cause = (struct error)ERROR_INIT;
        if (document_patch(to, &path, document, &ret_result->suspended, &cause) == 0)
            return 0;
        if (strstr(cause.message, IMMUTABLE_REMEDY))
            cause.kind = ERROR_ALREADY_EXISTS;
    }
    if (error)
        *error = cause;
    return error_wrap(error, "%s %s", json_string_at(document, "kind", ""),
                      json_string_at(document, "metadata.name", ""));
}

int manifest_apply(const struct manifest *manifest, struct kube_client *client, bool resume, const bool *interrupted,
                   struct manifest_result *ret_result, struct error *error)
{
    const struct application to = {client, manifest->name_space, interrupted, resume};
    for (const struct json *item = json_first(manifest->documents); item; item = json_next(item)) {
        struct manifest_result result = {.created = false};
        if (document_apply(&to, item, &result, error) < 0) {
            if (error)
                refusal_shorten(error);
            if (item == manifest->job)
                unknown_field_explain(manifest->is_sweep, error);
            return -1;
        }
        if (item == manifest->job)
            *ret_result = result;
    }
    return 0;
}
