/* SPDX-License-Identifier: Apache-2.0 */
#include "common/child_environment.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value of the last variable of that name, and in *ret_count how many there are. */
static const char *value_of(char **environment, const char *name, int *ret_count)
{
    const char *value = NULL;
    *ret_count = 0;
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, strlen(name)) == 0 && (*environment)[strlen(name)] == '=') {
            value = *environment + strlen(name) + 1;
            ++*ret_count;
        }
    return value;
}

Test(child_environment, variables_are_set_anew_and_others_inherited)
{
    setenv("CHILD_OLD", "old", 1);
    setenv("CHILD_OLDER", "older", 1);
    char *variables[] = {(char *)"CHILD_OLD=new", (char *)"CHILD_MORE=a=b", NULL};
    char **environment = child_environment(variables);
    int count;
    cr_expect_str_eq(value_of(environment, "CHILD_OLD", &count), "new");
    cr_expect_eq(count, 1);
    cr_expect_str_eq(value_of(environment, "CHILD_MORE", &count), "a=b");
    cr_expect_str_eq(value_of(environment, "CHILD_OLDER", &count), "older", "another name that begins alike");
    cr_expect_str_eq(getenv("CHILD_OLD"), "old", "this process keeps its own");
    free(environment);
}
