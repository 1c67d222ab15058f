/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/introduction.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define KEY "the key of this job"

static const unsigned char session[TLS_BINDING_BYTES] = {1}, other_session[TLS_BINDING_BYTES] = {2};
static const struct introduction pod = {
    .pod = {.job_uid = "uid", .role = "worker", .index = 1, .attempt = 2, .incarnation = 3}, .token = {7}};

static void introduce(unsigned char bytes[INTRODUCTION_BYTES])
{
    crew_key_set(KEY, strlen(KEY));
    pod_identity_set_own(&(struct pod_identity){.job_uid = "uid"});
    introduction_encode(&pod, session, bytes);
}

static enum error_kind judge(const unsigned char bytes[INTRODUCTION_BYTES], const unsigned char *binding)
{
    struct introduction heard;
    struct error error = ERROR_INIT;
    (void)introduction_decode(bytes, binding, &heard, &error);
    return error.kind;
}

Test(introduction, names_the_pod_and_is_answered)
{
    unsigned char bytes[INTRODUCTION_BYTES], answer[INTRODUCTION_ANSWER_BYTES];
    struct introduction heard;
    introduce(bytes);
    cr_assert_eq(introduction_decode(bytes, session, &heard, NULL), 0);
    cr_assert_eq(memcmp(&heard, &pod, sizeof pod), 0);
    introduction_answer_encode(true, bytes, session, answer);
    cr_assert_eq(introduction_answer_check(answer, bytes, session, NULL), 0);
    cr_assert_eq(introduction_answer_check(answer, bytes, other_session, NULL), -1, "an answer of another session");
    introduction_answer_encode(false, bytes, session, answer);
    cr_assert_eq(introduction_answer_check(answer, bytes, session, NULL), -1, "a refusal");
}

Test(introduction, serves_in_its_own_session_only)
{
    unsigned char bytes[INTRODUCTION_BYTES];
    introduce(bytes);
    cr_assert_eq(judge(bytes, other_session), ERROR_FORBIDDEN);
}

Test(introduction, a_changed_byte_anywhere_is_refused)
{
    unsigned char bytes[INTRODUCTION_BYTES];
    introduce(bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        cr_expect_neq(judge(bytes, session), ERROR_NONE, "byte %zu", i);
        bytes[i] ^= 1;
    }
    cr_assert_eq(judge(bytes, session), ERROR_NONE);
}

Test(introduction, another_job_or_key_is_refused)
{
    unsigned char bytes[INTRODUCTION_BYTES];
    introduce(bytes);
    pod_identity_set_own(&(struct pod_identity){.job_uid = "another uid"});
    cr_assert_eq(judge(bytes, session), ERROR_FORBIDDEN);
    pod_identity_set_own(&pod.pod);
    crew_key_set("the key of another one", 22);
    cr_assert_eq(judge(bytes, session), ERROR_FORBIDDEN);
}

Test(introduction, text_without_an_end_is_refused)
{
    unsigned char bytes[INTRODUCTION_BYTES];
    introduce(bytes);
    crew_key_set(NULL, 0);
    memset(bytes + 20, 'x', POD_ROLE_MAX);
    cr_assert_eq(judge(bytes, session), ERROR_CORRUPT);
}
