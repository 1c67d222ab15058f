/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/identity.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "worker/xla/client.h"

#define CHIEF_TIMEOUT_MAX 86400
#define GRACE_SECONDS_MAX 1000000000

/* An empty variable is an absent one. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static int read_number(const char *name, int64_t high, int64_t *number, struct error *error)
{
    const char *text = variable(name);
    char *end;
    if (text == NULL)
        return 0;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0' || value < 0 || value > high)
        return error_set(error, ERROR_INVALID, "%s: \"%.64s\" is not a number from 0 to %lld", name, text,
                         (long long)high);
    *number = value;
    return 0;
}

/* `on` keeps its value where the variable is absent. */
static int read_switch(const char *name, bool *on, struct error *error)
{
    const char *text = variable(name);
    if (text == NULL)
        return 0;
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return error_set(error, ERROR_INVALID, "%s: \"%.64s\" is neither 0 nor 1", name, text);
    *on = text[0] == '1';
    return 0;
}

/* Those that the device reads for itself are only checked here. */
static int read_switches(struct identity *identity, struct error *error)
{
    bool overlap = true, ahead = true, graphs = true, of_device;
    if (read_switch(ENV_OVERLAP, &overlap, error) < 0 || read_switch(ENV_GPU_AHEAD, &ahead, error) < 0 ||
        read_switch(ENV_GPU_GRAPHS, &graphs, error) < 0 || read_switch(ENV_GPU_LT, &of_device, error) < 0 ||
        read_switch(ENV_GPU_DNN, &of_device, error) < 0 || read_switch(ENV_GPU_PEERS, &of_device, error) < 0)
        return -1;
    identity->sums_wait_for_pass = !overlap;
    identity->waits_for_device = !ahead;
    identity->launches_singly = !graphs;
    return 0;
}

int identity_read(struct identity *ret_identity, struct error *error)
{
    struct identity identity = {
        .job_uid = variable(ENV_JOB_UID),
        .role = variable(ENV_ROLE),
        .pod_ip = variable(ENV_POD_IP),
        .checkpoint_directory = variable(ENV_CHECKPOINT_DIR),
        .checkpoint_s3 = variable(ENV_CHECKPOINT_S3),
        .export_s3 = variable(ENV_EXPORT_S3),
        .storage = variable(ENV_STORAGE),
        .job = variable(ENV_JOB),
        .tf_config = variable(ENV_TF_CONFIG),
        .crew_key_file = variable(ENV_CREW_KEY_FILE),
        .crew_tls_directory = variable(ENV_CREW_TLS_DIR),
        .step_record = variable(ENV_RECORD),
        .arithmetic = variable(ENV_ARITHMETIC),
        .read_delay = variable(ENV_READ_DELAY),
        .preflight_fault = variable(ENV_PREFLIGHT_FAULT),
        .pjrt_plugin = variable(ENV_PJRT_PLUGIN),
    };
    int64_t threads = 0, cpu_devices = 0, chief_timeout = 0, grace = GRACE_SECONDS_DEFAULT, logit_rows = -1;
    if (read_number(ENV_ATTEMPT, UINT32_MAX, &identity.attempt, error) < 0 ||
        read_number(ENV_INCARNATION, UINT32_MAX, &identity.incarnation, error) < 0 ||
        read_number(ENV_INDEX, INT32_MAX, &identity.index, error) < 0 ||
        read_number(ENV_THREADS, COMPUTE_THREADS_MAX, &threads, error) < 0 || read_switches(&identity, error) < 0 ||
        read_number(ENV_PJRT_CPU_DEVICES, XLA_DEVICES_MAX, &cpu_devices, error) < 0 ||
        read_number(ENV_LOGIT_ROWS, INT32_MAX, &logit_rows, error) < 0 ||
        read_number(ENV_PAUSE_STEP, INT64_MAX, &identity.pause_step, error) < 0 ||
        read_number(ENV_CHIEF_TIMEOUT, CHIEF_TIMEOUT_MAX, &chief_timeout, error) < 0 ||
        read_number(ENV_GRACE, GRACE_SECONDS_MAX, &grace, error) < 0)
        return -1;
    identity.in_pod = identity.job_uid != NULL;
    identity.grace_ms = grace * 1000;
    identity.lost_ms = chief_timeout * 1000;
    identity.threads = (int)threads;
    identity.pjrt_cpu_devices = (unsigned)cpu_devices;
    if (logit_rows >= 0)
        identity.logit_rows = logit_rows > 0 ? logit_rows : INT64_MAX;
    if (identity.job_uid == NULL)
        identity.job_uid = "";
    if (identity.role == NULL)
        identity.role = "worker";
    *ret_identity = identity;
    return 0;
}
