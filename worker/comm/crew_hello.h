/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and checks the hello: the first message on a control connection (one that carries gRPC), by which the calling pod says
 * who it is and proves that it has the job's key. rpc_connections.h exchanges it inside TLS before gRPC sees the
 * connection, and the other side answers with a proof of its own.
 *
 * Both proofs are HMACs with the job's key over the hello and a value that only the two ends of this TLS session
 * know (RFC 9266), so neither proof can be used on another connection or for another pod.
 */
#ifndef COXSWAIN_COMM_CREW_HELLO_H
#define COXSWAIN_COMM_CREW_HELLO_H

#include <stdint.h>

#include "common/error.h"
#include "worker/comm/crew_key.h"
#include "worker/comm/tls_session.h"

#define POD_JOB_UID_MAX 128
#define POD_ROLE_MAX 32

struct pod_identity {
    char job_uid[POD_JOB_UID_MAX]; /* "": started by hand */
    char role[POD_ROLE_MAX];
    uint32_t index, attempt, incarnation;
};

/* The identity that this process sends in its hello. Set it before the first connection; it is empty until then. */
void pod_identity_set_own(const struct pod_identity *identity);
const struct pod_identity *pod_identity_own(void);

/* Random bytes that the caller chooses for each connection. They later identify the connection to gRPC's side (rpc_connections_find). */
#define CONNECTION_TOKEN_BYTES 16

struct crew_hello {
    struct pod_identity pod;
    unsigned char token[CONNECTION_TOKEN_BYTES];
};

#define CREW_HELLO_BYTES (8 + 12 + POD_ROLE_MAX + POD_JOB_UID_MAX + CONNECTION_TOKEN_BYTES + CREW_PROOF_BYTES)
/* `binding`: that of the TLS session (tls_session_binding). Without a key the proof is all zeros. */
void crew_hello_encode(const struct crew_hello *hello, const unsigned char binding[TLS_BINDING_BYTES],
                       unsigned char ret_bytes[CREW_HELLO_BYTES]);
/* ERROR_CORRUPT if it is not a hello; ERROR_FORBIDDEN, with a reason, if the pod is of another job or does not prove the key. */
int crew_hello_decode(const unsigned char bytes[CREW_HELLO_BYTES], const unsigned char binding[TLS_BINDING_BYTES],
                      struct crew_hello *ret_hello, struct error *error);

/* The accepting side's answer to the hello `bytes`: accepted (`welcome`) or refused, with that side's proof of the key. */
#define CREW_HELLO_ANSWER_BYTES (1 + CREW_PROOF_BYTES)
void crew_hello_answer_encode(bool welcome, const unsigned char bytes[CREW_HELLO_BYTES],
                              const unsigned char binding[TLS_BINDING_BYTES],
                              unsigned char ret_answer[CREW_HELLO_ANSWER_BYTES]);
/* ERROR_FORBIDDEN if the answer is a refusal or does not prove the key. */
int crew_hello_answer_check(const unsigned char answer[CREW_HELLO_ANSWER_BYTES],
                            const unsigned char bytes[CREW_HELLO_BYTES], const unsigned char binding[TLS_BINDING_BYTES],
                            struct error *error);

#endif
