/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ends of a session in one process, over a pair of sockets. Each end reads its key or certificate when it is made.
 */
#include "worker/comm/tls_session.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/crew_files.h"
#include "worker/comm/crew_hello.h"
#include "worker/comm/crew_key.h"

struct ends {
    int sockets[2];
    struct tls_session *dials, *answers;
    struct error error; /* of the end that refused first */
};

static void ends_open(struct ends *ends, const char *dials_with, const char *answers_with)
{
    *ends = (struct ends){0};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends->sockets), 0);
    cr_assert_eq(crew_certificates_open(dials_with, NULL), 0);
    cr_assert_eq(tls_session_new(ends->sockets[0], false, &ends->dials, NULL), 0);
    cr_assert_eq(crew_certificates_open(answers_with, NULL), 0);
    cr_assert_eq(tls_session_new(ends->sockets[1], true, &ends->answers, NULL), 0);
}

static void ends_close(struct ends *ends)
{
    tls_session_free(ends->dials);
    tls_session_free(ends->answers);
    close(ends->sockets[0]);
    close(ends->sockets[1]);
}

/* True when both know each other. */
static bool shake_hands(struct ends *ends)
{
    int dials = 0, answers = 0;
    for (int round = 0; round < 100 && dials >= 0 && answers >= 0 && !(dials && answers); round++) {
        if (dials == 0)
            dials = tls_session_handshake(ends->dials, &ends->error);
        if (answers == 0 && dials >= 0)
            answers = tls_session_handshake(ends->answers, &ends->error);
    }
    return dials > 0 && answers > 0;
}

Test(tls_session, carries_bytes_both_ways_and_waits_where_it_must)
{
    struct crew_files files;
    struct ends ends;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    ends_open(&ends, files.directory, files.directory);
    cr_assert_eq(tls_session_events(ends.answers, false, false), POLLIN, "a handshake waits for the other side");
    cr_assert(shake_hands(&ends), "%s", ends.error.message);

    enum { LENGTH = 3000000 };
    unsigned char *sent = malloc(LENGTH), *got = malloc(LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        sent[i] = (unsigned char)(i * 2654435761u >> 13);
    bool closed = false, full = false;
    size_t written = 0, read_ = 0;
    while (read_ < LENGTH && !closed) {
        const struct iovec parts[] = {
            {sent + written, (LENGTH - written) / 3},
            {sent + written + (LENGTH - written) / 3, LENGTH - written - (LENGTH - written) / 3}};
        size_t step = tls_session_write(ends.dials, parts, 2, &closed);
        written += step;
        full |= step == 0;
        if (step == 0) /* the socket is full: the same bytes come again */
            for (size_t more; (more = tls_session_read(ends.answers, got + read_, LENGTH - read_, &closed)) > 0;)
                read_ += more;
    }
    cr_assert(full, "the socket was never full: the test shows less than it should");
    cr_assert_not(closed);
    cr_assert_eq(memcmp(sent, got, LENGTH), 0);
    cr_assert_eq(tls_session_events(ends.dials, false, false), 0);
    ends_close(&ends);
    free(sent);
    free(got);
    crew_files_close(&files);
}

Test(tls_session, reading_ahead_takes_several_records_at_once_and_says_so)
{
    struct crew_files files;
    struct ends ends;
    bool closed = false;
    char word[4] = "word", got[16];
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    ends_open(&ends, files.directory, files.directory);
    tls_session_read_ahead(ends.answers);
    cr_assert(shake_hands(&ends), "%s", ends.error.message);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(tls_session_write(ends.dials, &(struct iovec){word, sizeof word}, 1, &closed), 4);
    struct pollfd waits = {.fd = ends.sockets[1], .events = POLLIN};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(tls_session_read(ends.answers, got, sizeof got, &closed), 4);
        cr_assert_eq(poll(&waits, 1, 0), 0, "all has been taken from the socket");
        cr_assert_eq(tls_session_has_unread(ends.answers), i < 2);
    }
    cr_assert_eq(tls_session_read(ends.answers, got, sizeof got, &closed), 0);
    cr_assert_not(closed);
    ends_close(&ends);
    crew_files_close(&files);
}

Test(tls_session, another_jobs_certificate_is_refused)
{
    struct crew_files ours, theirs;
    struct ends ends;
    crew_files_open(&ours);
    crew_files_open(&theirs);
    crew_files_make(&ours, CREW_TLS_EVEN, -1);
    crew_files_make(&theirs, CREW_TLS_EVEN, -1);
    ends_open(&ends, theirs.directory, ours.directory);
    cr_assert_not(shake_hands(&ends));
    cr_assert_eq(ends.error.kind, ERROR_FORBIDDEN);
    cr_assert(strstr(ends.error.message, "not this job's"), "%s", ends.error.message);
    cr_assert_eq(tls_session_handshake(ends.answers, &ends.error), -1);
    cr_assert(strstr(ends.error.message, "does not trust"), "%s", ends.error.message);
    ends_close(&ends);
    crew_files_close(&theirs);
    crew_files_close(&ours);
}

