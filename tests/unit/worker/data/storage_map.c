/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/storage_map.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(storage_map, resolves_names_and_refuses_to_climb)
{
    struct error error = ERROR_INIT;
    struct storage_map *map = NULL;
    char *path = NULL;
    cr_assert_eq(storage_map_parse("digits=/mnt/digits:runs=/mnt/runs", &map, &error), 0);
    cr_assert_eq(storage_map_resolve(map, "runs", "a/b", &path, &error), 0);
    cr_assert_str_eq(path, "/mnt/runs/a/b");
    free(path);
    cr_assert_eq(storage_map_resolve(map, NULL, "/own/path", &path, &error), 0);
    cr_assert_str_eq(path, "/own/path");
    free(path);
    cr_assert_eq(storage_map_resolve(map, "runs", "a/../../etc", &path, &error), -1);
    cr_assert_eq(storage_map_resolve(map, "lost", "a", &path, &error), -1);
    cr_assert(strstr(error.message, "digits, runs"), "%s", error.message);
    storage_map_free(map);
}

Test(storage_map, names_the_part_it_cannot_read)
{
    struct error error = ERROR_INIT;
    struct storage_map *map = NULL;
    cr_assert_eq(storage_map_parse("digits=/mnt:runs", &map, &error), -1);
    cr_assert(strstr(error.message, "\"runs\""), "%s", error.message);
    cr_assert_eq(storage_map_parse(NULL, &map, &error), 0);
    storage_map_free(map);
}
