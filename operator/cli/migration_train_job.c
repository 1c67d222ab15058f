/* SPDX-License-Identifier: Apache-2.0
 *
 * The TrainJob of Kubeflow Trainer (trainer.kubeflow.org/v1alpha1), versions 2.0 to 2.3. It names a runtime, an object in the cluster
 * with the pods' template, and says what is different in this job. Only the latter is translated; a note says how to look up the rest.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/job/template_overlay.h"
#include "common/memory.h"
#include "operator/cli/migration.h"
#include "operator/cli/migration_replicas.h"

#define NODE "node" /* in every runtime, the job that trains, and its container */
#define RUNTIME_DEFINES "the runtime defines this container; write all of it into workers.template"

static const struct migration_row rows[] = {
    MOVED_UNLESS("false", "spec.suspend", "spec.suspend"),
    MOVED_UNLESS("trainer.kubeflow.org/trainjob-controller", "spec.managedBy", "spec.managedBy"),
    MOVED("spec.activeDeadlineSeconds", "spec.runPolicy.activeDeadlineSeconds"),
    GONE("spec.trainer.numProcPerNode", "only a job of PyTorch starts several processes in a pod", "1"),
    GONE("spec.initializer",
         "use storage[].download for hf:// and https://, storage[].s3 for s3://, else an init container", NULL),
    ROWS_END,
};

static bool is_named(const struct json *item, const char *name)
{
    return strcmp(json_string_at(item, "name", ""), name) == 0;
}

/* ---------------------------------------------------------------- the runtime */

/* Returns whether a word of the name begins with `beginning`. '-' and '.' separate words. */
static bool has_word(const char *name, const char *beginning)
{
    for (const char *word = name; word; word = strpbrk(word, "-.")) {
        word += strspn(word, "-.");
        if (strncmp(word, beginning, strlen(beginning)) == 0)
            return true;
    }
    return false;
}

static bool is_without_counterpart(const char *runtime)
{
    return has_word(runtime, "mpi") || has_word(runtime, "deepspeed") || has_word(runtime, "mlx") ||
           has_word(runtime, "flux") || has_word(runtime, "xgboost");
}

/* Returns the section of the job's framework; NULL: neither the runtime's name nor the command tells it. */
static const char *section_of(const struct json *job)
{
    static const struct {
        const char *word, *section;
    } words[] = {{"torch", "pytorch"}, {"pytorch", "pytorch"}, {"jax", "jax"}, {"tensorflow", "tensorflow"}};
    const char *runtime = json_string_at(job, "spec.runtimeRef.name", "");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(runtime, words[i].word))
            return words[i].section;
    const char *program = json_string(json_first(json_at(job, "spec.trainer.command")), "");
    return strcmp(program, "torchrun") == 0 ? "pytorch" : NULL;
}

static void note_runtime(struct migration *migration, const struct json *job, bool knows_framework)
{
    static const struct {
        const char *field, *words;
    } parts[] = {{"image", "the image"}, {"numNodes", "the number of nodes"}, {"resourcesPerNode", "the resources"}};
    SCOPED_JSON *runtime = migration_take(migration, "spec.runtimeRef");
    const char *name = json_string_at(runtime, "name", "NAME");
    bool own = strcmp(json_string_at(runtime, "kind", ""), "TrainingRuntime") == 0;
    SCOPED_FREE char *taken = memory_copy_string("");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        enum json_type type = json_type(json_member(json_at(job, "spec.trainer"), parts[i].field));
        if (type != JSON_ABSENT && type != JSON_NULL)
            continue;
        char *longer = memory_format("%s%s%s", taken, *taken ? ", " : "; this job takes from it ", parts[i].words);
        free(taken);
        taken = longer;
    }
    migration_note(migration, "spec.runtimeRef",
                   "left out: look up the runtime with `kubectl get %s %s -o yaml`, and write what the pods need of it "
                   "into the new job%s",
                   own ? "trainingruntimes" : "clustertrainingruntimes", name, taken);
    if (!knows_framework)
        migration_note(migration, "spec.runtimeRef.name",
                       "the name does not tell the framework, and pytorch is assumed; write tensorflow or jax if the "
                       "script uses one of these");
    if (has_word(name, "torchtune"))
        migration_note(migration, "spec.trainer.command",
                       "Kubeflow adds to `tune run` the recipe, its configuration and the rendezvous; add them here");
}

/* ---------------------------------------------------------------- patches of the pods' template */

