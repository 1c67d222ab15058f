/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines: connections that carry large tensors between two processes, beside the gRPC stream that announces the tensors. gRPC would copy
 * the bytes and needs whole messages; on a line the bytes go straight between the socket and the tensor's memory.
 *
 * The server side of the stream calls bulk_line_expect, and sends its port and a random token on the stream. The client side dials the
 * port and shows the token. As on every data connection, it proves the crew's key and uses the crew's TLS (frame.h: the greeting). If no
 * line can be opened, it is closed within seconds, and gRPC carries the bytes.
 *
 * An open line carries one load at a time. Both sides know its direction and length from the stream; its head repeats the length, and a
 * receiver that expects another one closes the line. One thread moves the loads of all lines of a process. Calls do not wait for the
 * network: `wake` tells the owner that something has happened, and the owner then asks what.
 */
#ifndef COXSWAIN_COMM_BULK_LINE_H
#define COXSWAIN_COMM_BULK_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Fewer bytes gain nothing from a line: send them on the stream. */
#define BULK_LINE_LOAD_MIN ((size_t)64 << 10)

struct bulk_lines;
struct bulk_line;
struct link;

struct bulk_lines_options {
    const char *job_uid;
    bool listens; /* false: only dials */
    const char *listen_address;
    uint16_t port; /* 0, or in use: any free one */
    /* Called on the lines' thread, which it must not block, when a line has opened or closed or a load is complete. Not called for a line
     * that was freed. */
    void (*wake)(void *context);
    void *context;
};

int bulk_lines_start(const struct bulk_lines_options *options, struct bulk_lines **ret_lines, struct error *error);
/* Returns the port; 0 if the lines do not listen. */
uint16_t bulk_lines_port(const struct bulk_lines *lines);
/* Free all lines before. */
void bulk_lines_free(struct bulk_lines *lines);

/* Creates a line that opens when a peer dials and shows the token. */
struct bulk_line *bulk_line_expect(struct bulk_lines *lines, uint64_t *ret_token);
struct bulk_line *bulk_line_dial(struct bulk_lines *lines, const char *address, uint16_t port, uint64_t token);
/* Closes and frees the line; NULL is allowed. The caller's memory is not used afterwards. */
void bulk_line_free(struct bulk_line *line);

/* A dialled line is OPEN or CLOSED within seconds; an expected one stays OPENING until it is dialled or freed. */
enum bulk_line_state { BULK_LINE_OPENING, BULK_LINE_OPEN, BULK_LINE_CLOSED };
enum bulk_line_state bulk_line_state(struct bulk_line *line);
/* Returns whether a load is under way. A line that closes during a load stays busy. */
bool bulk_line_is_busy(struct bulk_line *line);
/* Returns how many bytes have moved so far; while it grows, the other side is alive. */
uint64_t bulk_line_moved(struct bulk_line *line);

/* Returns whether the line is open and no load is under way. Waits while the thread works on the line, so that the answer is right as
 * soon as the other side has reported that it has the last load. */
bool bulk_line_is_ready(struct bulk_line *line);

/* Start a load. The line must be ready; otherwise it closes and stays busy. The memory must stay valid until the line is not busy or is
 * freed. */
void bulk_line_send(struct bulk_line *line, const void *bytes, size_t length);
void bulk_line_receive(struct bulk_line *line, void *bytes, size_t length);
/* Starts to send bytes that `give` writes to the link with link_write, from `offset` on. `give` returns how many bytes the link took, or
 * BULK_LINE_LATER if the next bytes do not exist yet; call bulk_line_poke once they do. */
#define BULK_LINE_LATER SIZE_MAX
typedef size_t bulk_line_give(void *context, size_t offset, struct link *link);
void bulk_line_send_from(struct bulk_line *line, size_t length, bulk_line_give *give, void *context);
void bulk_line_poke(struct bulk_line *line);

#endif
