/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates addresses for the pods of the embedded control plane's node: 127.x.y.z, which Linux serves without any setup. `x` is a hash of
 * the state directory's name, or the next free value. While the pool is open, a socket in the abstract namespace reserves `x`: the abstract
 * namespace and the loopback device belong to the same network namespace, so two control planes never use the same /16. An address is used
 * again only after all others.
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
    uint32_t last;   /* the number allocated last */
    uint8_t *held;   /* a bit for each number in use */
};

/* ERROR_NO_SPACE when every /16 is reserved. */
int address_pool_open(struct address_pool *ret_pool, const char *state_directory, struct error *error);
void address_pool_release(struct address_pool *pool);

/* ERROR_NO_SPACE when all addresses are in use. */
int address_take(struct address_pool *pool, char ret_text[ADDRESS_TEXT_MAX], struct error *error);
void address_give_back(struct address_pool *pool, const char *text);

#endif
