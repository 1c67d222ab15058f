/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_score.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "common/yaml.h"

/* `worker`: spec.coxswain. Its newest evaluation, of step 60, had the loss 0.5, and its best one, of step 40, the loss 0.25. */
static void expect_loss(const char *worker, double loss, int64_t best_step)
{
    SCOPED_FREE char *yaml = memory_format(
        "{spec: {coxswain: %s}, status: {progress: {metrics: [{name: validationLoss, value: '0.5', step: 60}, "
        "{name: bestValidationLoss, value: '0.25', step: 40}]}}}",
        worker);
    SCOPED_JSON *documents = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(yaml_parse(yaml, strlen(yaml), 4096, &documents, &error), 0, "%s", error.message);
    const struct job_score score = job_score(json_first(documents));
    cr_expect_float_eq(score.loss, loss, 1e-12, "%s", worker);
    cr_expect_eq(score.best_step, best_step, "%s", worker);
}

Test(job_score, is_that_of_the_weights_with_which_predict_predicts)
{
    expect_loss("{checkpoint: {keepBest: true}, export: {path: a, weights: Best}}", 0.25, 40);
    expect_loss("{checkpoint: {keepBest: true}, export: {path: a}}", 0.5, -1);
    expect_loss("{checkpoint: {keepBest: true}}", 0.25, 40);
    expect_loss("{checkpoint: {everySteps: 5}}", 0.5, -1);
}
