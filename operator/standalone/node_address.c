/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/memory.h"

/* 127.0.x.x is localhost and 127.53 and below 127.64 hold what resolvers and the like bind to. */
enum { SECOND_FIRST = 64, SECOND_COUNT = 190 };

static bool is_held(const struct address_pool *pool, uint32_t number)
{
    return pool->held[number / 8] >> number % 8 & 1;
}

static void mark(struct address_pool *pool, uint32_t number, bool held)
{
    uint8_t bit = (uint8_t)(1U << number % 8);
    pool->held[number / 8] = held ? pool->held[number / 8] | bit : pool->held[number / 8] & (uint8_t)~bit;
}

static bool reserve(int reservation, unsigned second)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "coxswain-node-127.%u", second);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return bind(reservation, (struct sockaddr *)&name, size) == 0;
}

int address_pool_open(struct address_pool *ret_pool, const char *state_directory, struct error *error)
{
    int reservation = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (reservation < 0)
        return error_set_errno(error, "reserve addresses for pods");
    uint32_t first = crc32c(0, state_directory, strlen(state_directory)) % SECOND_COUNT;
    for (unsigned i = 0; i < SECOND_COUNT; i++) {
        unsigned second = SECOND_FIRST + (first + i) % SECOND_COUNT;
        if (!reserve(reservation, second))
            continue;
        *ret_pool = (struct address_pool){.reservation = reservation,
                                          .second = (uint8_t)second,
                                          .held = memory_allocate(1, (ADDRESSES_OF_POOL + 2) / 8)};
        return 0;
    }
    close(reservation);
    return error_set(error, ERROR_NO_SPACE, "%d control planes run on this machine; end one to get addresses for pods",
                     SECOND_COUNT);
}

void address_pool_release(struct address_pool *pool)
{
    if (!pool->held)
        return;
    close(pool->reservation);
    free(pool->held);
    *pool = (struct address_pool){.reservation = -1};
}

int address_take(struct address_pool *pool, char ret_text[ADDRESS_TEXT_MAX], struct error *error)
{
    for (uint32_t i = 0; i < ADDRESSES_OF_POOL; i++) {
        pool->last = pool->last % ADDRESSES_OF_POOL + 1;
        if (is_held(pool, pool->last))
            continue;
        mark(pool, pool->last, true);
        snprintf(ret_text, ADDRESS_TEXT_MAX, "127.%u.%u.%u", pool->second, pool->last >> 8 & 255U, pool->last & 255U);
        return 0;
    }
    return error_set(error, ERROR_NO_SPACE, "all %d addresses for pods are in use", ADDRESSES_OF_POOL);
}

static bool number_of(const struct address_pool *pool, const char *text, uint32_t *ret_number)
{
    struct in_addr address;
    if (!pool->held || inet_pton(AF_INET, text, &address) != 1)
        return false;
    uint32_t host = ntohl(address.s_addr);
    if (host >> 16 != (127U << 8 | pool->second))
        return false;
    *ret_number = host & 0xffffU;
    return true;
}

void address_give_back(struct address_pool *pool, const char *text)
{
    uint32_t number;
    if (number_of(pool, text, &number))
        mark(pool, number, false);
}
