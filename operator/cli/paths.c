/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/memory.h"
#include "common/scope.h"

static const char *home(void)
{
    const char *directory = getenv("HOME");
    return directory && *directory ? directory : "/tmp";
}

char *path_user_directory(const char *variable, const char *otherwise)
{
    const char *given = getenv(variable);
    if (given && *given == '/')
        return memory_format("%s/coxswain", given);
    return memory_format("%s/%s/coxswain", home(), otherwise);
}

static char *own_directory(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    while (length > 1 && path[length - 1] != '/')
        length--;
    return memory_copy_bytes(path, length > 1 ? (size_t)length - 1 : 0);
}

char *path_of_program(const char *name)
{
    SCOPED_FREE char *directory = own_directory();
    char *path = memory_format("%s/%s", directory, name);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return memory_copy_string(name);
}

const char *path_of_this_program(void)
{
    return program_invocation_name;
}

char *path_for_shell(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=:,+@%";
    if (*word && word[strspn(word, plain)] == '\0')
        return memory_copy_string(word);
    SCOPED_BUFFER quoted = BUFFER_INIT(8 * PATH_MAX);
    buffer_append_byte(&quoted, '\'', NULL);
    for (; *word; word++) {
        if (*word == '\'')
            buffer_append_string(&quoted, "'\\''", NULL);
        else
            buffer_append_byte(&quoted, *word, NULL);
    }
    buffer_append_byte(&quoted, '\'', NULL);
    return buffer_take(&quoted);
}

char *path_absolute(const char *path)
{
    SCOPED_FREE char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    while (here && strncmp(path, "./", 2) == 0)
        path += 2;
    return here ? memory_format("%s/%s", here, path) : memory_copy_string(path);
}

static bool is_repository(const char *directory)
{
    SCOPED_FREE char *examples = memory_format("%s/deploy/examples", directory);
    SCOPED_FREE char *worker = memory_format("%s/worker/main.c", directory);
    return access(examples, R_OK) == 0 && access(worker, R_OK) == 0;
}

/* The nearest directory above the executable, or the working directory (a build may lie anywhere). */
char *path_of_sources(void)
{
    char *directory = own_directory();
    while (*directory) {
        if (is_repository(directory))
            return directory;
        *strrchr(directory, '/') = '\0';
    }
    free(directory);
    return is_repository(".") ? realpath(".", NULL) : NULL;
}

int path_of_example(const char *name, char **ret_path, struct error *error)
{
    SCOPED_FREE char *own = own_directory();
    SCOPED_FREE char *sources = path_of_sources();
    char *candidates[] = {
        memory_format("%s/deploy/examples/%s", sources ? sources : own, name),
        memory_format("%s/../share/coxswain/examples/%s", own, name),
    };
    *ret_path = NULL;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        if (!*ret_path && access(candidates[i], R_OK) == 0)
            *ret_path = candidates[i];
        else
            free(candidates[i]);
    }
    return *ret_path
               ? 0
               : error_set(error, ERROR_NOT_FOUND, "the example %s is neither beside the build nor installed", name);
}

char *path_for_people(const char *path)
{
    size_t length = strlen(home());
    if (strncmp(path, home(), length) == 0 && path[length] == '/')
        return memory_format("~%s", path + length);
    return memory_copy_string(path);
}

void path_append_option(struct buffer *command, const char *option, const char *value)
{
    SCOPED_FREE char *word = value ? path_for_shell(value) : NULL;
    if (word)
        buffer_format(command, " %s %s", option, word);
}
