/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_condition.h"

#include "job_json.h"

static bool has_news(const char *text)
{
    SCOPED_JSON *job = json_of(text);
    return job_has_news(job);
}

Test(job_condition, a_sweep_that_was_interrupted_runs_no_trials)
{
    SCOPED_JSON *sweep =
        json_of("{'status':{'trials':{'running':2},'conditions':[{'type':'Running','status':'True'}]}}");
    SCOPED_JSON *complete = json_of("{'status':{'conditions':[{'type':'Complete','status':'True'}]}}");
    job_mark_interrupted(sweep, NULL);
    job_mark_interrupted(complete, NULL);
    cr_expect_str_eq(job_state(sweep), JOB_INTERRUPTED);
    cr_expect_eq(json_integer_at(sweep, "status.trials.running", -1), 0);
    cr_expect_str_eq(job_state(complete), "Complete");
}

Test(job_condition, a_job_whose_loss_is_not_finite_is_shown_as_diverged)
{
    SCOPED_JSON *diverged =
        json_of("{'status':{'conditions':[{'type':'Failed','status':'True','reason':'Diverged'}]}}");
    SCOPED_JSON *failed = json_of("{'status':{'conditions':[{'type':'Failed','status':'True','reason':'Other'}]}}");
    cr_expect_str_eq(job_state(diverged), "Failed");
    cr_expect_str_eq(job_state_shown(diverged), "Diverged");
    cr_expect_str_eq(job_state_shown(failed), "Failed");
}

Test(job_condition, a_spec_that_was_changed_since_is_news)
{
    cr_expect(has_news("{'metadata':{'generation':3},'status':{'observedGeneration':2}}"));
    cr_expect_not(has_news("{'metadata':{'generation':3},'status':{'observedGeneration':3}}"));
    cr_expect_not(has_news("{'metadata':{'generation':1},'status':{}}"));
    cr_expect_not(job_has_news(NULL));
}

Test(job_condition, a_job_that_a_user_has_suspended_stays_suspended_when_its_run_ends)
{
    SCOPED_JSON *job = json_of("{'spec':{'suspend':true},'status':{'conditions':[{'type':'Running','status':'True'},"
                               "{'type':'Suspended','status':'False','reason':'Suspending'}]}}");
    job_mark_interrupted(job, NULL);
    cr_expect_str_eq(job_state(job), "Suspended");
    cr_expect(job_condition_true(job, JOB_INTERRUPTED) && !job_condition_true(job, "Running"));
}
