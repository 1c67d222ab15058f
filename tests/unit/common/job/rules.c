/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/rules.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/job/training_sweep.h"
#include "tests/corpus/cases.h"

#define RULES_MAX 160

struct breaking {
    struct json *(*find)(const struct json *object, const struct json *old);
    bool broken[RULES_MAX];
};

/* Marks the rules whose message a bad manifest of the corpus draws. */
static void mark_broken(const char *name, const char *at, bool by_operator, const struct json *object, void *context)
{
    struct breaking *breaking = context;
    (void)name, (void)at, (void)by_operator;
    SCOPED_JSON *violations = breaking->find(object, NULL);
    for (const struct json *item = json_first(violations); item; item = json_next(item))
        for (int i = 0; rules[i].name; i++)
            breaking->broken[i] |= strcmp(json_string_at(item, "message", ""), rules[i].message) == 0;
}

/* So that every rule has its verdict compared with a real API server's (tests/cluster/manifest-verdicts). */
Test(rules, each_is_broken_by_a_manifest_of_the_corpus)
{
    struct breaking breaking = {.find = training_job_violations};
    for (int i = 0; rules[i].name; i++)
        cr_assert_lt(i, RULES_MAX);
    cr_assert_eq(corpus_each("tests/corpus/manifests/bad.yaml", mark_broken, &breaking, NULL), 0);
    breaking.find = training_sweep_violations;
    cr_assert_eq(corpus_each("tests/corpus/sweeps/bad.yaml", mark_broken, &breaking, NULL), 0);
    for (int i = 0; rules[i].name; i++)
        cr_expect(breaking.broken[i] || rules[i].on_update || rules[i].cel == NULL, "rule %s", rules[i].name);
}

Test(rules, names_of_jobs)
{
    cr_expect(job_name_holds("digits-2"));
    cr_expect(job_name_holds("abcdefghijabcdefghijabcdefghijabcdefghij"));
    cr_expect(!job_name_holds("abcdefghijabcdefghijabcdefghijabcdefghijk"));
    cr_expect(!job_name_holds("2-digits"));
    cr_expect(!job_name_holds("digits."));
    cr_expect(!job_name_holds(""));
}
