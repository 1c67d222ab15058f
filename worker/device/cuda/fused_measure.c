/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cuda/fused_plan.h"
#include "worker/device/cuda/quickest_launch.h"

#define CANDIDATES_MAX 8

struct candidates {
    const struct fused_plan *plan;
    const struct cuda_product *product;
    cublasLtMatmulHeuristicResult_t found[CANDIDATES_MAX];
};

static bool launch(const struct cuda_call *call, const void *context, int way)
{
    const struct candidates *candidates = context;
    const cublasLtMatmulHeuristicResult_t *found = &candidates->found[way];
    if (found->state != CUBLAS_STATUS_SUCCESS || found->workspaceSize > CUDA_SCRATCH_BYTES)
        return false;
    const cublasStatus_t status = fused_plan_launch(call->owner, candidates->plan, candidates->product, &found->algo);
    return !fused_is_refused(status) && cublas_check(call, "cublasLtMatmul", status);
}

static void note(struct algorithm_search *search, const struct fused_plan *plan, const cublasLtMatmulAlgo_t *algorithm,
                 bool is_first)
{
    struct algorithm_choice choice = {.kind = ALGORITHM_PRODUCT};
    memcpy(choice.shape, &plan->key, sizeof choice.shape);
    memcpy(choice.algorithm, algorithm->data, sizeof choice.algorithm);
    quickest_note(search, &choice, is_first);
}

void fused_plan_measure(const struct cuda_call *call, struct fused_plan *plan, const struct fused_product *job)
{
    struct algorithm_search *search = call->owner->search;
    struct algorithm_tally *tally = &search->tallies[ALGORITHM_PRODUCT];
    struct candidates candidates = {.plan = plan, .product = &job->product};
    if (plan->searched)
        return;
    plan->searched = true;
    if (quickest_is_over(search, ALGORITHM_PRODUCT)) {
        tally->left_out++;
        return;
    }
    const int count = fused_plan_candidates(call, plan, CANDIDATES_MAX, candidates.found);
    if (!fused_plan_point(call, plan, job))
        return;
    const int chosen = quickest_launch(call, count, launch, &candidates, &tally->ms);
    if (chosen >= 0)
        note(search, plan, &candidates.found[chosen].algo, chosen == 0);
}
