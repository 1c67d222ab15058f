/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/gate.h"

#include <stdio.h>
#include <string.h>

int ui_gate_init(struct ui_gate *gate, struct error *error)
{
    *gate = (struct ui_gate){.token = ""};
    return token_draw(gate->token, error);
}

void ui_gate_set_port(struct ui_gate *gate, uint16_t port)
{
    snprintf(gate->cookie, sizeof gate->cookie, "cox-ui-%u", port);
}

/* "a=1; cox-ui-8080=…; b=2" */
static bool has_cookie(const struct ui_gate *gate, const char *cookies)
{
    size_t name = strlen(gate->cookie);
    for (const char *at = cookies; at && *at; at += strspn(at, "; ")) {
        size_t length = strcspn(at, ";");
        if (length > name && strncmp(at, gate->cookie, name) == 0 && at[name] == '=' &&
            token_matches(gate->token, at + name + 1, length - name - 1))
            return true;
        at += length;
    }
    return false;
}

/* With any port, since a port may be forwarded to this one. */
static bool is_loopback(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(host, names[i], length) != 0)
            continue;
        const char *rest = host + length;
        if (*rest == '\0' || (*rest == ':' && strspn(rest + 1, "0123456789") == strlen(rest + 1)))
            return true;
    }
    return false;
}

static bool is_own_origin(const struct ui_request *request)
{
    static const char scheme[] = "http://";
    const char *origin = request->origin;
    return origin && strncmp(origin, scheme, strlen(scheme)) == 0 &&
           strcmp(origin + strlen(scheme), request->host) == 0;
}

/* "none": the user has entered the address. */
static bool comes_from_elsewhere(const struct ui_request *request)
{
    const char *site = request->fetch_site;
    return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

enum ui_verdict ui_gate_judge(const struct ui_gate *gate, const struct ui_request *request)
{
    bool changes = strcmp(request->method, "POST") == 0;
    if (!is_loopback(request->host))
        return UI_WRONG_HOST;
    if (!changes && strcmp(request->method, "GET") != 0)
        return UI_WRONG_METHOD;
    if (request->origin && !is_own_origin(request))
        return UI_WRONG_ORIGIN;
    if (!changes && request->token)
        return token_matches(gate->token, request->token, strlen(request->token)) ? UI_ADMITTED_BY_URL : UI_WRONG_TOKEN;
    if (!has_cookie(gate, request->cookies))
        return UI_WRONG_TOKEN;
    return (changes && !request->origin) || comes_from_elsewhere(request) ? UI_WRONG_ORIGIN : UI_ADMITTED;
}

int ui_verdict_status(enum ui_verdict verdict, const char **ret_sentence)
{
    static const struct {
        int status;
        const char *sentence;
    } rows[] = {
        [UI_ADMITTED] = {200, ""},
        [UI_ADMITTED_BY_URL] = {200, ""},
        [UI_WRONG_HOST] = {421, "The page is served to this machine only: open it as http://127.0.0.1 or "
                                "http://localhost, with the port that cox ui printed."},
        [UI_WRONG_TOKEN] = {401, "The token is missing, or it is one of an earlier cox ui: open the whole URL that cox "
                                 "ui printed in its terminal."},
        [UI_WRONG_ORIGIN] = {403, "Only the page of cox ui itself may ask for this: open the URL that cox ui printed, "
                                  "and use the page's buttons."},
        [UI_WRONG_METHOD] = {405, "Only GET and POST are answered here."},
    };
    *ret_sentence = rows[verdict].sentence;
    return rows[verdict].status;
}
