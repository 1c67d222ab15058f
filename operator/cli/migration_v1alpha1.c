/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/memory.h"
#include "operator/cli/command_line.h"
#include "operator/cli/migration.h"

#define FOREIGN "a TrainingJob of this framework has no such field"

static const struct migration_row shared_rows[] = {
    MOVED("spec.runPolicy.suspend", "spec.suspend"),
    MOVED("spec.runPolicy.managedBy", "spec.managedBy"),
    SAME("spec.runPolicy"),
    SAME("spec.image"),
    SAME("spec.devices"),
    SAME("spec.storage"),
    MOVED("spec.workers", "spec.workers.replicas"),
    MOVED("spec.elastic.minWorkers", "spec.workers.minReplicas"),
    MOVED("spec.elastic.maxWorkers", "spec.workers.maxReplicas"),
    ROWS_END,
};

static const struct migration_row coxswain_rows[] = {
    GONE("spec.strategy.psBackup",
         "a ps that dies is restored from the newest checkpoint; save more often, or take mode Synchronous", "false"),
    GONE("spec.strategy.exchange", "each worker sends its updates to all others", "SendToAll"),
    GONE("spec.training.weightRounding", "weights are rounded to the nearest", "Nearest"),
    MOVED("spec.strategy", "spec.coxswain.strategy"),
    MOVED("spec.model", "spec.coxswain.model"),
    MOVED("spec.data", "spec.coxswain.data"),
    MOVED("spec.training", "spec.coxswain.training"),
    MOVED("spec.checkpoint", "spec.coxswain.checkpoint"),
    MOVED("spec.export.to", "spec.coxswain.export.path"),
    MOVED("spec.export", "spec.coxswain.export"),
    MOVED("spec.evaluate", "spec.coxswain.evaluation"),
    MOVED("spec.encryption", "spec.coxswain.encryption.type"),
    ROWS_END,
};

/* A server filled in those defaults that are harmless. The roles say all that the strategy's type said. */
static const struct migration_row foreign_rows[] = {
    MOVED("spec.checkpoint.storage", "spec.*.checkpoint.storage"),
    MOVED("spec.checkpoint.path", "spec.*.checkpoint.path"),
    GONE("spec.checkpoint.keep", FOREIGN, "3"),
    GONE("spec.checkpoint.onPreemption", FOREIGN, "Save"),
    GONE("spec.checkpoint.keepBest", FOREIGN, "false"),
    GONE("spec.checkpoint.required", FOREIGN, "false"),
    GONE("spec.strategy.collective", FOREIGN, "Auto"),
    GONE("spec.strategy.recompute", FOREIGN, "false"),
    GONE("spec.encryption", "use a network that encrypts", "None"),
    GONE("spec", FOREIGN, NULL),
    ROWS_END,
};

/* "120s" or, in steps, 200. */
static void translate_interval(struct migration *migration)
{
    SCOPED_JSON *every = migration_take(migration, "spec.checkpoint.every");
    int64_t ms = 0;
    if (json_type(every) == JSON_NUMBER)
        migration_put(migration, "spec.coxswain.checkpoint.everySteps", json_copy(every), "spec.checkpoint.every");
    else if (duration_parse(json_string(every, ""), &ms))
        migration_put(migration, "spec.coxswain.checkpoint.everySeconds", json_new_integer(ms / 1000),
                      "spec.checkpoint.every");
    else
        migration_leave_out(migration, every, "spec.checkpoint.every",
                            "it is not a duration; write coxswain.checkpoint.everySeconds");
}

/* "runs:a.safetensors", or an absolute path. */
static void translate_init(struct migration *migration)
{
    SCOPED_JSON *from = migration_take(migration, "spec.init.from");
    const char *text = json_string(from, NULL), *colon = text && *text != '/' ? strchr(text, ':') : NULL;
    if (colon) {
        SCOPED_FREE char *storage = memory_copy_bytes(text, (size_t)(colon - text));
        migration_put(migration, "spec.coxswain.init.storage", json_new_string(storage), "spec.init.from");
    }
    if (!text)
        migration_leave_out(migration, from, "spec.init.from", MIGRATION_WRONG);
    else
        migration_put(migration, "spec.coxswain.init.path", json_new_string(colon ? colon + 1 : text),
                      "spec.init.from");
}

static void put_in_section(struct migration *migration, enum role role, const char *name, struct json *value,
                           const char *path)
{
    SCOPED_FREE char *to = memory_format("spec.%s%s%s", role_section(role), *name ? "." : "", name);
    migration_put(migration, to, value, path);
}

static void translate_role(struct migration *migration, struct json *element, const char *path)
{
    enum role role = ROLE_WORKER;
    if (!role_parse(json_string_at(element, "name", ""), &role))
        return;
    struct json *count = json_member(element, "count"), *template = json_member(element, "template");
    put_in_section(migration, role, "", json_new_object(), path);
    if (count && role == ROLE_PS)
        put_in_section(migration, role, "replicas", json_copy(count), path);
    if (template)
        put_in_section(migration, role, "template", json_copy(template), path);
    if (role == ROLE_PS || json_integer(count, 0) == 1)
        json_remove(element, "count");
    json_remove(element, "template");
    json_remove(element, "name");
}

static void translate_roles(struct migration *migration)
{
    SCOPED_JSON *roles = migration_take_list(migration, "spec.roles");
    size_t index = 0;
    for (struct json *element = json_first(roles); element; element = json_next(element)) {
        SCOPED_FREE char *path = memory_format("spec.roles[%zu]", index++);
        translate_role(migration, element, path);
        migration_leave_out(migration, element, path, "a TrainingJob has the roles chief, worker, ps and evaluator");
    }
}

static void translate_framework(struct migration *migration)
{
    static const char *const sections[] = {"coxswain", "pytorch", "tensorflow", "jax", NULL};
    SCOPED_JSON *framework = migration_take(migration, "spec.framework");
    const char *word = framework ? json_string(framework, "") : *sections, *const *section = sections;
    while (*section && strcasecmp(*section, word) != 0)
        section++;
    if (!*section)
        migration_leave_out(migration, framework, "spec.framework", "there are Coxswain, PyTorch, TensorFlow and JAX");
    migration->section = *section ? *section : *sections;
    if (*section && section != sections)
        json_free(migration_take(migration, "spec.strategy.type"));
}

void migration_from_v1alpha1(struct migration *migration)
{
    translate_framework(migration);
    bool own = strcmp(migration->section, "coxswain") == 0;
    if (own) {
        translate_interval(migration);
        translate_init(migration);
    }
    translate_roles(migration);
    migration_apply(migration, shared_rows);
    migration_apply(migration, own ? coxswain_rows : foreign_rows);
}
