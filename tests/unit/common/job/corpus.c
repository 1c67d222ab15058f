/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <glob.h>
#include <string.h>
#include <strings.h>

#include "common/job/enum_words.h"
#include "common/job/training_sweep.h"
#include "common/yaml.h"

/* tests/corpus/manifests and tests/corpus/sweeps get the same verdicts from a real API server that has the generated CRD. */
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

static void expect_good_sweep(const char *path)
{
    SCOPED_FREE char *text = NULL;
    SCOPED_JSON *object = manifest(path, &text);
    SCOPED_JSON *violations = training_sweep_violations(object, object);
    const struct json *first = json_first(violations);
    cr_expect(first == NULL, "%s: %s: %s", path, json_string_at(first, "field", ""),
              json_string_at(first, "message", ""));
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    cr_expect(training_sweep_parse(object, &sweep, &error) == 0, "%s: %s", path, error.message);
    training_sweep_release(&sweep);
}

static void expect_bad_sweep(const char *path)
{
    SCOPED_FREE char *text = NULL;
    SCOPED_JSON *object = manifest(path, &text);
    cr_assert(strncmp(text, EXPECT, strlen(EXPECT)) == 0, "%s lacks its first line", path);
    text[strcspn(text, "\n")] = '\0';
    SCOPED_JSON *violations = training_sweep_violations(object, NULL);
    cr_expect_eq(json_count(violations), 1, "%s: %zu causes", path, json_count(violations));
    cr_expect_str_eq(json_string_at(json_first(violations), "field", ""), text + strlen(EXPECT), "%s", path);
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    cr_expect(training_sweep_parse(object, &sweep, &error) < 0 && error.kind == ERROR_INVALID, "%s", path);
    training_sweep_release(&sweep);
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
    expect_all("deploy/examples/kueue/queued.yaml", expect_good);
    expect_all("deploy/examples/claims/claims.yaml", expect_good);
}

/* deploy/examples/NAME.yaml has the job NAME, and foreign/NAME.yaml too, by its framework first: a user finds one by the other, and
 * no two of them share a checkpoint directory. */
static void expect_name(const char *path)
{
    SCOPED_FREE char *text = NULL;
    SCOPED_JSON *object = manifest(path, &text);
    const char *name = json_string_at(object, "metadata.name", ""), *file = strrchr(path, '/') + 1;
    size_t length = strlen(name);
    cr_expect(strncmp(file, name, length) == 0 && strcmp(file + length, ".yaml") == 0, "%s has the job %s", path, name);
    const char *directory = json_string_at(object, "spec.coxswain.checkpoint.path", name);
    cr_expect(strcmp(directory, name) == 0, "%s saves to %s", path, directory);
}

static void expect_framework(const char *path)
{
    SCOPED_FREE char *text = NULL;
    SCOPED_JSON *object = manifest(path, &text);
    const char *framework = framework_words[spec_framework(json_member(object, "spec"))];
    const char *file = strrchr(path, '/') + 1;
    size_t length = strlen(framework);
    cr_expect(length && strncasecmp(file, framework, length) == 0 && file[length] == '-',
              "%s does not begin with its framework, %s", path, framework);
}

Test(corpus, the_examples_are_called_as_their_files)
{
    expect_all("deploy/examples/*.yaml", expect_name);
    expect_all("deploy/examples/kueue/queued.yaml", expect_name);
    expect_all("deploy/examples/claims/claims.yaml", expect_name);
    expect_all("deploy/examples/foreign/*.yaml", expect_name);
    expect_all("deploy/examples/foreign/*.yaml", expect_framework);
}

Test(corpus, bad_manifests_are_refused_at_the_right_field)
{
    expect_all("tests/corpus/manifests/bad/*.yaml", expect_bad);
}

Test(corpus, sweeps)
{
    expect_all("tests/corpus/sweeps/good/*.yaml", expect_good_sweep);
    expect_all("deploy/examples/sweeps/*.yaml", expect_good_sweep);
    expect_all("deploy/examples/sweeps/*.yaml", expect_name);
    expect_all("tests/corpus/sweeps/bad/*.yaml", expect_bad_sweep);
}
