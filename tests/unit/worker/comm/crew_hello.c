/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_hello.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define KEY "the key of this job"

static const unsigned char session[TLS_BINDING_BYTES] = {1}, other_session[TLS_BINDING_BYTES] = {2};
static const struct crew_hello pod = {
    .pod = {.job_uid = "uid", .role = "worker", .index = 1, .attempt = 2, .incarnation = 3}, .token = {7}};

static void make_hello(unsigned char bytes[CREW_HELLO_BYTES])
{
    crew_key_set(KEY, strlen(KEY));
    pod_identity_set_own(&(struct pod_identity){.job_uid = "uid"});
    crew_hello_encode(&pod, session, bytes);
}

static enum error_kind judge(const unsigned char bytes[CREW_HELLO_BYTES], const unsigned char *binding)
{
    struct crew_hello heard;
    struct error error = ERROR_INIT;
    (void)crew_hello_decode(bytes, binding, &heard, &error);
    return error.kind;
}

Test(crew_hello, names_the_pod_and_is_answered)
{
    unsigned char bytes[CREW_HELLO_BYTES], answer[CREW_HELLO_ANSWER_BYTES];
    struct crew_hello heard;
    make_hello(bytes);
    cr_assert_eq(crew_hello_decode(bytes, session, &heard, NULL), 0);
    cr_assert_eq(memcmp(&heard, &pod, sizeof pod), 0);
    crew_hello_answer_encode(true, bytes, session, answer);
    cr_assert_eq(crew_hello_answer_check(answer, bytes, session, NULL), 0);
    cr_assert_eq(crew_hello_answer_check(answer, bytes, other_session, NULL), -1, "an answer of another session");
    crew_hello_answer_encode(false, bytes, session, answer);
    cr_assert_eq(crew_hello_answer_check(answer, bytes, session, NULL), -1, "a refusal");
}

Test(crew_hello, serves_in_its_own_session_only)
{
    unsigned char bytes[CREW_HELLO_BYTES];
    make_hello(bytes);
    cr_assert_eq(judge(bytes, other_session), ERROR_FORBIDDEN);
}

Test(crew_hello, a_changed_byte_anywhere_is_refused)
{
    unsigned char bytes[CREW_HELLO_BYTES];
    make_hello(bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        cr_expect_neq(judge(bytes, session), ERROR_NONE, "byte %zu", i);
        bytes[i] ^= 1;
    }
    cr_assert_eq(judge(bytes, session), ERROR_NONE);
}

Test(crew_hello, another_job_or_key_is_refused)
{
    unsigned char bytes[CREW_HELLO_BYTES];
    make_hello(bytes);
    pod_identity_set_own(&(struct pod_identity){.job_uid = "another uid"});
    cr_assert_eq(judge(bytes, session), ERROR_FORBIDDEN);
    pod_identity_set_own(&pod.pod);
    crew_key_set("the key of another one", 22);
    cr_assert_eq(judge(bytes, session), ERROR_FORBIDDEN);
}

Test(crew_hello, text_without_an_end_is_refused)
{
    unsigned char bytes[CREW_HELLO_BYTES];
    make_hello(bytes);
    crew_key_set(NULL, 0);
    memset(bytes + 20, 'x', POD_ROLE_MAX);
    cr_assert_eq(judge(bytes, session), ERROR_CORRUPT);
}
