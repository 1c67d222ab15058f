/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/tf_config.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/memory.h"

static int parse_port(const char *text, uint16_t *ret_port)
{
    char *end;
    long port = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || port < 1 || port > 65535)
        return -1;
    *ret_port = (uint16_t)port;
    return 0;
}

static int add_task(struct tf_config *config, const char *role, unsigned index, const struct json *value,
                    struct error *error)
{
    const char *address = json_string(value, "");
    const char *colon = strrchr(address, ':');
    struct tf_task task = {.index = index};
    if (colon == NULL || colon == address || parse_port(colon + 1, &task.port) < 0)
        return error_set(error, ERROR_INVALID, "TF_CONFIG: cluster.%.32s %u: \"%.64s\" is not host:port", role, index,
                         address);
    if (config->task_count == TF_CONFIG_TASKS_MAX)
        return error_set(error, ERROR_TOO_LARGE, "TF_CONFIG: more than %d tasks", TF_CONFIG_TASKS_MAX);
    task.role = memory_copy_string(role);
    task.host = memory_copy_bytes(address, (size_t)(colon - address));
    config->tasks = memory_resize(config->tasks, config->task_count + 1, sizeof *config->tasks);
    config->tasks[config->task_count++] = task;
    return 0;
}

/* The index of a task: its place in a list, or its key in the sparse form. */
static int task_index(const struct json *item, unsigned place, unsigned *ret_index)
{
    const char *key = json_key(item);
    if (key == NULL) {
        *ret_index = place;
        return 0;
    }
    char *end;
    unsigned long index = strtoul(key, &end, 10);
    if (*key < '0' || *key > '9' || *end != '\0' || index >= TF_CONFIG_TASKS_MAX)
        return -1;
    *ret_index = (unsigned)index;
    return 0;
}

static int parse_role(struct tf_config *config, const struct json *role, struct error *error)
{
    enum json_type type = json_type(role);
    if (type != JSON_ARRAY && type != JSON_OBJECT)
        return error_set(error, ERROR_INVALID, "TF_CONFIG: cluster.%.32s is neither a list nor an object of host:port",
                         json_key(role));
    unsigned place = 0;
    for (const struct json *item = json_first(role); item; item = json_next(item), place++) {
        unsigned index;
        if (task_index(item, place, &index) < 0)
            return error_set(error, ERROR_INVALID, "TF_CONFIG: cluster.%.32s: \"%.32s\" is no index", json_key(role),
                             json_key(item));
        if (add_task(config, json_key(role), index, item, error) < 0)
            return -1;
    }
    return 0;
}

static int parse_document(const struct json *document, struct tf_config *config, struct error *error)
{
    for (const struct json *role = json_first(json_member(document, "cluster")); role; role = json_next(role))
        if (parse_role(config, role, error) < 0)
            return -1;
    const char *role = json_string_at(document, "task.type", NULL);
    config->index = json_integer_at(document, "task.index", -1);
    if (role == NULL || config->index < 0)
        return error_set(error, ERROR_INVALID, "TF_CONFIG: task.type or task.index is missing");
    config->role = memory_copy_string(role);
    return 0;
}

int tf_config_parse(const char *text, size_t length, struct tf_config *ret_config, struct error *error)
{
    struct json *root;
    if (json_parse(text, length, TF_CONFIG_MAX, &root, error) < 0)
        return error_wrap(error, "TF_CONFIG");
    SCOPED_JSON *document = root;
    struct tf_config config = {0};
    if (parse_document(document, &config, error) < 0) {
        tf_config_release(&config);
        return -1;
    }
    *ret_config = config;
    return 0;
}

void tf_config_release(struct tf_config *config)
{
    for (unsigned i = 0; i < config->task_count; i++) {
        free(config->tasks[i].role);
        free(config->tasks[i].host);
    }
    free(config->tasks);
    free(config->role);
    *config = (struct tf_config){0};
}
