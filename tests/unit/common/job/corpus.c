/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <glob.h>
#include <string.h>
#include <strings.h>

#include "common/job/enum_words.h"
#include "common/job/training_sweep.h"
#include "tests/corpus/cases.h"

/* tests/corpus/manifests and tests/corpus/sweeps get the same verdicts from a real API server that has the generated CRD. */

static struct json *manifest(const char *path)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    SCOPED_BUFFER text = BUFFER_INIT(CORPUS_MAX);
    cr_assert(buffer_read_file(&text, path, &error) == 0, "%s", error.message);
    cr_assert(yaml_parse(text.data, text.length, CORPUS_MAX, &documents, &error) == 0, "%s: %s", path, error.message);
    cr_assert(json_count(documents) == 1, "%s", path);
    struct json *object = json_detach(documents, json_first(documents));
    json_free(documents);
    return object;
}

static void expect_good(const char *path)
{
    SCOPED_JSON *object = manifest(path);
    SCOPED_JSON *violations = training_job_violations(object, object);
    const struct json *first = json_first(violations);
    cr_expect(first == NULL, "%s: %s: %s", path, json_string_at(first, "field", ""),
              json_string_at(first, "message", ""));
    struct training_job job;
    struct error error = ERROR_INIT;
    cr_expect(training_job_parse(object, &job, &error) == 0, "%s: %s", path, error.message);
    training_job_release(&job);
}

static void expect_bad(const char *name, const char *at, bool by_operator, const struct json *object, void *context)
{
    (void)by_operator, (void)context;
    SCOPED_JSON *violations = training_job_violations(object, NULL);
    bool found = false;
    for (const struct json *item = json_first(violations); item; item = json_next(item))
        found |= at && strcmp(json_string_at(item, "field", ""), at) == 0;
    cr_expect(at ? found : json_count(violations) == 0, "%s: %zu causes, the first is %s", name, json_count(violations),
              json_string_at(json_first(violations), "field", "-"));
    struct training_job job;
    struct error error = ERROR_INIT;
    cr_expect_eq(training_job_parse(object, &job, &error), at ? -1 : 0, "%s: %s", name, error.message);
    cr_expect_eq(error.kind, at ? ERROR_INVALID : ERROR_NONE, "%s", name);
    training_job_release(&job);
}

static void expect_good_sweep(const char *path)
{
    SCOPED_JSON *object = manifest(path);
    SCOPED_JSON *violations = training_sweep_violations(object, object);
    const struct json *first = json_first(violations);
    cr_expect(first == NULL, "%s: %s: %s", path, json_string_at(first, "field", ""),
              json_string_at(first, "message", ""));
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    cr_expect(training_sweep_parse(object, &sweep, &error) == 0, "%s: %s", path, error.message);
    training_sweep_release(&sweep);
}

static void expect_bad_sweep(const char *name, const char *at, bool by_operator, const struct json *object,
                             void *context)
{
    (void)by_operator, (void)context;
    SCOPED_JSON *violations = training_sweep_violations(object, NULL);
    cr_expect_eq(json_count(violations), at ? 1 : 0, "%s: %zu causes", name, json_count(violations));
    cr_expect_str_eq(json_string_at(json_first(violations), "field", ""), at ? at : "", "%s", name);
    struct training_sweep sweep;
    struct error error = ERROR_INIT;
    cr_expect_eq(training_sweep_parse(object, &sweep, &error), at ? -1 : 0, "%s: %s", name, error.message);
    cr_expect_eq(error.kind, at ? ERROR_INVALID : ERROR_NONE, "%s", name);
    training_sweep_release(&sweep);
}

static void expect_each(const char *path, corpus_case *expect)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(corpus_each(path, expect, NULL, &error), 0, "%s: %s", path, error.message);
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
    SCOPED_JSON *object = manifest(path);
    const char *name = json_string_at(object, "metadata.name", ""), *file = strrchr(path, '/') + 1;
    size_t length = strlen(name);
    cr_expect(strncmp(file, name, length) == 0 && strcmp(file + length, ".yaml") == 0, "%s has the job %s", path, name);
    const char *directory = json_string_at(object, "spec.coxswain.checkpoint.path", name);
    cr_expect(strcmp(directory, name) == 0, "%s saves to %s", path, directory);
}

static void expect_framework(const char *path)
{
    SCOPED_JSON *object = manifest(path);
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
    expect_each("tests/corpus/manifests/bad.yaml", expect_bad);
}

Test(corpus, sweeps)
{
    expect_all("tests/corpus/sweeps/good/*.yaml", expect_good_sweep);
    expect_all("deploy/examples/sweeps/*.yaml", expect_good_sweep);
    expect_all("deploy/examples/sweeps/*.yaml", expect_name);
    expect_each("tests/corpus/sweeps/bad.yaml", expect_bad_sweep);
}