/* Removes all containers of the list but the one that trains, with a note each: their definition is in the runtime. */
static void keep_trainer(struct migration *migration, struct json *spec, const char *list, const char *path)
{
    struct json *containers = json_member(spec, list);
    size_t index = 0;
    for (struct json *item = json_first(containers), *next; item; item = next, index++) {
        next = json_next(item);
        if (is_named(item, NODE) && strcmp(list, "containers") == 0) {
            json_set_string(item, "name", TRAINER_CONTAINER);
            continue;
        }
        migration_note(migration, path, "left out: %s[%zu] (%s): " RUNTIME_DEFINES, list, index,
                       json_string_at(item, "name", ""));
        json_free(json_detach(containers, item));
    }
    if (containers && json_count(containers) == 0)
        json_remove(spec, list);
}

/* Merges a patch, with the metadata and spec of pods, into the template. Takes them out of the patch. */
static void merge_patch(struct migration *migration, struct json *template, struct json *patch, const char *path)
{
    static const char *const parts[] = {"metadata", "spec"};
    SCOPED_JSON *kept = json_new_object();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct json *part = json_member(patch, parts[i]);
        if (json_type(part) == JSON_OBJECT)
            json_set(kept, parts[i], json_detach(patch, part));
    }
    struct json *spec = json_member(kept, "spec");
    keep_trainer(migration, spec, "containers", path);
    keep_trainer(migration, spec, "initContainers", path);
    template_merge(template, kept);
}

#define OTHER_JOB "it is for a job of the runtime that does not train"

/* The list of Trainer 2.0 has the fields of a pod's spec beside targetJobs, that of 2.1 has metadata and spec. */
static void merge_overrides(struct migration *migration, struct json *template, const char *list, bool is_spec)
{
    SCOPED_JSON *overrides = migration_take_list(migration, list);
    size_t index = 0;
    for (struct json *item = json_first(overrides); item; item = json_next(item)) {
        SCOPED_FREE char *path = memory_format("%s[%zu]", list, index++);
        bool wanted = migration_find(json_member(item, "targetJobs"), NODE) != NULL;
        json_remove(item, "targetJobs");
        if (!wanted) {
            migration_leave_out(migration, item, path, OTHER_JOB);
        } else if (is_spec) {
            SCOPED_JSON *patch = json_new_object();
            json_set(patch, "spec", json_copy(item));
            merge_patch(migration, template, patch, path);
        } else {
            merge_patch(migration, template, item, path);
            migration_leave_out(migration, item, path, MIGRATION_NO_FIELD);
        }
    }
}

/* Moves labels and annotations to the new job's metadata. Those that it has already stay. */
static void add_metadata(struct migration *migration, struct json *metadata)
{
    static const char *const parts[] = {"labels", "annotations"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct json *part = json_member(metadata, parts[i]);
        if (json_type(part) != JSON_OBJECT)
            continue;
        struct json *own =
            json_first(part) ? json_set_object(json_set_object(migration->job, "metadata"), parts[i]) : NULL;
        for (const struct json *member = json_first(part); member; member = json_next(member))
            if (!json_member(own, json_key(member)))
                json_set(own, json_key(member), json_copy(member));
        json_free(json_detach(metadata, part));
    }
}

/* Kueue's patches are for the nodes of one admission; Kueue writes new ones. */
static void merge_runtime_patch(struct migration *migration, struct json *template, struct json *patch,
                                const char *path)
{
    struct json *jobset = json_at(patch, "trainingRuntimeSpec.template");
    struct json *jobs = json_at(jobset, "spec.replicatedJobs");
    size_t index = 0;
    if (strncmp(json_string_at(patch, "manager", ""), "kueue.x-k8s.io/", 15) == 0)
        return;
    add_metadata(migration, json_member(jobset, "metadata"));
    for (struct json *job = json_first(jobs); job; job = json_next(job)) {
        SCOPED_FREE char *inner =
            memory_format("%s.trainingRuntimeSpec.template.spec.replicatedJobs[%zu]", path, index++);
        bool wanted = is_named(job, NODE);
        if (wanted)
            merge_patch(migration, template, json_at(job, "template.spec.template"), inner);
        json_remove(job, "name");
        migration_leave_out(migration, job, inner, wanted ? MIGRATION_NO_FIELD : OTHER_JOB);
    }
    if (json_type(jobs) == JSON_ARRAY)
        json_remove(json_member(jobset, "spec"), "replicatedJobs");
    json_remove(patch, "manager");
    json_remove(patch, "time");
    migration_leave_out(migration, patch, path, MIGRATION_NO_FIELD);
}

static void merge_runtime_patches(struct migration *migration, struct json *template)
{
    SCOPED_JSON *patches = migration_take_list(migration, "spec.runtimePatches");
    size_t index = 0;
    for (struct json *patch = json_first(patches); patch; patch = json_next(patch)) {
        SCOPED_FREE char *path = memory_format("spec.runtimePatches[%zu]", index++);
        merge_runtime_patch(migration, template, patch, path);
    }
}

/* ---------------------------------------------------------------- spec.trainer */

