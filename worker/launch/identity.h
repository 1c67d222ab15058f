/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads which job and pod this process belongs to, and its settings, from the environment variables that the
 * operator sets in the pod (common/contract/environment.h). main.c reads it once at the start. A process
 * started by hand is worker 0 of incarnation 0; the incarnation is the number by which a superseded pod is
 * recognised.
 */
#ifndef COXSWAIN_LAUNCH_IDENTITY_H
#define COXSWAIN_LAUNCH_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* Strings point into the environment, or are static. */
struct identity {
    bool in_pod;         /* started by the operator */
    const char *job_uid; /* "" by hand */
    int64_t attempt, incarnation;
    const char *role;
    int64_t index;
    const char *pod_ip;               /* NULL: not set */
    const char *checkpoint_directory; /* NULL: not set */
    const char *checkpoint_s3;        /* COXSWAIN_CHECKPOINT_S3; NULL: checkpoints are kept in the directory alone */
    const char *export_s3;            /* COXSWAIN_EXPORT_S3; NULL: the export is written to its path alone */
    const char *storage;              /* NULL: not set */
    const char *job;                  /* the job document; NULL: not set */
    const char *tf_config;            /* NULL: not set */
    const char *crew_key_file;        /* NULL: the crew has no key */
    const char *crew_tls_directory;   /* NULL: the crew does not use TLS */
    const char *step_record;          /* COXSWAIN_RECORD; NULL: not set */
    const char *arithmetic;           /* COXSWAIN_ARITHMETIC; NULL: the best available */
    const char *read_delay;           /* COXSWAIN_READ_DELAY; NULL: not set */
    const char *preflight_fault;      /* COXSWAIN_PREFLIGHT_FAULT; NULL: not set */
    const char *pjrt_plugin;          /* devices.plugin or COXSWAIN_PJRT_PLUGIN; NULL: not set */
    unsigned pjrt_cpu_devices;        /* COXSWAIN_PJRT_CPU_DEVICES; 0: not set */
    bool launches_singly;             /* COXSWAIN_GPU_GRAPHS is 0 */
    bool sums_wait_for_pass;          /* COXSWAIN_OVERLAP is 0 */
    bool waits_for_device;            /* COXSWAIN_GPU_AHEAD is 0 */
    int64_t logit_rows;               /* COXSWAIN_LOGIT_ROWS, as in graph_options; 0: not set */
    int64_t grace_ms;                 /* COXSWAIN_GRACE_SECONDS, or the default of Kubernetes */
    int64_t lost_ms;                  /* COXSWAIN_CHIEF_TIMEOUT; 0: not set */
    int64_t pause_step;               /* COXSWAIN_PAUSE_STEP; 0: not set */
    int threads;                      /* COXSWAIN_THREADS; 0: not set */
};

/* Reads the environment. ERROR_INVALID names the variable that is wrong. */
int identity_read(struct identity *ret_identity, struct error *error);

#endif
