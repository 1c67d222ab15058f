/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves the host names of a job's pods on a thread of its own, so that a slow name server does not delay heartbeats.
 * The chief, the crew's members, and the clients and watchers of parameter servers ask it before they dial: the answer
 * is there, or a lookup begins and `found` tells when it has succeeded.
 *
 * Each request resolves the name anew; nothing is cached, because a replaced pod keeps its name and gets another
 * address.
 */
#ifndef COXSWAIN_COORDINATION_ADDRESS_BOOK_H
#define COXSWAIN_COORDINATION_ADDRESS_BOOK_H

#include <stdbool.h>

#include "worker/comm/resolve.h"
#include "worker/coordination/member.h"

struct address_book;

/* Starts the thread. It calls `found` after each lookup that yields an address. The hosts' names
 * are copied. Fails if there are too many seats or the thread cannot be created. */
int address_book_new(const struct crew_seat *seats, unsigned size, void (*found)(void *context), void *context,
                     struct address_book **ret_book, struct error *error);
/* Stops the thread, after a lookup under way, and frees the book. Does nothing for NULL. */
void address_book_free(struct address_book *book);

/* Takes the address that the last lookup has found for a seat and returns true. If there is none,
 * requests a lookup and returns false; a lookup under way is not repeated. `rank` is the seat's index
 * in address_book_new's list, here and below. */
bool address_book_ask(struct address_book *book, unsigned rank, char ret_address[RESOLVE_ADDRESS_MAX]);
/* Returns true if a lookup has ended and the last one has found no address. */
bool address_book_lacks(struct address_book *book, unsigned rank);

#endif