/* Trainer lays spec.trainer over the patches, and these over the runtime. */
static struct json *build_template(struct migration *migration)
{
    static const struct {
        const char *from, *to;
    } fields[] = {{"spec.trainer.image", "image"},
                  {"spec.trainer.command", "command"},
                  {"spec.trainer.args", "args"},
                  {"spec.trainer.env", "env"},
                  {"spec.trainer.resourcesPerNode", "resources"}};
    struct json *template = json_new_object();
    merge_overrides(migration, template, "spec.podSpecOverrides", true);
    merge_overrides(migration, template, "spec.podTemplateOverrides", false);
    merge_runtime_patches(migration, template);
    SCOPED_JSON *overlay = json_new_object();
    struct json *containers = json_set_array(json_set_object(overlay, "spec"), "containers");
    struct json *trainer = json_append(containers, json_new_object());
    json_set_string(trainer, "name", TRAINER_CONTAINER);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct json *value = migration_take(migration, fields[i].from);
        if (value)
            json_set(trainer, fields[i].to, value);
    }
    template_merge(template, overlay);
    return template;
}

static int64_t read_nodes(struct migration *migration)
{
    SCOPED_JSON *nodes = migration_take(migration, "spec.trainer.numNodes");
    int64_t count = json_integer(nodes, 0);
    if (count < 1)
        migration_leave_out(migration, nodes, "spec.trainer.numNodes", "a TrainingJob has at least one worker");
    return count < 1 ? 1 : count;
}

/* Returns the CPUs that a list of resources has, rounded up; 0: none, or in a unit that CPUs are not given in. */
static int64_t cpus_of(const struct json *resources)
{
    SCOPED_FREE char *text = json_scalar_text(json_member(resources, "cpu"));
    char *unit = NULL;
    double cpus = text ? strtod(text, &unit) : 0;
    if (unit && strcmp(unit, "m") == 0)
        cpus /= 1000;
    else if (unit && *unit)
        return 0;
    return cpus > 0 && cpus < 1e6 ? (int64_t)ceil(cpus) : 0;
}

static bool has_gpu(const struct json *resources)
{
    for (const struct json *item = json_first(resources); item; item = json_next(item))
        if (json_key(item) && strcasestr(json_key(item), "gpu"))
            return true;
    return false;
}

/* Trainer starts a process for each CPU where the job has resources without GPUs and does not give a number. */
static void put_processes(struct migration *migration, struct replicas roles[ROLE_COUNT])
{
    SCOPED_JSON *given = migration_take(migration, "spec.trainer.numProcPerNode");
    SCOPED_FREE char *text = json_scalar_text(given);
    const struct json *resources = json_member(template_main_container(roles[ROLE_WORKER].template), "resources");
    const struct json *requests = json_member(resources, "requests"), *limits = json_member(resources, "limits");
    int64_t requested = cpus_of(requests), cpus = requested > 0 ? requested : cpus_of(limits);
    bool by_cpu = !text || strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0;
    if (by_cpu && cpus > 0 && !has_gpu(requests) && !has_gpu(limits)) {
        SCOPED_FREE char *count = memory_format("%" PRId64, cpus);
        if (cpus > 1)
            replicas_add_variable(roles, "PET_NPROC_PER_NODE", count);
    } else {
        replicas_put_processes(migration, roles, text, "spec.trainer.numProcPerNode");
    }
    if (!text)
        migration_leave_out(migration, given, "spec.trainer.numProcPerNode", MIGRATION_WRONG);
}

/* ---------------------------------------------------------------- a job */

bool migration_is_train_job(const struct json *document)
{
    return strcmp(json_string_at(document, "apiVersion", ""), "trainer.kubeflow.org/v1alpha1") == 0 &&
           strcmp(json_string_at(document, "kind", ""), "TrainJob") == 0 &&
           !is_without_counterpart(json_string_at(document, "spec.runtimeRef.name", ""));
}

void migration_from_train_job(struct migration *migration, const struct json *document)
{
    struct replicas roles[ROLE_COUNT] = {0};
    const char *section = section_of(document);
    migration->section = section ? section : "pytorch";
    note_runtime(migration, document, section != NULL);
    SCOPED_JSON *metadata = json_new_object();
    json_set(metadata, "labels", migration_take(migration, "spec.labels"));
    json_set(metadata, "annotations", migration_take(migration, "spec.annotations"));
    add_metadata(migration, metadata);
    migration_leave_out(migration, metadata, "spec", MIGRATION_WRONG);
    roles[ROLE_WORKER] = (struct replicas){read_nodes(migration), build_template(migration)};
    if (strcmp(migration->section, "pytorch") == 0)
        put_processes(migration, roles);
    replicas_put(migration, roles);
    replicas_release(roles);
    migration_apply(migration, rows);
}
