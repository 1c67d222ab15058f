/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/migration_replicas.h"

#include <string.h>

#include "common/gpu_list.h"
#include "common/job/template_overlay.h"
#include "common/memory.h"
#include "operator/cli/command_line.h"

void replicas_release(struct replicas roles[ROLE_COUNT])
{
    for (int role = 0; role < ROLE_COUNT; role++)
        json_free(roles[role].template);
}

void replicas_add_variable(struct replicas roles[ROLE_COUNT], const char *name, const char *value)
{
    for (enum role role = ROLE_CHIEF; role <= ROLE_WORKER; role++) {
        struct json *container = template_main_container(roles[role].template);
        struct json *list = container ? json_set_array(container, "env") : NULL;
        if (!list || migration_find(list, name))
            continue;
        struct json *entry = json_append(list, json_new_object());
        json_set_string(entry, "name", name);
        json_set_string(entry, "value", value);
    }
}

/* ---------------------------------------------------------------- processes and GPUs */

/* How many GPUs the main container of a template is limited to, and under which name; 0: none. */
static int64_t gpu_limit(const struct json *template, const char **ret_resource)
{
    const struct json *limits = json_at(template_main_container(template), "resources.limits");
    for (const struct json *limit = json_first(limits); limit; limit = json_next(limit)) {
        const char *slash = json_key(limit) ? strrchr(json_key(limit), '/') : NULL;
        SCOPED_FREE char *text = json_scalar_text(limit);
        int64_t count = 0;
        if (!slash || strcmp(slash, "/gpu") != 0 || !text || !number_parse(text, &count))
            continue;
        *ret_resource = json_key(limit);
        return count;
    }
    return 0;
}

static void remove_resource(struct json *container, const char *list, const char *name)
{
    struct json *resources = json_member(container, "resources"), *values = json_member(resources, list);
    json_remove(values, name);
    if (values && json_count(values) == 0)
        json_remove(resources, list);
    if (resources && json_count(resources) == 0)
        json_remove(container, "resources");
}

static void put_gpus(struct migration *migration, struct replicas roles[ROLE_COUNT], int64_t count,
                     const char *resource)
{
    SCOPED_FREE char *name = memory_copy_string(resource);
    migration_put(migration, "spec.devices.type", json_new_string("GPU"), "");
    migration_put(migration, "spec.devices.count", json_new_integer(count), "");
    if (strcmp(name, GPU_RESOURCE) != 0)
        migration_put(migration, "spec.devices.resourceName", json_new_string(name), "");
    for (enum role role = ROLE_CHIEF; role <= ROLE_WORKER; role++) {
        struct json *container = template_main_container(roles[role].template);
        remove_resource(container, "limits", name);
        remove_resource(container, "requests", name);
    }
}

/* Without a number, or with a word, torchrun starts a process for each GPU; in a TrainingJob as many as devices.count says. */
void replicas_put_processes(struct migration *migration, struct replicas roles[ROLE_COUNT], const char *processes,
                            const char *from)
{
    const struct replicas *chief = &roles[ROLE_CHIEF], *workers = &roles[ROLE_WORKER];
    const char *resource = "", *of_chief = "";
    int64_t gpus = gpu_limit(workers->template, &resource), count = gpus;
    bool counted = processes && number_parse(processes, &count), word = processes && !counted;
    bool alike =
        chief->count == 0 || (gpu_limit(chief->template, &of_chief) == gpus && strcmp(resource, of_chief) == 0);
    if (gpus > 0 && alike && count == gpus && !(word && strcmp(processes, "cpu") == 0))
        put_gpus(migration, roles, gpus, resource);
    else if (counted && count > 1)
        migration_put(migration, "spec.devices.count", json_new_integer(count), from);
    else if (word || (gpus > 0 && !counted))
        replicas_add_variable(roles, "PET_NPROC_PER_NODE", word ? processes : "auto");
}

/* ---------------------------------------------------------------- the new job */

/* All roles have the image of the workers, unless their template names another. */
static void put_image(struct migration *migration, const struct replicas roles[ROLE_COUNT])
{
    const struct json *main = template_main_container(roles[ROLE_WORKER].template);
    SCOPED_FREE char *image = memory_copy_string(json_string_at(main, "image", NULL));
    if (!image)
        return;
    migration_put(migration, "spec.image", json_new_string(image), "");
    for (int role = 0; role < ROLE_COUNT; role++) {
        struct json *container = template_main_container(roles[role].template);
        if (strcmp(json_string_at(container, "image", ""), image) == 0)
            json_remove(container, "image");
    }
}

void replicas_put(struct migration *migration, const struct replicas roles[ROLE_COUNT])
{
    put_image(migration, roles);
    for (enum role role = ROLE_CHIEF; role < ROLE_COUNT; role++) {
        const struct replicas *replicas = &roles[role];
        if (replicas->count == 0)
            continue;
        SCOPED_FREE char *path = memory_format("spec.%s", role_section(role));
        struct json *section = json_new_object();
        if (role == ROLE_WORKER || role == ROLE_PS)
            json_set_integer(section, "replicas", replicas->count);
        if (json_first(replicas->template))
            json_set(section, "template", json_copy(replicas->template));
        migration_put(migration, path, section, path);
    }
}
