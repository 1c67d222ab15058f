/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_admission.h"

#include <unistd.h>

#include "common/contract/state_directory.h"
#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/cli/control_plane.h"
#include "operator/cli/run_check.h"

/* Whether the API server accepts the job of a trial. */
static int check_trial(const struct manifest *manifest, const struct training_sweep *sweep, int64_t trial,
                       struct kube_client *client, const bool *interrupted, struct error *error)
{
    SCOPED_JSON *documents = json_new_array();
    struct json *job;
    struct manifest_result result;
    if (run_check_trial(manifest, sweep, trial, &job, error) < 0)
        return -1;
    const struct manifest alone = {.documents = documents,
                                   .job = json_append(documents, job),
                                   .name = manifest->name,
                                   .name_space = manifest->name_space};
    return manifest_apply(&alone, client, false, interrupted, &result, error);
}

/* Whether the API server accepts one of the trials that start together. If it accepts none, the error is about the first one. */
static int check_trials(const struct manifest *manifest, struct kube_client *client, const bool *interrupted,
                        struct error *error)
{
    SCOPED(training_sweep_release) struct training_sweep sweep;
    struct error first = ERROR_INIT;
    if (training_sweep_parse(manifest->effective, &sweep, NULL) < 0)
        return 0;
    for (int64_t trial = 0; trial < sweep.parallelism && trial < SWEEP_STARTS_MAX; trial++) {
        struct error cause = ERROR_INIT;
        if (check_trial(manifest, &sweep, trial, client, interrupted, trial == 0 ? &first : &cause) == 0)
            return 0;
    }
    *error = first;
    return error_wrap(error, "the first trials");
}

static int apply(const struct manifest *manifest, struct control_plane *plane, struct event_loop *loop,
                 const bool *interrupted, struct error *error)
{
    SCOPED(kube_config_release) struct kube_config config = {.server = NULL};
    struct kube_client_options options = {.user_agent = "cox"};
    struct kube_client *client;
    struct manifest_result applied;
    if (kube_config_load(control_plane_kubeconfig(plane), NULL, &config, error) < 0 ||
        kube_client_new(loop, &config, &options, &client, error) < 0)
        return -1;
    int result = manifest_apply(manifest, client, false, interrupted, &applied, error);
    if (result == 0 && manifest->is_sweep)
        result = check_trials(manifest, client, interrupted, error);
    kube_client_free(client);
    return result;
}

int run_admission_check(const struct manifest *manifest, const char *state, struct event_loop *loop,
                        const bool *interrupted, struct error *error)
{
    SCOPED_FREE char *directory = memory_format("%s/" STATE_CHECK, state);
    struct control_plane_options options = {.state_directory = directory, .api_only = true};
    struct control_plane *plane;
    SCOPED_CLOSE int lock = -1;
    if (control_plane_lock(loop, state, STATE_TO_CLEAR, STATE_RUNNING, &lock, error) < 0)
        return -1;
    directory_remove(directory); /* left there by a command that was killed */
    if (control_plane_start(loop, &options, &plane, error) < 0)
        return -1;
    int result = apply(manifest, plane, loop, interrupted, error);
    control_plane_end(plane);
    directory_remove(directory);
    return result;
}
