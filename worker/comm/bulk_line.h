/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines: connections that carry the bytes of large tensors between two processes,
 * beside the rpc stream that announces them. gRPC copies what it receives, and takes
 * a message at a time; a line's bytes go between the socket and their place.
 *
 * The side that is called on the stream keeps a place (bulk_line_expect) and says its
 * port and a random token there; the other dials and shows the token, with the crew's proof and
 * under the crew's TLS as on every data connection (frame.h: the greeting). A line
 * that cannot be had is closed soon; then gRPC carries the bytes.
 *
 * On an open line one load travels at a time, in the direction and of the length
 * that both sides know from the stream. Its head says the same, so that sides which
 * disagree part. One thread moves the loads of all lines of a process; callers never
 * wait, hear by `wake` that something has happened, and ask what.
 */
#ifndef COXSWAIN_COMM_BULK_LINE_H
#define COXSWAIN_COMM_BULK_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* What is less is as well off on the stream. */
#define BULK_LINE_LOAD_MIN ((size_t)64 << 10)

struct bulk_lines;
struct bulk_line;
struct link;

struct bulk_lines_options {
    const char *job_uid;
    bool listens; /* else it only dials */
    const char *listen_address;
    uint16_t port; /* 0, or one that is taken: any free one */
    /* On the lines' thread, which must not wait for the owner there: a line has opened or closed, or a load is through. Never after
     * bulk_line_free of the last line. */
    void (*wake)(void *context);
    void *context;
};

int bulk_lines_start(const struct bulk_lines_options *options, struct bulk_lines **ret_lines, struct error *error);
/* 0: nobody listens. */
uint16_t bulk_lines_port(const struct bulk_lines *lines);
/* After its lines. */
void bulk_lines_free(struct bulk_lines *lines);

/* A place for whoever shows the token. */
struct bulk_line *bulk_line_expect(struct bulk_lines *lines, uint64_t *ret_token);
struct bulk_line *bulk_line_dial(struct bulk_lines *lines, const char *address, uint16_t port, uint64_t token);
/* From then on no memory of the caller's is touched. NULL is fine. */
void bulk_line_free(struct bulk_line *line);

/* A line that is dialled is OPEN or CLOSED within seconds; an expected one may wait as long as its owner likes. */
enum bulk_line_state { BULK_LINE_OPENING, BULK_LINE_OPEN, BULK_LINE_CLOSED };
enum bulk_line_state bulk_line_state(struct bulk_line *line);
/* A load is under way, for all that is known; also where the line has closed over it. */
bool bulk_line_is_busy(struct bulk_line *line);
/* Bytes moved so far; who sees it grow knows that the other side lives. */
uint64_t bulk_line_moved(struct bulk_line *line);

/* Open, and nothing under way; waits for what the thread is just doing, so that it never says so too late for who has heard from the
 * other side that the last load is there. */
bool bulk_line_is_ready(struct bulk_line *line);

/* All three: of a line that is ready; any other closes, and stays busy. The bytes stay where they are until the line is not busy or
 * is freed. */
void bulk_line_send(struct bulk_line *line, const void *bytes, size_t length);
void bulk_line_receive(struct bulk_line *line, void *bytes, size_t length);
/* Bytes that `give` writes to the link, from `offset` on, as many as that takes now (link_write); it returns how many, or LATER where
 * the next are not there: then bulk_line_poke says when. */
#define BULK_LINE_LATER SIZE_MAX
typedef size_t bulk_line_give(void *context, size_t offset, struct link *link);
void bulk_line_send_from(struct bulk_line *line, size_t length, bulk_line_give *give, void *context);
void bulk_line_poke(struct bulk_line *line);

#endif
