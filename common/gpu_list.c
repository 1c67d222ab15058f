/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpu_list.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>

#include "common/memory.h"
#include "common/scope.h"

DEFINE_SCOPE_FREE(DIR *, closedir)

static bool has(const struct gpu_list *list, const char *name)
{
    for (unsigned i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

/* A number, or a UUID as nvidia-smi -L prints it. */
static bool is_name(const char *text)
{
    return strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0 ||
           (*text && text[strspn(text, "0123456789")] == '\0');
}

static void read_visible(const char *text, struct gpu_list *list)
{
    for (bool more = true; more && list->count < GPU_LIST_MAX;) {
        text += strspn(text, " ");
        size_t length = strcspn(text, ",");
        more = text[length] == ',';
        char *name = memory_copy_bytes(text, length);
        for (size_t end = length; end > 0 && name[end - 1] == ' '; end--)
            name[end - 1] = '\0';
        text += length + more;
        if (!is_name(name) || has(list, name)) {
            free(name);
            return;
        }
        list->names[list->count++] = name;
    }
}

static bool is_gpu_file(const char *name)
{
    static const char prefix[] = "nvidia";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && isdigit((unsigned char)name[sizeof prefix - 1]) &&
           name[strspn(name + sizeof prefix - 1, "0123456789") + sizeof prefix - 1] == '\0';
}

/* CUDA numbers the GPUs that a process can open from 0, whatever the numbers of their files. */
static void read_devices(const char *path, struct gpu_list *list)
{
    SCOPED(closedir_scope) DIR *directory = opendir(path);
    for (struct dirent *entry; directory && list->count < GPU_LIST_MAX && (entry = readdir(directory));) {
        if (!is_gpu_file(entry->d_name))
            continue;
        list->names[list->count] = memory_format("%u", list->count);
        list->count++;
    }
}

void gpu_list_read(const char *visible, const char *devices, struct gpu_list *ret_list)
{
    *ret_list = (struct gpu_list){.count = 0};
    if (visible)
        read_visible(visible, ret_list);
    else
        read_devices(devices, ret_list);
}

void gpu_list_read_machine(struct gpu_list *ret_list)
{
    gpu_list_read(getenv(ENV_VISIBLE_GPUS), "/dev", ret_list);
}

void gpu_list_release(struct gpu_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        free(list->names[i]);
    list->count = 0;
}
