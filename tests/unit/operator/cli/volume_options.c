/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/volume_options.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char job_text[] =
    "{\"spec\":{\"storage\":[{\"name\":\"digits\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}},"
    "{\"name\":\"scratch\",\"emptyDir\":{}}],\"workers\":{\"template\":{\"spec\":{\"volumes\":["
    "{\"name\":\"x\",\"persistentVolumeClaim\":{\"claimName\":\"extra\"}}]}}}}}";

static void check(const char *volume, const char *message)
{
    SCOPED_JSON *job = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(json_parse(job_text, strlen(job_text), 1 << 20, &job, NULL), 0);
    int result = volume_options_check(json_member(job, "spec"), &volume, 1, &error);
    cr_expect_eq(result, *message ? -1 : 0, "%s", volume);
    cr_expect_str_eq(error.message, message);
}

Test(volume_options, a_claim_of_the_job_and_of_a_template)
{
    check("data=/tmp", "");
    check("extra=/tmp", "");
}

Test(volume_options, an_unknown_claim_is_told_with_those_that_there_are)
{
    check("datta=/tmp", "--volume datta=/tmp: the job has no claim \"datta\" but data, extra; did you mean data?");
    check("models=/tmp", "--volume models=/tmp: the job has no claim \"models\" but data, extra");
    check("digits=/tmp", "--volume digits=/tmp: the job has no claim \"digits\" but data, extra; did you mean data?");
}

Test(volume_options, the_directory_has_to_be_there)
{
    check("data=/nonexistent", "--volume data=/nonexistent: open the directory: No such file or directory");
    check("data=/dev/null", "--volume data=/dev/null: this is not a directory");
}

static int check_data(const char *data, const char *volume, const char *directory, struct error *error)
{
    SCOPED_JSON *spec = NULL;
    char text[512];
    snprintf(text, sizeof text,
             "{\"storage\":[{\"name\":\"digits\",\"persistentVolumeClaim\":{\"claimName\":\"claim\"}},"
             "{\"name\":\"hub\",\"persistentVolumeClaim\":{\"claimName\":\"models\"},\"download\":{\"sources\":[]}},"
             "{\"name\":\"scratch\",\"emptyDir\":{}}],\"coxswain\":{\"data\":%s}}",
             data);
    cr_assert_eq(json_parse(text, strlen(text), sizeof text, &spec, NULL), 0);
    return volume_options_check_data(spec, &volume, volume ? 1 : 0, directory, error);
}

Test(volume_options, data_in_an_empty_folder_is_refused)
{
    static const char files[] = "{\"storage\":\"digits\",\"format\":\"NPY\"}";
    char directory[] = "/tmp/coxswain-volumes-XXXXXX", claim[64], file[80];
    struct error error = ERROR_INIT;
    cr_assert(mkdtemp(directory));
    snprintf(claim, sizeof claim, "%s/claim", directory);
    snprintf(file, sizeof file, "%s/X.npy", claim);
    cr_expect_eq(check_data(files, NULL, directory, &error), -1, "the folder is not there");
    cr_expect(strstr(error.message, "claim claim, which would be an empty folder without --volume") &&
                  strstr(error.message, "--volume claim=FOLDER"),
              "%s", error.message);
    cr_assert_eq(mkdir(claim, 0700), 0);
    cr_expect_eq(check_data(files, NULL, directory, NULL), -1, "the folder is empty");
    cr_expect_eq(check_data(files, "claims=/tmp", directory, NULL), -1, "another claim");
    cr_expect_eq(check_data(files, "claim=/tmp", directory, NULL), 0);
    cr_expect_eq(check_data("{\"format\":\"Synthetic\",\"storage\":\"digits\"}", NULL, directory, NULL), 0);
    cr_expect_eq(check_data("{\"storage\":\"scratch\",\"format\":\"NPY\"}", NULL, directory, NULL), 0, "no claim");
    cr_expect_eq(check_data("{\"storage\":\"hub\",\"format\":\"NPY\"}", NULL, directory, NULL), 0, "downloaded");
    cr_expect_eq(check_data("{\"storage\":\"digits\",\"format\":\"NPY\"}},\"workers\":{\"template\":{\"spec\":{"
                            "\"initContainers\":[{}]}}",
                            NULL, directory, NULL),
                 0, "an init container may bring the files");
    FILE *written = fopen(file, "w");
    cr_assert(written && fclose(written) == 0);
    cr_expect_eq(check_data(files, NULL, directory, NULL), 0);
    cr_expect(unlink(file) == 0 && rmdir(claim) == 0 && rmdir(directory) == 0);
}
