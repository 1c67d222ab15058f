/* SPDX-License-Identifier: Apache-2.0
 *
 * The door between event_loop.c and http_client.c, for nobody else: the loop drives
 * libcurl's multi handle, the client owns the transfers on it. libcurl's callbacks run inside
 * curl_multi_perform, where no transfer may be added or removed; so they only
 * take notes, and the loop calls `deliver` and `finish` afterwards, outside of it.
 */
#ifndef COXSWAIN_COMMON_EVENT_LOOP_TRANSFER_H
#define COXSWAIN_COMMON_EVENT_LOOP_TRANSFER_H

#include <curl/curl.h>

#include "common/event_loop.h"

/* Embedded as the first member of what the client keeps for a transfer; CURLOPT_PRIVATE points to it. */
struct event_transfer {
    CURL *easy;
    void (*deliver)(struct event_transfer *transfer); /* something was noted */
    void (*finish)(struct event_transfer *transfer, CURLcode result);
    void (*cancel)(struct event_transfer *transfer); /* the loop ends; must free it */
    struct event_transfer *previous, *next;          /* all of the loop's */
    struct event_transfer *next_noted;
    bool noted;
};

/* Failures of curl_multi_add_handle come back as its code; the transfer is then not on the loop. */
CURLMcode event_loop_add_transfer(struct event_loop *loop, struct event_transfer *transfer);
void event_loop_remove_transfer(struct event_loop *loop, struct event_transfer *transfer);
/* From libcurl's callbacks: have `deliver` called after this round. */
void event_loop_note_transfer(struct event_loop *loop, struct event_transfer *transfer);

#endif
