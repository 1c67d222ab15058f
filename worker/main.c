/* SPDX-License-Identifier: Apache-2.0
 *
 * coxswain-worker: one process of a job's crew. It says what it will do, does it,
 * and ends with a code of common/contract/exit_code.h and, unless it is 0, one
 * line of cause and remedy.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/contract/environment.h"
#include "common/contract/exit_code.h"
#include "common/log.h"
#include "common/version.h"
#include "worker/data/read_delay.h"
#include "worker/data/step_record.h"
#include "worker/device/communicator.h"
#include "worker/inference/describe.h"
#include "worker/inference/generate.h"
#include "worker/inference/predict.h"
#include "worker/launch/arguments.h"
#include "worker/launch/identity.h"
#include "worker/launch/job_source.h"
#include "worker/report/termination.h"
#include "worker/train/announce.h"
#include "worker/train/compilation.h"
#include "worker/train/compute_threads.h"
#include "worker/train/job_check.h"
#include "worker/train/leaving.h"
#include "worker/train/loop.h"
#include "worker/train/parameter_server.h"
#include "worker/train/stop.h"
#include "worker/train/trainer.h"
#include "worker/xla/client.h"

static int train(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                 enum exit_code *ret_code, struct error *error)
{
    struct trainer trainer;
    int result = trainer_open(&trainer, arguments, identity, job, ret_code, error);
    if (result == 0) {
        announce_plan(&trainer);
        result = trainer_serves_parameters(&trainer) ? parameter_server_run(&trainer, ret_code, error)
                                                     : loop_run(&trainer, ret_code, error);
    }
    if (result < 0 && *ret_code == EXIT_CODE_LEFT)
        leaving_settle(&trainer, error);
    int wanted_threads = trainer.xla.wanted_threads;
    if (result < 0 && trainer.member != NULL)
        wanted_threads = member_wanted_threads(trainer.member);
    trainer_release(&trainer);
    if (wanted_threads > 0 && stop_is_asked())
        *ret_code = EXIT_CODE_LEFT; /* a new process would not know */
    else if (wanted_threads > 0)
        compute_threads_begin_anew(wanted_threads, arguments, identity);
    return result;
}

static int take_part(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                     enum exit_code *ret_code, struct error *error)
{
    read_delay_follow(identity->read_delay);
    int result = step_record_open(identity->step_record, identity->role, identity->index, (uint32_t)identity->attempt,
                                  (uint32_t)identity->incarnation, error);
    if (result == 0)
        result = train(arguments, identity, job, ret_code, error);
    else
        *ret_code = EXIT_CODE_BAD_JOB;
    step_record_close();
    return result;
}

static int use(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
               enum exit_code *ret_code, struct error *error)
{
    if (arguments->describe_model)
        return describe_run(job, ret_code, error);
    if (arguments->check_job)
        return job_check_run(arguments, identity, job, ret_code, error);
    if (arguments_generate(&arguments->inference))
        return generate_run(arguments, identity, job, ret_code, error);
    if (arguments->inference.example)
        return predict_run(arguments, identity, job, ret_code, error);
    if (stop_watch(error) == 0)
        return take_part(arguments, identity, job, ret_code, error);
    *ret_code = EXIT_CODE_INTERNAL;
    return -1;
}

/* Returns how many GPUs XLA computes with: to train or compile, those of the job; to use a model, one, if this machine has GPUs and no
 * other plugin is named. */
static unsigned gpus_for(const struct identity *identity, const struct job_document *job, bool uses_model)
{
    SCOPED_BUFFER here = BUFFER_INIT(4096);
    if (job->devices.type != DEVICE_TYPE_GPU)
        return 0;
    if (!uses_model)
        return (unsigned)job->devices.count;
    xla_append_gpus(&here);
    bool may = job->devices.plugin != NULL || identity->pjrt_plugin == NULL;
    return identity->pjrt_cpu_devices > 0 || (may && here.length > 0);
}

/* For XLA, also in the process that compiles. Call it before any thread starts. */
static void set_environment(const struct arguments *arguments, struct identity *identity,
                            const struct job_document *job, bool trains)
{
    if (job->devices.plugin != NULL) { /* replaces the image's variable */
        (void)setenv(ENV_PJRT_PLUGIN, job->devices.plugin, 1);
        identity->pjrt_plugin = job->devices.plugin;
    }
    xla_set_gpus(gpus_for(identity, job, arguments_use_model(arguments)),
                 job->training.determinism == DETERMINISM_CREW);
    compute_threads_set_environment(arguments, identity, trains ? job : NULL);
}

/* Starts no thread before the environment is set. */
static int run(const struct arguments *arguments, enum exit_code *ret_code, struct error *error)
{
    struct identity identity;
    struct job_document job;
    /* A process that only uses a model has nothing to save, so signals end it as usual. */
    bool trains = !arguments_use_model(arguments) && !arguments_compile(arguments);
    if (trains && stop_block(error) < 0) {
        *ret_code = EXIT_CODE_INTERNAL;
        return -1;
    }
    *ret_code = EXIT_CODE_BAD_JOB;
    if (identity_read(&identity, error) < 0)
        return -1;
    if (arguments->program != NULL) {
        compute_threads_set_environment(arguments, &identity, NULL);
        return compilation_run_apart(arguments, &identity, ret_code, error);
    }
    if (job_source_read(arguments, &identity, &job, error) < 0)
        return -1;
    if (job_document_uses_plugin(&job) || arguments->compile_model)
        set_environment(arguments, &identity, &job, trains);
    if (arguments->compile_model) {
        int compiled = compilation_run_model(arguments, &identity, &job, ret_code, error);
        job_document_release(&job);
        return compiled;
    }
    int result = use(arguments, &identity, &job, ret_code, error);
    job_document_release(&job);
    return result;
}

/* A model may be used in the container of a worker that lives (kubectl exec): the termination message is that worker's. */
static void tell_end(bool uses_model, enum exit_code code, const struct error *error)
{
    if (uses_model)
        termination_tell(code, error);
    else
        termination_report(code, error);
}

int main(int argument_count, char **argument_values)
{
    struct error error = ERROR_INIT;
    struct arguments arguments;
    enum exit_code code = EXIT_CODE_INTERNAL; /* of what fails without naming a better one */
    /* A peer that closes its connection is an error to handle, not a reason to die. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* and a file at its size limit: a save that fails does not end training */
    if (arguments_parse(argument_count, argument_values, &arguments, &error) < 0) {
        tell_end(arguments_name_use(argument_count, argument_values), EXIT_CODE_BAD_JOB, &error);
        return EXIT_CODE_BAD_JOB;
    }
    if (arguments.help || arguments.version) {
        puts(arguments.help ? arguments_usage : "coxswain-worker " COXSWAIN_VERSION);
        return EXIT_CODE_DONE;
    }
    log_configure(LOG_INFO, arguments.format);
    communicator_set_environment();
    bool uses_model = arguments_use_model(&arguments);
    int result = run(&arguments, &code, &error);
    if (result == 0 || (uses_model && error.os_error == EPIPE)) /* the reader of the output, such as head, has enough */
        code = EXIT_CODE_DONE;
    else
        tell_end(uses_model || arguments_compile(&arguments), code, &error);
    /* A library of the GPU's may wait for a lost peer, and exit() for the library. */
    if (code == EXIT_CODE_LOST_CREW || communicator_is_stuck()) {
        (void)fflush(NULL);
        _exit((int)code);
    }
    return (int)code;
}
