/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses for pods: 127.x.y.z, which Linux answers on without setting up
 * anything. `x` is chosen by the state directory's name and then reserved on this
 * machine for as long as the pool lives (a socket in the abstract name space,
 * which is as wide as the loopback device), so two control planes never clash.
 * Within the /16 an address comes up again only after all others have, and never
 * while it is held.
 */
#ifndef COXSWAIN_STANDALONE_NODE_ADDRESS_H
#define COXSWAIN_STANDALONE_NODE_ADDRESS_H

#include <stdint.h>

#include "common/error.h"

#define ADDRESS_TEXT_MAX 16
#define ADDRESSES_OF_POOL 65534 /* .0.0 and .255.255 are left out */

struct address_pool {
    int reservation; /* the socket */
    uint8_t second;  /* x */
    uint32_t last;   /* the number handed out last */
    uint8_t *held;   /* a bit for each number */
};

/* ERROR_NO_SPACE when every /16 is reserved. */
int address_pool_open(struct address_pool *ret_pool, const char *state_directory, struct error *error);
void address_pool_release(struct address_pool *pool);

/* ERROR_NO_SPACE when all are held. */
int address_take(struct address_pool *pool, char ret_text[ADDRESS_TEXT_MAX], struct error *error);
void address_give_back(struct address_pool *pool, const char *text);

#endif
