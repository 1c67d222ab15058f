/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <glob.h>
#include <string.h>

#include "common/job/training_job.h"
#include "common/yaml.h"

/* tests/corpus/manifests gets the same verdicts from a real API server that has the generated CRD. */
#define CEILING (1024 * 1024)
#define EXPECT "# expect: "

static struct json *manifest(const char *path, char **ret_text)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    SCOPED_BUFFER text;
    buffer_init(&text, CEILING);
    cr_assert(buffer_read_file(&text, path, &error) == 0, "%s", error.message);
    cr_assert(yaml_parse(text.data, text.length, CEILING, &documents, &error) == 0, "%s: %s", path, error.message);
    cr_assert(json_count(documents) == 1, "%s", path);
    struct json *object = json_detach(documents, json_first(documents));
    json_free(documents);
    *ret_text = buffer_take(&text);
    return object;
}

static void expect_good(const char *path)
{
    SCOPED_FREE char *text = NULL;
    SCOPED_JSON *object = manifest(path, &text);
    SCOPED_JSON *violations = training_job_violations(object, object);
    const struct json *first = json_first(violations);
    cr_expect(first == NULL, "%s: %s: %s", path, json_string_at(first, "field", ""),
              json_string_at(first, "message", ""));
    struct training_job job;
    struct error error = ERROR_INIT;
    cr_expect(training_job_parse(object, &job, &error) == 0, "%s: %s", path, error.message);
    training_job_release(&job);
}

static void expect_bad(const char *path)
{
    SCOPED_FREE char *text = NULL;
    SCOPED_JSON *object = manifest(path, &text);
    cr_assert(strncmp(text, EXPECT, strlen(EXPECT)) == 0, "%s lacks its first line", path);
    text[strcspn(text, "\n")] = '\0';
    SCOPED_JSON *violations = training_job_violations(object, NULL);
    bool found = false;
    for (const struct json *item = json_first(violations); item; item = json_next(item))
        found |= strcmp(json_string_at(item, "field", ""), text + strlen(EXPECT)) == 0;
    cr_expect(found, "%s: %zu causes, none of them %s; the first is %s", path, json_count(violations),
              text + strlen(EXPECT), json_string_at(json_first(violations), "field", "-"));
    struct training_job job;
    struct error error = ERROR_INIT;
    cr_expect(training_job_parse(object, &job, &error) < 0 && error.kind == ERROR_INVALID, "%s", path);
    training_job_release(&job);
}

static void expect_all(const char *pattern, void (*expect)(const char *path))
{
    glob_t files;
    cr_assert(glob(pattern, 0, NULL, &files) == 0, "nothing at %s; run the tests from the repository's root", pattern);
    for (size_t i = 0; i < files.gl_pathc; i++)
        expect(files.gl_pathv[i]);
    globfree(&files);
}

Test(corpus, good_manifests_pass)
{
    expect_all("tests/corpus/manifests/good/*.yaml", expect_good);
}

Test(corpus, the_examples_pass)
{
    expect_all("deploy/examples/*.yaml", expect_good);
    expect_all("deploy/examples/foreign/*.yaml", expect_good);
}

Test(corpus, bad_manifests_are_refused_at_the_right_field)
{
    expect_all("tests/corpus/manifests/bad/*.yaml", expect_bad);
}
