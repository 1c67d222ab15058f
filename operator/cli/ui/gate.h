/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which requests `cox ui` answers. The page has the rights of its user's kubeconfig, so a request must show the random token
 * that `cox ui` has printed: in the URL that is opened first, then in a cookie. Other web pages that the browser has open must not reach
 * it either: the Host header must be loopback (DNS rebinding), a request that changes something must come from the page itself (Origin),
 * and so must every request for which the browser says where it comes from (Sec-Fetch-Site). Without the last check, a page of another port
 * of this machine could make `cox ui` work, since a browser sends cookies to all ports of a host. Does no I/O.
 */
#ifndef COXSWAIN_CLI_UI_GATE_H
#define COXSWAIN_CLI_UI_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/token.h"

struct ui_gate {
    char token[TOKEN_LENGTH + 1];
    char cookie[32]; /* its name; browsers share cookies between the ports of a host */
};

/* Draws a token. Call ui_gate_set_port before the first request. */
int ui_gate_init(struct ui_gate *gate, struct error *error);
void ui_gate_set_port(struct ui_gate *gate, uint16_t port);

/* The parts of an HTTP request that decide whether it is answered; NULL: the request does not have it. */
struct ui_request {
    const char *method, *host, *origin, *fetch_site, *cookies, *token; /* token: of the query */
};

enum ui_verdict {
    UI_ADMITTED,
    UI_ADMITTED_BY_URL, /* the answer is to set the cookie */
    UI_WRONG_HOST,      /* 421 */
    UI_WRONG_TOKEN,     /* 401 */
    UI_WRONG_ORIGIN,    /* 403 */
    UI_WRONG_METHOD,    /* 405 */
};

enum ui_verdict ui_gate_judge(const struct ui_gate *gate, const struct ui_request *request);

/* Returns the status of a refusal, and in `ret_sentence` what the user is to do. */
int ui_verdict_status(enum ui_verdict verdict, const char **ret_sentence);

#endif
