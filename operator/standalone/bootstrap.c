/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/bootstrap.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/yaml.h"
#include "operator/standalone/node.h"
#include "operator/standalone/registry_write.h"

#define MANIFEST_MAX (8 << 20)

static struct json *new_object(const char *version, const char *kind, const char *namespace, const char *name)
{
    struct json *object = json_new_object();
    json_set_string(object, "apiVersion", version);
    json_set_string(object, "kind", kind);
    struct json *metadata = json_set_object(object, "metadata");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", namespace);
    return object;
}

/* Takes `object` over. */
static int ensure(struct registry *registry, const char *plural, struct json *object, struct error *error)
{
    SCOPED_JSON *own = object;
    struct error found = ERROR_INIT;
    if (registry_create(registry, plural, own, NULL, &found) == 0 || found.kind == ERROR_ALREADY_EXISTS)
        return 0;
    if (error)
        *error = found;
    return -1;
}

/* ---- the node ---- */

static void set_capacity(struct json *resources, const struct sysinfo *machine)
{
    char text[32];
    snprintf(text, sizeof text, "%d", get_nprocs());
    json_set_string(resources, "cpu", text);
    snprintf(text, sizeof text, "%lluKi", (unsigned long long)machine->totalram * machine->mem_unit / 1024);
    json_set_string(resources, "memory", text);
    json_set_string(resources, "pods", "1000");
}

static void set_ready(struct json *status)
{
    char now[CLOCK_TEXT_MAX];
    clock_format_seconds(clock_now_ms(), now);
    struct json *condition = json_append(json_set_array(status, "conditions"), json_new_object());
    json_set_string(condition, "type", "Ready");
    json_set_string(condition, "status", "True");
    json_set_string(condition, "lastHeartbeatTime", now);
    json_set_string(condition, "lastTransitionTime", now);
    json_set_string(condition, "reason", "NodeReady");
    json_set_string(condition, "message", "this machine runs pods as processes");
}

static struct json *describe_node(void)
{
    struct sysinfo machine = {0};
    struct utsname kernel = {0};
    sysinfo(&machine);
    uname(&kernel);
    struct json *node = new_object("v1", "Node", NULL, NODE_NAME);
    struct json *labels = json_set_object(json_member(node, "metadata"), "labels");
    json_set_string(labels, "kubernetes.io/hostname", NODE_NAME);
    json_set_string(labels, "kubernetes.io/os", "linux");
    struct json *status = json_set_object(node, "status");
    set_capacity(json_set_object(status, "capacity"), &machine);
    set_capacity(json_set_object(status, "allocatable"), &machine);
    set_ready(status);
    struct json *address = json_append(json_set_array(status, "addresses"), json_new_object());
    json_set_string(address, "type", "InternalIP");
    json_set_string(address, "address", "127.0.0.1");
    struct json *info = json_set_object(status, "nodeInfo");
    /* All of these are required by the API, and clients with generated types refuse a node without them. */
    json_set_string(info, "machineID", "");
    json_set_string(info, "systemUUID", "");
    json_set_string(info, "bootID", "");
    json_set_string(info, "operatingSystem", "linux");
    json_set_string(info, "architecture", strcmp(kernel.machine, "aarch64") == 0 ? "arm64" : "amd64");
    json_set_string(info, "kubeProxyVersion", "");
    json_set_string(info, "kubeletVersion", "v1.36.0+coxswain");
    json_set_string(info, "osImage", kernel.sysname);
    json_set_string(info, "kernelVersion", kernel.release);
    json_set_string(info, "containerRuntimeVersion", "process://1");
    return node;
}

int bootstrap_cluster(struct registry *registry, struct error *error)
{
    static const char *const namespaces[] = {"default", "kube-system"};
    for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++) {
        struct json *account = new_object("v1", "ServiceAccount", namespaces[i], "default");
        if (ensure(registry, "namespaces", new_object("v1", "Namespace", NULL, namespaces[i]), error) < 0) {
            json_free(account);
            return -1;
        }
        if (ensure(registry, "serviceaccounts", account, error) < 0)
            return -1;
    }
    if (ensure(registry, "nodes", describe_node(), error) < 0)
        return -1;
    return registry_commit(registry, error);
}

/* ---- CustomResourceDefinitions ---- */

/* Merged over the stored one, so that an unchanged definition writes nothing. */
static struct json *apply_definition(struct registry *registry, const struct json *definition)
{
    struct write write = {
        .resource = resource_find_plural(registry_resources(registry), "customresourcedefinitions"),
        .namespace = "",
        .name = json_string_at(definition, "metadata.name", ""),
        .field_validation = FIELD_VALIDATION_IGNORE,
        .warnings = json_new_array(),
    };
    struct json *present = NULL;
    struct json *refused = registry_read(registry, write.resource, NULL, write.name, &present);
    bool absent = refused && refusal_code(refused) == 404;
    json_free(refused);
    if (absent) {
        write.name = NULL;
        refused = registry_write_create(registry, &write, json_copy(definition));
    } else {
        json_set(present, "spec", json_copy(json_member(definition, "spec")));
        refused = registry_write_update(registry, &write, present);
    }
    json_free(write.result);
    json_free(write.warnings);
    return refused;
}

static int load_file(struct registry *registry, const char *path, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(MANIFEST_MAX);
    SCOPED_JSON *documents = NULL;
    if (buffer_read_file(&text, path, error) < 0 ||
        yaml_parse(buffer_text(&text), text.length, MANIFEST_MAX, &documents, error) < 0)
        return error_wrap(error, "%s", path);
    for (const struct json *document = json_first(documents); document; document = json_next(document)) {
        if (strcmp(json_string_at(document, "kind", ""), "CustomResourceDefinition") != 0)
            continue;
        struct json *refused = apply_definition(registry, document);
        if (refused)
            return refusal_to_error(refused, error), error_wrap(error, "%s", path);
    }
    return registry_commit(registry, error);
}

static int is_manifest(const struct dirent *entry)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    const char *dot = strrchr(entry->d_name, '.');
    if (strncmp(entry->d_name, "kustomization", strlen("kustomization")) == 0)
        return 0;
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(dot, endings[i]) == 0)
            return 1;
    return 0;
}

static int load_directory(struct registry *registry, const char *path, struct error *error)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_manifest, alphasort), result = 0;
    if (count < 0)
        return error_set_errno(error, "cannot read the directory %s", path);
    for (int i = 0; i < count; i++) {
        SCOPED_FREE char *file = memory_format("%s/%s", path, entries[i]->d_name);
        if (result == 0)
            result = load_file(registry, file, error);
        free(entries[i]);
    }
    free(entries);
    return result;
}

int bootstrap_definitions(struct registry *registry, const char *path, struct error *error)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return error_set_errno(error, "cannot read CustomResourceDefinitions from %s", path);
    return S_ISDIR(status.st_mode) ? load_directory(registry, path, error) : load_file(registry, path, error);
}
