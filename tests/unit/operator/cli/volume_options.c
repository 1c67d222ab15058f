/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/volume_options.h"

#include <criterion/criterion.h>
#include <string.h>

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
    check("data=/dev/null", "--volume data=/dev/null: it is no directory");
}
