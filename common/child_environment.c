/* SPDX-License-Identifier: Apache-2.0 */
#include "common/child_environment.h"

#include <stdbool.h>
#include <string.h>

#include "common/memory.h"

extern char **environ;

static size_t count_of(char *const *variables)
{
    size_t count = 0;
    while (variables[count] != NULL)
        count++;
    return count;
}

/* Returns whether one of the variables has the name of `wanted`. */
static bool sets(char *const *variables, const char *wanted)
{
    size_t length = strcspn(wanted, "=");
    bool found = false;
    for (; *variables != NULL; variables++)
        found |= strcspn(*variables, "=") == length && strncmp(*variables, wanted, length) == 0;
    return found;
}

char **child_environment(char *const *variables)
{
    char **all = memory_allocate(count_of(environ) + count_of(variables) + 1, sizeof *all), **next = all;
    for (char **inherited = environ; *inherited != NULL; inherited++)
        if (!sets(variables, *inherited))
            *next++ = *inherited;
    memcpy(next, variables, count_of(variables) * sizeof *next);
    return all;
}
