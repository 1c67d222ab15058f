/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_metric.h"

#include <criterion/criterion.h>
#include <string.h>

#include "job_json.h"

/* The error for a sweep with these members of its spec; "": none. */
static const char *refusal(const char *members)
{
    static struct error error;
    char text[1024];
    error = (struct error)ERROR_INIT;
    snprintf(text, sizeof text, "{'spec':{%s}}", members);
    SCOPED_JSON *sweep = json_of(text);
    return sweep_metric_check(sweep, &error) < 0 ? error.message : "";
}

Test(sweep_metric, one_that_is_reported)
{
    static const char *const sweeps[] = {
        "'objective':{'metric':'loss'},'template':{'coxswain':{'data':{}}}",
        "'template':{'coxswain':{'data':{'validation':{'last':10}}}}",
        "'objective':{'metric':'validationAccuracy'},'template':{'coxswain':{'data':{'validation':{'last':10}}}}",
        "'objective':{'metric':'bleu'},'template':{'pytorch':{}}",
        "'parameters':[{'path':'coxswain.data.validation.last'}],'template':{'coxswain':{'data':{}}}",
        "'template':{'trainingClass':{'name':'small'},'coxswain':{}}",
    };
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++)
        cr_expect_str_eq(refusal(sweeps[i]), "", "%s", sweeps[i]);
}

Test(sweep_metric, one_that_is_not)
{
    const struct {
        const char *sweep, *words;
    } cases[] = {
        {"'objective':{'metric':'validationAcuracy'},'template':{'coxswain':{'data':{'validation':{'last':10}}}}",
         "do not report \"validationAcuracy\" (did you mean \"validationAccuracy\"?); they report loss, and with"},
        {"'objective':{'metric':'f1'},'template':{'coxswain':{}}", "do not report \"f1\"; they report"},
        {"'template':{'coxswain':{'data':{}}}", "validationLoss needs held-out examples, and the template has no"},
        {"'objective':{'metric':'validationAccuracy'},'template':{'coxswain':{'model':{'loss':'MeanSquaredError'},"
         "'data':{'validation':{'last':10}}}}",
         "has no accuracy; take validationLoss"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(strstr(refusal(cases[i].sweep), cases[i].words), "%s", refusal(cases[i].sweep));
}
