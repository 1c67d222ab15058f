/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of the data plane. A connection starts with a greeting and its answer;
 * then frames follow, a header of FRAME_HEADER_BYTES and a payload each. All
 * numbers are little-endian; greeting, answer and header end in their CRC-32C. On a
 * line (bulk_line.h) loads follow instead, a head of LOAD_HEAD_BYTES and all of its bytes.
 */
#ifndef COXSWAIN_COMM_FRAME_H
#define COXSWAIN_COMM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/generation.h"

#define FRAME_HEADER_BYTES 40
/* A payload beyond this is refused. */
#define FRAME_PAYLOAD_MAX ((size_t)1 << 20)

enum frame_kind { FRAME_CONTRIBUTION = 1, FRAME_RESULT = 2, FRAME_BROADCAST = 3, FRAME_MESSAGE = 4 };

struct frame_header {
    enum frame_kind kind;
    bool checked;  /* `payload_crc` means something */
    uint16_t part; /* which of the sender's contributions; a message's channel */
    struct generation generation;
    uint64_t sequence;
    uint32_t length; /* of the payload, bytes */
    uint32_t payload_crc;
};

void frame_header_encode(const struct frame_header *header, unsigned char bytes[FRAME_HEADER_BYTES]);
/* ERROR_CORRUPT for anything that is not an intact header. */
int frame_header_decode(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *ret_header,
                        struct error *error);

#define GREETING_UID_MAX 128
#define GREETING_PATH_MAX 96
#define GREETING_BYTES (4 + 12 + 4 + 4 + GREETING_UID_MAX + GREETING_PATH_MAX + 8 + CREW_PROOF_BYTES + 4)

/* Who dials, in which generation, and a file that it hopes to share; on the wire with a proof of the crew's key. */
struct greeting {
    struct generation generation;
    uint32_t rank, size;
    char job_uid[GREETING_UID_MAX];
    char shared_path[GREETING_PATH_MAX]; /* "": none */
    uint64_t nonce;                      /* what the file must hold */
};

void greeting_encode(const struct greeting *greeting, unsigned char bytes[GREETING_BYTES]);
/* ERROR_CORRUPT for anything that is not an intact greeting, ERROR_FORBIDDEN without the key. */
int greeting_decode(const unsigned char bytes[GREETING_BYTES], struct greeting *ret_greeting, struct error *error);

#define GREETING_ANSWER_BYTES 12
/*  TCP, SHARED: welcome, and how bytes travel; LATER: dial again, we are not there yet; STALE: yours is superseded;
 *  REFUSED: another job or an impossible rank. */
enum greeting_answer { ANSWER_TCP = 1, ANSWER_SHARED, ANSWER_LATER, ANSWER_STALE, ANSWER_REFUSED };

void greeting_answer_encode(enum greeting_answer answer, unsigned char bytes[GREETING_ANSWER_BYTES]);
int greeting_answer_decode(const unsigned char bytes[GREETING_ANSWER_BYTES], enum greeting_answer *ret_answer,
                           struct error *error);

#define LOAD_HEAD_BYTES 24

struct load_head {
    uint64_t number; /* of loads on this line before */
    uint64_t length; /* bytes; what the receiver expects, or it is refused */
};

void load_head_encode(const struct load_head *head, unsigned char bytes[LOAD_HEAD_BYTES]);
/* ERROR_CORRUPT for anything that is not an intact head. */
int load_head_decode(const unsigned char bytes[LOAD_HEAD_BYTES], struct load_head *ret_head, struct error *error);

#endif
