/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_hello.h"

#include <string.h>

#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"

#define CREW_HELLO_MAGIC 0x31495843u /* "CXI1" */
#define ROLE_AT (8 + 12)
#define JOB_UID_AT (ROLE_AT + POD_ROLE_MAX)
#define TOKEN_AT (JOB_UID_AT + POD_JOB_UID_MAX)
#define PROOF_AT (TOKEN_AT + CONNECTION_TOKEN_BYTES)
#define ANSWER_WELCOME 1

static struct pod_identity own;

void pod_identity_set_own(const struct pod_identity *identity)
{
    own = *identity;
}

const struct pod_identity *pod_identity_own(void)
{
    return &own;
}

/* The bytes that both proofs cover: the hello and the session's binding. */
struct proven {
    unsigned char hello[PROOF_AT];
    unsigned char binding[TLS_BINDING_BYTES];
};

static struct proven proven_of(const unsigned char *bytes, const unsigned char binding[TLS_BINDING_BYTES])
{
    struct proven proven;
    memcpy(proven.hello, bytes, PROOF_AT);
    memcpy(proven.binding, binding, TLS_BINDING_BYTES);
    return proven;
}

void crew_hello_encode(const struct crew_hello *hello, const unsigned char binding[TLS_BINDING_BYTES],
                       unsigned char ret_bytes[CREW_HELLO_BYTES])
{
    const struct pod_identity *pod = &hello->pod;
    memset(ret_bytes, 0, CREW_HELLO_BYTES);
    crew_protocol_put(ret_bytes, CREW_HELLO_MAGIC);
    put_u32(ret_bytes + 8, pod->index);
    put_u32(ret_bytes + 12, pod->attempt);
    put_u32(ret_bytes + 16, pod->incarnation);
    memcpy(ret_bytes + ROLE_AT, pod->role, strnlen(pod->role, POD_ROLE_MAX - 1));
    memcpy(ret_bytes + JOB_UID_AT, pod->job_uid, strnlen(pod->job_uid, POD_JOB_UID_MAX - 1));
    memcpy(ret_bytes + TOKEN_AT, hello->token, CONNECTION_TOKEN_BYTES);
    struct proven proven = proven_of(ret_bytes, binding);
    crew_key_prove("caller", &proven, sizeof proven, ret_bytes + PROOF_AT);
}

int crew_hello_decode(const unsigned char bytes[CREW_HELLO_BYTES], const unsigned char binding[TLS_BINDING_BYTES],
                      struct crew_hello *ret_hello, struct error *error)
{
    struct proven proven = proven_of(bytes, binding);
    struct crew_hello hello = {
        .pod = {.index = get_u32(bytes + 8), .attempt = get_u32(bytes + 12), .incarnation = get_u32(bytes + 16)}};
    memcpy(hello.pod.role, bytes + ROLE_AT, POD_ROLE_MAX);
    memcpy(hello.pod.job_uid, bytes + JOB_UID_AT, POD_JOB_UID_MAX);
    memcpy(hello.token, bytes + TOKEN_AT, CONNECTION_TOKEN_BYTES);
    /* Other protocols pass: the messages that follow tell the other side what to do about it. */
    if (get_u32(bytes) != CREW_HELLO_MAGIC || memchr(hello.pod.role, '\0', POD_ROLE_MAX) == NULL ||
        memchr(hello.pod.job_uid, '\0', POD_JOB_UID_MAX) == NULL)
        return error_set(error, ERROR_CORRUPT, "it did not begin with the hello message that pods of a crew send");
    if (!crew_key_accepts("caller", &proven, sizeof proven, bytes + PROOF_AT))
        return error_set(error, ERROR_FORBIDDEN, "it does not have the job's key");
    if (strcmp(hello.pod.job_uid, own.job_uid) != 0)
        return error_set(error, ERROR_FORBIDDEN, "it belongs to another job");
    *ret_hello = hello;
    return 0;
}

void crew_hello_answer_encode(bool welcome, const unsigned char bytes[CREW_HELLO_BYTES],
                              const unsigned char binding[TLS_BINDING_BYTES],
                              unsigned char ret_answer[CREW_HELLO_ANSWER_BYTES])
{
    struct proven proven = proven_of(bytes, binding);
    memset(ret_answer, 0, CREW_HELLO_ANSWER_BYTES);
    if (!welcome)
        return;
    ret_answer[0] = ANSWER_WELCOME;
    crew_key_prove("called", &proven, sizeof proven, ret_answer + 1);
}

int crew_hello_answer_check(const unsigned char answer[CREW_HELLO_ANSWER_BYTES],
                            const unsigned char bytes[CREW_HELLO_BYTES], const unsigned char binding[TLS_BINDING_BYTES],
                            struct error *error)
{
    struct proven proven = proven_of(bytes, binding);
    if (answer[0] != ANSWER_WELCOME)
        return error_set(error, ERROR_FORBIDDEN,
                         "the peer refused the connection: it does not accept this pod as one of its job");
    if (!crew_key_accepts("called", &proven, sizeof proven, answer + 1))
        return error_set(error, ERROR_FORBIDDEN, "the peer does not have the job's key");
    return 0;
}
