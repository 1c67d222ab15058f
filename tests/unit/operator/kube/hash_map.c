/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "operator/kube/hash_map.h"

static const char *name_of(int number)
{
    static char name[32];
    snprintf(name, sizeof name, "key-%d", number);
    return name;
}

Test(hash_map, an_empty_map_holds_nothing)
{
    struct hash_map map;
    size_t at = 0;
    void *value;
    hash_map_init(&map);
    cr_assert_null(hash_map_get(&map, "x"));
    cr_assert_null(hash_map_remove(&map, "x"));
    cr_assert_not(hash_map_next(&map, &at, NULL, &value));
    hash_map_release(&map, NULL);
}

Test(hash_map, behaves_like_an_array_under_random_changes)
{
    enum { KEYS = 700, STEPS = 60000 };
    static int present[KEYS]; /* 0: absent, else the value's distance from `values` */
    static char values[STEPS + 1];
    struct hash_map map;
    size_t count = 0;
    hash_map_init(&map);
    srand(7);
    for (int step = 1; step <= STEPS; step++) {
        int number = rand() % KEYS;
        void *expected = present[number] ? &values[present[number]] : NULL;
        cr_assert_eq(hash_map_get(&map, name_of(number)), expected);
        if (rand() % 2) {
            cr_assert_eq(hash_map_set(&map, name_of(number), &values[step]), expected);
            count += present[number] == 0;
            present[number] = step;
        } else {
            cr_assert_eq(hash_map_remove(&map, name_of(number)), expected);
            count -= present[number] != 0;
            present[number] = 0;
        }
        cr_assert_eq(map.count, count);
    }
    size_t at = 0, visited = 0;
    const char *key;
    void *value;
    while (hash_map_next(&map, &at, &key, &value)) {
        cr_assert_eq(hash_map_get(&map, key), value);
        visited++;
    }
    cr_assert_eq(visited, count);
    hash_map_release(&map, NULL);
}

Test(hash_map, releases_its_values)
{
    struct hash_map map;
    hash_map_init(&map);
    hash_map_set(&map, "a", malloc(1));
    free(hash_map_set(&map, "a", malloc(2)));
    hash_map_release(&map, free);
    cr_assert_eq(map.count, 0);
}

struct named {
    char name[16];
    int value;
};

Test(hash_map, keys_may_lie_in_their_values)
{
    struct hash_map map;
    struct named first = {"a", 1}, second = {"a", 2}, others[100];
    hash_map_init_keys_in_values(&map);
    hash_map_set(&map, first.name, &first);
    cr_assert_eq(hash_map_set(&map, second.name, &second), &first);
    first.name[0] = 'x'; /* as if it were freed */
    for (int i = 0; i < 100; i++) {
        snprintf(others[i].name, sizeof others[i].name, "o%d", i);
        hash_map_set(&map, others[i].name, &others[i]);
    }
    cr_assert_eq(hash_map_get(&map, "a"), &second);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(hash_map_remove(&map, others[i].name), &others[i]);
    cr_assert_eq(map.count, 1);
    hash_map_release(&map, NULL);
}
