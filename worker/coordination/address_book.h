/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses of the crew's hosts, looked up on a thread of its own: a slow name
 * server must not silence our heart beat. Every question is a fresh look-up.
 */
#ifndef COXSWAIN_COORDINATION_ADDRESS_BOOK_H
#define COXSWAIN_COORDINATION_ADDRESS_BOOK_H

#include <stdbool.h>

#include "worker/comm/resolve.h"
#include "worker/coordination/member.h"

struct address_book;

/* `found` is called on the book's thread after each look-up that gave an address. Hosts are copied. */
int address_book_new(const struct crew_seat *seats, unsigned size, void (*found)(void *context), void *context,
                     struct address_book **ret_book, struct error *error);
/* Waits for a look-up under way. */
void address_book_free(struct address_book *book);

/* True when a look-up has ended with an address since the last time this said true; else one is begun, unless it is under way. */
bool address_book_ask(struct address_book *book, unsigned rank, char ret_address[RESOLVE_ADDRESS_MAX]);

#endif
