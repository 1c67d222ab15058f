/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/job_source.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct identity by_hand = {.job_uid = ""};

static int read_job(const char *path, struct error *error)
{
    struct job_document job;
    const struct arguments arguments = {.job_file = path};
    if (job_source_read(&arguments, &by_hand, &job, error) < 0)
        return -1;
    job_document_release(&job);
    return 0;
}

Test(job_source, takes_every_example)
{
    glob_t files;
    cr_assert_eq(glob("deploy/examples/*.yaml", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct error error = ERROR_INIT;
        cr_expect_eq(read_job(files.gl_pathv[i], &error), 0, "%s: %s", files.gl_pathv[i], error.message);
    }
    globfree(&files);
}

#define JOB                                                                                                            \
    "apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n"                                \
    "  coxswain:\n    model: {preset: mlp}\n    data: {format: Synthetic, examples: 8}\n    strategy: {type: "         \
    "OneDevice}\n"                                                                                                     \
    "    training: {steps: 1, batchSize: 1, optimizer: {type: SGD}}\n"

static void refused(const char *rest, const char *words)
{
    struct error error = ERROR_INIT;
    char path[] = "/tmp/coxswain-job-XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    dprintf(file, JOB "%s", rest);
    close(file);
    int result = read_job(path, &error);
    unlink(path);
    cr_expect_eq(result, words[0] ? -1 : 0, "%s", error.message);
    cr_expect(strstr(error.message, words), "%s", error.message);
}

Test(job_source, leaves_to_the_operator_what_is_its_own)
{
    refused("  runPolicy: {backoffLimit: 3}\n  image: mine\n  workers: {template: {}}\n", "");
}

Test(job_source, what_nobody_knows_is_refused)
{
    refused("  roll: []\n", "roll: is not a field that is known here");
}

Test(job_source, what_would_be_another_job_is_refused)
{
    refused("    encryption: {type: TLS}\n", "TLS needs a certificate");
}
