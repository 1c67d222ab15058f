/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/rules.h"

#include <glob.h>

#include "common/job/training_sweep.h"
#include "manifest.h"

#define RULES_MAX 160

/* Marks the rules whose message a bad manifest of the corpus draws. */
static void mark_broken(const char *path, struct json *(*find)(const struct json *object, const struct json *old),
                        bool broken[RULES_MAX])
{
    SCOPED_BUFFER text;
    buffer_init(&text, 1024 * 1024);
    cr_assert(buffer_read_file(&text, path, NULL) == 0);
    SCOPED_JSON *object = manifest_value(buffer_text(&text));
    SCOPED_JSON *violations = find(object, NULL);
    for (const struct json *item = json_first(violations); item; item = json_next(item))
        for (int i = 0; rules[i].name; i++)
            broken[i] |= strcmp(json_string_at(item, "message", ""), rules[i].message) == 0;
}

static void mark_all_broken(const char *pattern,
                            struct json *(*find)(const struct json *object, const struct json *old),
                            bool broken[RULES_MAX])
{
    glob_t files;
    cr_assert(glob(pattern, 0, NULL, &files) == 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        mark_broken(files.gl_pathv[i], find, broken);
    globfree(&files);
}

/* So that every rule has its verdict compared with a real API server's (tests/cluster/manifest-verdicts). */
Test(rules, each_is_broken_by_a_manifest_of_the_corpus)
{
    bool broken[RULES_MAX] = {false};
    for (int i = 0; rules[i].name; i++)
        cr_assert_lt(i, RULES_MAX);
    mark_all_broken("tests/corpus/manifests/bad/*.yaml", training_job_violations, broken);
    mark_all_broken("tests/corpus/sweeps/bad/*.yaml", training_sweep_violations, broken);
    for (int i = 0; rules[i].name; i++)
        cr_expect(broken[i] || rules[i].on_update || rules[i].cel == NULL, "rule %s", rules[i].name);
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
