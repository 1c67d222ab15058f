/* SPDX-License-Identifier: Apache-2.0
 *
 * Which request meets which fault: faultproxy's own rules. (The proxy is no room, so they are compiled in here.)
 */
#include <criterion/criterion.h>

#include "common/json.h"
#include "tests/faultproxy/rules.c"

static struct rules parse(const char *text)
{
    struct rules rules;
    struct error error = ERROR_INIT;
    cr_assert_eq(rules_parse(text, strlen(text), 1, &rules, &error), 0, "%s", error.message);
    return rules;
}

Test(faultproxy_rules, the_first_that_fits_strikes)
{
    struct rules rules = parse("[{\"method\":\"GET\",\"path\":\"/pods\",\"watch\":true,\"fault\":\"expire\"},"
                               "{\"path\":\"/pods\",\"fault\":\"none\"},"
                               "{\"fault\":\"status\",\"status\":429,\"retryAfter\":1}]");
    cr_assert_eq(rules_choose(&rules, "GET", "/api/v1/pods", true)->fault, FAULT_EXPIRE);
    cr_assert_null(rules_choose(&rules, "POST", "/api/v1/pods", false), "an exception before a general rule");
    const struct rule *general = rules_choose(&rules, "GET", "/api/v1/services", false);
    cr_assert_eq(general->fault, FAULT_STATUS);
    cr_assert_eq(general->status, 429);
    cr_assert_eq(general->retry_after, 1);
    rules_release(&rules);
}

Test(faultproxy_rules, strike_so_many_times)
{
    struct rules rules = parse("[{\"fault\":\"hang\",\"times\":2}]");
    cr_assert(rules_choose(&rules, "GET", "/", false));
    cr_assert(rules_choose(&rules, "GET", "/", false));
    cr_assert_null(rules_choose(&rules, "GET", "/", false));
    rules_release(&rules);
}

Test(faultproxy_rules, the_same_seed_gives_the_same_choices)
{
    struct rules left = parse("[{\"fault\":\"hang\",\"probability\":0.3}]");
    struct rules right = parse("[{\"fault\":\"hang\",\"probability\":0.3}]");
    int struck = 0;
    for (int i = 0; i < 1000; i++) {
        bool strikes = rules_choose(&left, "GET", "/", false) != NULL;
        cr_assert_eq(strikes, rules_choose(&right, "GET", "/", false) != NULL);
        struck += strikes;
    }
    cr_assert(struck > 250 && struck < 350, "%d of 1000 at 0.3", struck);
    rules_release(&left);
    rules_release(&right);
}

Test(faultproxy_rules, what_they_do_not_know_is_said)
{
    static const char *const wrong[] = {"[{\"fault\":\"earthquake\"}]", "{\"fault\":\"hang\"}", "[{}]", "[1]", "["};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct rules rules;
        struct error error = ERROR_INIT;
        cr_assert_lt(rules_parse(wrong[i], strlen(wrong[i]), 1, &rules, &error), 0, "%s", wrong[i]);
        cr_assert_eq(error.kind, ERROR_INVALID);
        cr_assert(*error.message);
    }
}
