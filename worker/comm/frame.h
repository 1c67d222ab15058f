/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the wire format of data connections, which carry tensors between the pods of a job (gRPC carries the control
 * messages). handshake.h and endpoint.h open connections with it; collectives and bulk connections send with it.
 *
 * A connection begins with three messages (struct opening): the accepting side sends a challenge, the connecting
 * side sends its greeting, and the accepting side sends an answer. Frames follow, each of which is a header of
 * FRAME_HEADER_BYTES and a payload. On a bulk connection (bulk_connection.h), loads follow instead, each of which is a
 * head of LOAD_HEAD_BYTES and its bytes. All numbers are little-endian; each message, header and head ends with its
 * CRC-32C.
 *
 * Both sides prove that they have the job's key (crew_key.h). The connecting side's proof covers the challenge's random
 * bytes and the whole greeting; the accepting side's proof covers the challenge, the greeting with its random bytes, and
 * the answer. So recorded messages cannot be replayed on another connection.
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
/* Longer payloads are refused. */
#define FRAME_PAYLOAD_MAX ((size_t)1 << 20)

enum frame_kind { FRAME_CONTRIBUTION = 1, FRAME_RESULT = 2, FRAME_BROADCAST = 3, FRAME_MESSAGE = 4 };

struct frame_header {
    enum frame_kind kind;
    bool checked;  /* `payload_crc` is set */
    uint16_t part; /* the number of the contribution; the owner in an all-gather; a message's channel */
    struct generation generation;
    uint64_t
        sequence; /* number of the operation in its generation; of a message: number of earlier frames of its channel */
    uint32_t length; /* of the payload, bytes */
    uint32_t payload_crc;
};

void frame_header_encode(const struct frame_header *header, unsigned char bytes[FRAME_HEADER_BYTES]);
/* ERROR_CORRUPT if the bytes are not an intact header. */
int frame_header_decode(const unsigned char bytes[FRAME_HEADER_BYTES], struct frame_header *ret_header,
                        struct error *error);

#define OPENING_NONCE_BYTES 16
#define CHALLENGE_BYTES (4 + OPENING_NONCE_BYTES + 4)
#define GREETING_UID_MAX 128
#define GREETING_PATH_MAX 96
#define GREETING_BYTES                                                                                                 \
    (4 + 12 + 4 + 4 + 4 + GREETING_UID_MAX + GREETING_PATH_MAX + 8 + OPENING_NONCE_BYTES + CREW_PROOF_BYTES + 4)
#define GREETING_ANSWER_BYTES (4 + 4 + CREW_PROOF_BYTES + 4)

/* The messages so far, as on the wire; the proofs are computed over them. */
struct opening {
    unsigned char challenge[CHALLENGE_BYTES];
    unsigned char greeting[GREETING_BYTES];
};

/* Fills opening->challenge with random bytes. */
int challenge_make(struct opening *opening, struct error *error);
/* ERROR_CORRUPT if it is not an intact challenge. */
int challenge_check(const struct opening *opening, struct error *error);

/* Identifies the dialler, the dialled rank and the generation, and offers a file of shared memory. */
struct greeting {
    struct generation generation;
    uint32_t rank, size;
    uint32_t to; /* the rank that is dialled */
    char job_uid[GREETING_UID_MAX];
    char shared_path[GREETING_PATH_MAX]; /* "": none */
    uint64_t nonce;                      /* the number that the file must contain; on a bulk connection, its token */
};

/* Fills opening->greeting in reply to opening->challenge. */
int greeting_encode(const struct greeting *greeting, struct opening *opening, struct error *error);
/* Returns whether the `received` bytes so far can be the beginning of a greeting. */
bool greeting_has_begun(const struct opening *opening, size_t received);
/* ERROR_CORRUPT if it is not an intact greeting; ERROR_FORBIDDEN if it does not prove the key for this challenge. */
int greeting_decode(const struct opening *opening, struct greeting *ret_greeting, struct error *error);

/* TCP, SHARED: accepted, and how bytes will travel; STALE: the dialler's generation is superseded; REFUSED: another job, or an impossible
 * rank. */
enum greeting_answer { ANSWER_TCP = 1, ANSWER_SHARED, ANSWER_STALE, ANSWER_REFUSED };

void greeting_answer_encode(enum greeting_answer answer, const struct opening *opening,
                            unsigned char bytes[GREETING_ANSWER_BYTES]);
/* ERROR_CORRUPT and ERROR_FORBIDDEN as in greeting_decode. */
int greeting_answer_decode(const unsigned char bytes[GREETING_ANSWER_BYTES], const struct opening *opening,
                           enum greeting_answer *ret_answer, struct error *error);

#define LOAD_HEAD_BYTES 24

struct load_head {
    uint64_t number; /* number of earlier loads on this bulk connection */
    uint64_t length; /* in bytes; must be what the receiver expects */
};

void load_head_encode(const struct load_head *head, unsigned char bytes[LOAD_HEAD_BYTES]);
/* ERROR_CORRUPT if the bytes are not an intact head. */
int load_head_decode(const unsigned char bytes[LOAD_HEAD_BYTES], struct load_head *ret_head, struct error *error);

#endif
