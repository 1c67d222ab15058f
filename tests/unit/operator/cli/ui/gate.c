/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/gate.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"

static struct ui_gate gate_new(void)
{
    struct ui_gate gate;
    cr_assert_eq(ui_gate_init(&gate, NULL), 0);
    ui_gate_set_port(&gate, 8123);
    return gate;
}

static char *cookies_of(const struct ui_gate *gate)
{
    return memory_format("theme=dark; cox-ui-8123=%s; cox-ui-9=x", gate->token);
}

Test(ui_gate, every_token_is_another)
{
    struct ui_gate one = gate_new(), other = gate_new();
    cr_expect_eq(strlen(one.token), TOKEN_LENGTH);
    cr_expect_eq(strspn(one.token, "0123456789abcdef"), TOKEN_LENGTH);
    cr_expect_str_neq(one.token, other.token);
}

Test(ui_gate, the_url_admits_once_and_the_cookie_from_then_on)
{
    struct ui_gate gate = gate_new();
    struct ui_request request = {.method = "GET", .host = "127.0.0.1:8123", .token = gate.token};
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_ADMITTED_BY_URL);
    SCOPED_FREE char *cookies = cookies_of(&gate);
    request.token = NULL;
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_TOKEN);
    request.cookies = cookies;
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_ADMITTED);
}

Test(ui_gate, tokens_that_are_nearly_right_are_wrong)
{
    struct ui_gate gate = gate_new();
    struct ui_request request = {.method = "GET", .host = "localhost:8123"};
    SCOPED_FREE char *longer = memory_format("%s0", gate.token);
    SCOPED_FREE char *shorter = memory_copy_bytes(gate.token, TOKEN_LENGTH - 1);
    const char *tokens[] = {"", longer, shorter, "0"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        request.token = tokens[i];
        cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_TOKEN, "token %s", tokens[i]);
    }
    request.token = NULL;
    const char *forms[] = {"cox-ui-8123=%s0", "cox-ui-812=%s", "xcox-ui-8123=%s", "cox-ui-8123%s", "cox-ui-8123="};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char cookies[128];
        const char *place = strstr(forms[i], "%s");
        snprintf(cookies, sizeof cookies, "%.*s%s%s", place ? (int)(place - forms[i]) : 99, forms[i],
                 place ? gate.token : "", place ? place + 2 : "");
        request.cookies = cookies;
        cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_TOKEN, "cookies %s", cookies);
    }
}

/* A page of another port of this host sends the cookie, and no Origin for an image. */
Test(ui_gate, reads_for_another_page_are_refused)
{
    static const struct {
        const char *site;
        enum ui_verdict verdict;
    } rows[] = {{NULL, UI_ADMITTED},
                {"same-origin", UI_ADMITTED},
                {"none", UI_ADMITTED},
                {"same-site", UI_WRONG_ORIGIN},
                {"cross-site", UI_WRONG_ORIGIN}};
    struct ui_gate gate = gate_new();
    SCOPED_FREE char *cookies = cookies_of(&gate);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ui_request request = {
            .method = "GET", .host = "127.0.0.1:8123", .cookies = cookies, .fetch_site = rows[i].site};
        cr_expect_eq(ui_gate_judge(&gate, &request), rows[i].verdict, "%s", rows[i].site ? rows[i].site : "not given");
        request.token = gate.token; /* the URL may be opened from anywhere */
        cr_expect_eq(ui_gate_judge(&gate, &request), UI_ADMITTED_BY_URL);
    }
}

Test(ui_gate, only_names_of_this_machine_are_hosts)
{
    struct ui_gate gate = gate_new();
    static const struct {
        const char *host;
        bool holds;
    } rows[] = {{"127.0.0.1:8123", true},
                {"localhost", true},
                {"[::1]:9000", true},
                {"localhost:9000", true},
                {NULL, false},
                {"", false},
                {"evil.example", false},
                {"evil.example:8123", false},
                {"127.0.0.1.evil.example", false},
                {"localhost:8123x", false},
                {"localhosts", false},
                {"10.0.0.1:8123", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ui_request request = {.method = "GET", .host = rows[i].host, .token = gate.token};
        cr_expect_eq(ui_gate_judge(&gate, &request), rows[i].holds ? UI_ADMITTED_BY_URL : UI_WRONG_HOST, "host %s",
                     rows[i].host ? rows[i].host : "none");
    }
}

Test(ui_gate, only_the_page_itself_changes_something)
{
    struct ui_gate gate = gate_new();
    SCOPED_FREE char *cookies = cookies_of(&gate);
    struct ui_request request = {.method = "POST", .host = "localhost:8123", .cookies = cookies};
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_ORIGIN, "no origin");
    request.origin = "http://localhost:9000";
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_ORIGIN, "another port");
    request.origin = "null";
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_ORIGIN);
    request.origin = "http://localhost:8123";
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_ADMITTED);
    request.cookies = NULL;
    request.token = gate.token;
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_TOKEN, "the URL's token is for the first page only");
    request.method = "PUT";
    request.cookies = cookies;
    cr_expect_eq(ui_gate_judge(&gate, &request), UI_WRONG_METHOD);
}

Test(ui_gate, a_refusal_says_what_to_do)
{
    static const int statuses[] = {
        [UI_WRONG_HOST] = 421, [UI_WRONG_TOKEN] = 401, [UI_WRONG_ORIGIN] = 403, [UI_WRONG_METHOD] = 405};
    for (enum ui_verdict verdict = UI_WRONG_HOST; verdict <= UI_WRONG_METHOD; verdict++) {
        const char *sentence;
        cr_expect_eq(ui_verdict_status(verdict, &sentence), statuses[verdict]);
        cr_expect(strlen(sentence) > 20);
    }
}