Test(tls_session, a_peer_without_tls_is_refused)
{
    struct crew_files files;
    struct ends ends;
    bool closed = false;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    ends_open(&ends, files.directory, files.directory);
    char noise[4096] = "a greeting of days gone by";
    cr_assert_eq(send(ends.sockets[0], noise, sizeof noise, 0), (ssize_t)sizeof noise);
    cr_assert_eq(tls_session_handshake(ends.answers, &ends.error), -1);
    ends_close(&ends);

    ends_open(&ends, files.directory, files.directory); /* and bytes changed on their way */
    cr_assert(shake_hands(&ends));
    cr_assert_eq(send(ends.sockets[0], noise, sizeof noise, 0), (ssize_t)sizeof noise);
    cr_assert_eq(tls_session_read(ends.answers, noise, sizeof noise, &closed), 0);
    cr_assert(closed);
    ends_close(&ends);
    crew_files_close(&files);
}

/* A pod that has the next generation's file a minute before the other still presents the present one, which both have. */
Test(tls_session, generations_follow_each_other_without_a_refusal)
{
    struct crew_files early, late;
    struct ends ends;
    char copy[256];
    crew_files_open(&early);
    crew_files_open(&late);
    crew_files_make(&early, CREW_TLS_EVEN, -1000);
    crew_files_make(&early, CREW_TLS_ODD, -10);
    snprintf(copy, sizeof copy, "cp %s/* %s/", early.directory, late.directory);
    cr_assert_eq(system(copy), 0);
    crew_files_make(&early, CREW_TLS_EVEN, 1000); /* put into its place, and not seen by the other yet */
    ends_open(&ends, early.directory, late.directory);
    cr_assert(shake_hands(&ends), "%s", ends.error.message);
    ends_close(&ends);
    ends_open(&ends, late.directory, early.directory);
    cr_assert(shake_hands(&ends), "%s", ends.error.message);
    ends_close(&ends);
    crew_files_close(&late);
    crew_files_close(&early);
}

/* ---------------------------------------------------------------- by the job's key */

Test(tls_session, without_certificates_the_jobs_key_makes_a_session)
{
    struct ends ends;
    unsigned char one[TLS_BINDING_BYTES], other[TLS_BINDING_BYTES];
    crew_key_set("the key of this job", 19);
    ends_open(&ends, NULL, NULL);
    cr_assert(shake_hands(&ends), "%s", ends.error.message);
    cr_assert_eq(tls_session_binding(ends.dials, one, NULL), 0);
    cr_assert_eq(tls_session_binding(ends.answers, other, NULL), 0);
    cr_assert_eq(memcmp(one, other, sizeof one), 0);
    ends_close(&ends);
    ends_open(&ends, NULL, NULL);
    cr_assert(shake_hands(&ends), "%s", ends.error.message);
    cr_assert_eq(tls_session_binding(ends.dials, other, NULL), 0);
    cr_assert_neq(memcmp(one, other, sizeof one), 0, "each session has its own");
    ends_close(&ends);
}

/* The key and the job change after the caller has said its first words. */
static void expect_refusal(const char *job_uid, const char *key)
{
    struct ends ends;
    struct pod_identity identity = {.job_uid = "job"};
    crew_key_set("the key of this job", 19);
    pod_identity_set_own(&identity);
    ends_open(&ends, NULL, NULL);
    cr_assert_eq(tls_session_handshake(ends.dials, NULL), 0);
    crew_key_set(key, strlen(key));
    snprintf(identity.job_uid, sizeof identity.job_uid, "%s", job_uid);
    pod_identity_set_own(&identity);
    cr_assert_eq(tls_session_handshake(ends.answers, &ends.error), -1);
    cr_expect_eq(ends.error.kind, ERROR_FORBIDDEN);
    cr_expect_not_null(strstr(ends.error.message, "does not have this job's key"), "%s", ends.error.message);
    cr_assert_eq(tls_session_handshake(ends.dials, &ends.error), -1);
    cr_expect_not_null(strstr(ends.error.message, "this process does not have its job's key"), "%s",
                       ends.error.message);
    ends_close(&ends);
}

Test(tls_session, another_key_or_job_is_refused)
{
    expect_refusal("job", "the key of another one");
    expect_refusal("job", "");
    expect_refusal("another job", "the key of this job");
}

/* An attacker without the key cannot use a certificate instead, which the client would not check. */
Test(tls_session, a_server_with_a_certificate_in_place_of_the_key_is_refused)
{
    struct crew_files files;
    struct ends ends;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -1);
    ends_open(&ends, NULL, files.directory);
    cr_assert_not(shake_hands(&ends));
    cr_assert_eq(ends.error.kind, ERROR_FORBIDDEN, "%s", ends.error.message);
    ends_close(&ends);
    crew_files_close(&files);
}
