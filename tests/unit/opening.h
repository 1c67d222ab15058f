/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens data connections by hand, message by message, as a member or a stranger does.
 */
#ifndef COXSWAIN_UNIT_OPENING_H
#define COXSWAIN_UNIT_OPENING_H

#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/comm/frame.h"
#include "worker/comm/socket_address.h"

static inline int opening_connect(const char *host, uint16_t port)
{
    union socket_address where;
    cr_assert_eq(socket_address_parse(host, port, &where, NULL), 0);
    int dialler = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(dialler, &where.any, socket_address_size(&where)), 0);
    return dialler;
}

static inline void opening_hear_challenge(int dialler, struct opening *opening)
{
    cr_assert_eq(recv(dialler, opening->challenge, CHALLENGE_BYTES, MSG_WAITALL), CHALLENGE_BYTES);
    cr_assert_eq(challenge_check(opening, NULL), 0);
}

static inline void opening_send_greeting(int dialler, const struct opening *opening)
{
    cr_assert_eq(send(dialler, opening->greeting, GREETING_BYTES, MSG_NOSIGNAL), GREETING_BYTES);
}

static inline void opening_greet(int dialler, struct opening *opening, const struct greeting *greeting)
{
    opening_hear_challenge(dialler, opening);
    cr_assert_eq(greeting_encode(greeting, opening, NULL), 0);
    opening_send_greeting(dialler, opening);
}

/* 0: the connection ended without an answer. */
static inline enum greeting_answer opening_hear_answer(int dialler, const struct opening *opening)
{
    unsigned char bytes[GREETING_ANSWER_BYTES];
    enum greeting_answer answer;
    if (recv(dialler, bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes)
        return 0;
    cr_assert_eq(greeting_answer_decode(bytes, opening, &answer, NULL), 0);
    return answer;
}

/* The whole of it, on a connection of its own. */
static inline enum greeting_answer opening_answer_to(const char *host, uint16_t port, const struct greeting *greeting)
{
    struct opening opening;
    int dialler = opening_connect(host, port);
    opening_greet(dialler, &opening, greeting);
    enum greeting_answer answer = opening_hear_answer(dialler, &opening);
    close(dialler);
    return answer;
}

/* True: the other side ends the connection without another byte. */
static inline bool opening_is_ended(int dialler)
{
    unsigned char byte;
    return recv(dialler, &byte, 1, 0) <= 0;
}

#endif
