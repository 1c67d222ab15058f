/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_condition.h"

#include "job_json.h"

static bool has_news(const char *text)
{
    SCOPED_JSON *job = json_of(text);
    return job_has_news(job);
}

Test(job_condition, a_spec_that_was_changed_since_is_news)
{
    cr_expect(has_news("{'metadata':{'generation':3},'status':{'observedGeneration':2}}"));
    cr_expect_not(has_news("{'metadata':{'generation':3},'status':{'observedGeneration':3}}"));
    cr_expect_not(has_news("{'metadata':{'generation':1},'status':{}}"));
    cr_expect_not(job_has_news(NULL));
}
