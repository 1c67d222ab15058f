/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_address.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct address_pool open_pool(const char *state)
{
    struct address_pool pool;
    struct error error = ERROR_INIT;
    cr_assert_eq(address_pool_open(&pool, state, &error), 0, "%s", error.message);
    return pool;
}

Test(node_address, each_is_fresh)
{
    struct address_pool pool = open_pool("/state/a");
    char first[ADDRESS_TEXT_MAX], second[ADDRESS_TEXT_MAX], third[ADDRESS_TEXT_MAX];
    cr_assert_eq(address_take(&pool, first, NULL), 0);
    cr_assert_eq(address_take(&pool, second, NULL), 0);
    address_give_back(&pool, first);
    cr_assert_eq(address_take(&pool, third, NULL), 0);
    cr_assert_str_neq(first, second);
    cr_assert_str_neq(first, third);
    cr_assert_eq(strncmp(first, "127.", 4), 0);
    address_pool_release(&pool);
}

Test(node_address, two_pools_of_one_name_do_not_clash)
{
    struct address_pool one = open_pool("/state/b"), other = open_pool("/state/b");
    cr_assert_neq(one.second, other.second);
    address_pool_release(&one);
    address_pool_release(&other);
}

Test(node_address, held_ones_are_left_out_and_all_can_be_had)
{
    struct address_pool pool = open_pool("/state/c");
    char text[ADDRESS_TEXT_MAX], held[ADDRESS_TEXT_MAX];
    struct error error = ERROR_INIT;
    cr_assert_eq(address_take(&pool, held, &error), 0);
    for (int i = 0; i < ADDRESSES_OF_POOL - 1; i++) {
        cr_assert_eq(address_take(&pool, text, &error), 0);
        cr_assert_str_neq(text, held);
    }
    cr_assert_eq(address_take(&pool, text, &error), -1);
    cr_assert_eq(error.kind, ERROR_NO_SPACE);
    address_give_back(&pool, held);
    cr_assert_eq(address_take(&pool, text, &error), 0);
    cr_assert_str_eq(text, held);
    address_pool_release(&pool);
}

Test(node_address, strangers_are_ignored)
{
    struct address_pool pool = open_pool("/state/d");
    address_give_back(&pool, "10.0.0.1");
    address_give_back(&pool, "no address");
    char text[ADDRESS_TEXT_MAX];
    cr_assert_eq(address_take(&pool, text, NULL), 0);
    address_pool_release(&pool);
}
