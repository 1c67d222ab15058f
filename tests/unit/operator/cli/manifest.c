/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/manifest.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/cox-manifest-XXXXXX";

static void write_file(const char *text)
{
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    cr_assert_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
}

static void check_refused(const char *text, const char *words)
{
    struct manifest manifest;
    struct error error = ERROR_INIT;
    write_file(text);
    int result = manifest_read(path, "default", &manifest, &error);
    unlink(path);
    cr_assert_lt(result, 0);
    cr_assert(strstr(error.message, words), "%s", error.message);
    cr_assert(strstr(error.message, path), "the file is named: %s", error.message);
}

#define JOB "apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\n"

Test(manifest, the_job_among_other_documents)
{
    struct manifest manifest;
    write_file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" JOB);
    cr_assert_eq(manifest_read(path, "lab", &manifest, NULL), 0);
    unlink(path);
    cr_assert_eq(json_count(manifest.documents), 2);
    cr_assert_str_eq(manifest.name, "a");
    cr_assert_str_eq(manifest.name_space, "lab");
    manifest_release(&manifest);
}

Test(manifest, without_a_job)
{
    check_refused("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "no TrainingJob");
}

Test(manifest, with_two_jobs)
{
    check_refused(JOB "---\n" JOB, "more than one");
}

Test(manifest, without_a_name)
{
    check_refused("apiVersion: coxswain.dev/v1alpha1\nkind: TrainingJob\n", "no metadata.name");
}

Test(manifest, that_is_no_yaml)
{
    check_refused("kind: TrainingJob\nspec: {a: [1\nb: 2\n", "line 3");
}

Test(manifest, that_is_no_object)
{
    check_refused("- 1\n- 2\n", "no apiVersion");
}
