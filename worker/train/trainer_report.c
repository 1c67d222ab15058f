/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/trainer_stages.h"

#include "common/contract/checkpoint_layout.h"
#include "common/contract/environment.h"
#include "worker/checkpoint/file.h"
#include "worker/train/port_health.h"

static int choose_http_port(const struct trainer *trainer)
{
    if (trainer->arguments->http_port != HTTP_PORT_UNSAID)
        return trainer->arguments->http_port;
    return trainer->identity->in_pod ? PORT_HTTP : -1;
}

int trainer_open_report(struct trainer *trainer, struct error *error)
{
    bool evaluates = trainer->crew.part == CREW_EVALUATES; /* it tells its results itself */
    SCOPED_FREE char *board =
        trainer->files.checkpoint_directory
            ? file_path_join(trainer->files.checkpoint_directory,
                             evaluates ? CHECKPOINT_TENSORBOARD_EVALUATOR : CHECKPOINT_TENSORBOARD)
            : NULL;
    const struct report_options options = {
        .format = trainer->arguments->format,
        .job_uid = trainer->identity->job_uid,
        .role = crew_own_seat(&trainer->crew)->role,
        .index = crew_own_seat(&trainer->crew)->index,
        .incarnation = trainer->identity->incarnation,
        .chief = trainer_is_chief(trainer) || evaluates,
        .http_address = trainer->identity->pod_ip,
        .http_port = choose_http_port(trainer),
        .tensorboard_directory = board,
        .complete_status = port_health_fill,
        .is_live = port_health_is_live,
        .unit = "examples",
    };
    if (report_open(&options, &trainer->report, error) < 0)
        return -1;
    report_phase(trainer->report, STATUS_STARTING, NULL);
    return 0;
}
