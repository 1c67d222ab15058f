/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/restart_scope.h"

#include <criterion/criterion.h>

Test(restart_scope, table)
{
    static const struct {
        enum framework framework;
        enum strategy_type strategy;
        bool elastic;
        enum restart_scope asked;
        enum role role;
        int64_t index;
        enum restart_scope expected;
    } rows[] = {
        {FRAMEWORK_COXSWAIN, STRATEGY_MULTI_WORKER_MIRRORED, false, RESTART_SCOPE_AUTO, ROLE_WORKER, 0,
         RESTART_SCOPE_POD},
        {FRAMEWORK_COXSWAIN, STRATEGY_MULTI_WORKER_MIRRORED, false, RESTART_SCOPE_JOB, ROLE_WORKER, 1,
         RESTART_SCOPE_JOB},
        {FRAMEWORK_COXSWAIN, STRATEGY_PARAMETER_SERVER, false, RESTART_SCOPE_AUTO, ROLE_PS, 0, RESTART_SCOPE_POD},
        {FRAMEWORK_TENSORFLOW, STRATEGY_PARAMETER_SERVER, false, RESTART_SCOPE_AUTO, ROLE_WORKER, 1, RESTART_SCOPE_POD},
        {FRAMEWORK_TENSORFLOW, STRATEGY_PARAMETER_SERVER, false, RESTART_SCOPE_AUTO, ROLE_WORKER, 0, RESTART_SCOPE_JOB},
        {FRAMEWORK_TENSORFLOW, STRATEGY_PARAMETER_SERVER, false, RESTART_SCOPE_AUTO, ROLE_EVALUATOR, 0,
         RESTART_SCOPE_POD},
        {FRAMEWORK_TENSORFLOW, STRATEGY_PARAMETER_SERVER, false, RESTART_SCOPE_AUTO, ROLE_PS, 0, RESTART_SCOPE_JOB},
        {FRAMEWORK_TENSORFLOW, STRATEGY_PARAMETER_SERVER, false, RESTART_SCOPE_AUTO, ROLE_CHIEF, 0, RESTART_SCOPE_JOB},
        {FRAMEWORK_TENSORFLOW, STRATEGY_MULTI_WORKER_MIRRORED, false, RESTART_SCOPE_AUTO, ROLE_WORKER, 1,
         RESTART_SCOPE_JOB},
        {FRAMEWORK_PYTORCH, STRATEGY_MULTI_WORKER_MIRRORED, true, RESTART_SCOPE_AUTO, ROLE_WORKER, 0,
         RESTART_SCOPE_JOB},
        {FRAMEWORK_PYTORCH, STRATEGY_MULTI_WORKER_MIRRORED, true, RESTART_SCOPE_AUTO, ROLE_WORKER, 1,
         RESTART_SCOPE_POD},
        {FRAMEWORK_PYTORCH, STRATEGY_MULTI_WORKER_MIRRORED, false, RESTART_SCOPE_AUTO, ROLE_WORKER, 1,
         RESTART_SCOPE_JOB},
        {FRAMEWORK_JAX, STRATEGY_MULTI_WORKER_MIRRORED, false, RESTART_SCOPE_AUTO, ROLE_WORKER, 1, RESTART_SCOPE_JOB},
        {FRAMEWORK_PYTORCH, STRATEGY_MULTI_WORKER_MIRRORED, false, RESTART_SCOPE_JOB, ROLE_EVALUATOR, 0,
         RESTART_SCOPE_POD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct training_job job = {.framework = rows[i].framework,
                                   .elastic = {.enabled = rows[i].elastic},
                                   .run_policy = {.restart_scope = rows[i].asked},
                                   .document = {.strategy = {.type = rows[i].strategy}},
                                   .roles = {[ROLE_PS] = {.count = rows[i].strategy == STRATEGY_PARAMETER_SERVER}}};
        cr_expect_eq(restart_scope_of(&job, rows[i].role, rows[i].index), rows[i].expected, "row %zu", i);
    }
}

Test(restart_scope, a_worker_beside_a_chief_is_no_chief)
{
    struct training_job job = {.framework = FRAMEWORK_TENSORFLOW,
                               .document = {.workers = 2},
                               .roles = {[ROLE_CHIEF] = {.count = 1}, [ROLE_PS] = {.count = 1}}};
    cr_expect_eq(restart_scope_of(&job, ROLE_WORKER, 0), RESTART_SCOPE_POD);
    cr_expect_eq(restart_scope_of(&job, ROLE_CHIEF, 0), RESTART_SCOPE_JOB);
}
