/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs libcurl transfers on an event loop. Only event_loop.c, which drives libcurl's multi handle, and http_client.c, which owns the
 * transfers, include it.
 *
 * libcurl's callbacks run inside curl_multi_perform, where no transfer may be added or removed. They therefore only record what
 * happened and note the transfer; after curl_multi_perform the loop calls `deliver` for each noted transfer, then `finish` for each
 * transfer that has ended.
 */
#ifndef COXSWAIN_COMMON_EVENT_LOOP_TRANSFER_H
#define COXSWAIN_COMMON_EVENT_LOOP_TRANSFER_H

#include <curl/curl.h>

#include "common/event_loop.h"

/* The first member of the client's struct for a transfer; CURLOPT_PRIVATE points to it. */
struct event_transfer {
    CURL *easy;
    void (*deliver)(struct event_transfer *transfer); /* called after event_loop_note_transfer */
    void (*finish)(struct event_transfer *transfer,
                   CURLcode result);                 /* called once, when libcurl has ended the transfer */
    void (*cancel)(struct event_transfer *transfer); /* the loop is being freed; must free the transfer */
    struct event_transfer *previous, *next;          /* in the loop's list of transfers */
    struct event_transfer *next_noted;
    bool noted;
};

/* Returns the code of curl_multi_add_handle; if that is not CURLM_OK, the transfer is not on the loop. */
CURLMcode event_loop_add_transfer(struct event_loop *loop, struct event_transfer *transfer);
void event_loop_remove_transfer(struct event_loop *loop, struct event_transfer *transfer);
/* Makes the loop call `deliver` at the end of this turn. For libcurl's callbacks. */
void event_loop_note_transfer(struct event_loop *loop, struct event_transfer *transfer);

#endif
