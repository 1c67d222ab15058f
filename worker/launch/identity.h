/* SPDX-License-Identifier: Apache-2.0
 *
 * Who this process is, from the environment that the operator gives its pod
 * (common/contract/environment.h). By hand nothing is set: worker 0, incarnation 0.
 */
#ifndef COXSWAIN_LAUNCH_IDENTITY_H
#define COXSWAIN_LAUNCH_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* Strings point into the environment, or are static. */
struct identity {
    bool in_pod;         /* the operator started it */
    const char *job_uid; /* "" by hand */
    int64_t attempt, incarnation;
    const char *role;
    int64_t index;
    const char *pod_ip;               /* NULL: not told */
    const char *checkpoint_directory; /* NULL: not told */
    const char *storage;              /* NULL: not told */
    const char *job;                  /* the job document, NULL: not told */
    const char *tf_config;            /* NULL: not told */
    const char *crew_key_file;        /* NULL: a crew without a key */
    const char *crew_tls_directory;   /* NULL: a crew that talks in the clear */
    const char *step_record;          /* COXSWAIN_RECORD; NULL: not told */
    const char *arithmetic;           /* COXSWAIN_ARITHMETIC; NULL: the best there is */
    const char *read_delay;           /* COXSWAIN_READ_DELAY; likewise */
    bool launches_singly;             /* COXSWAIN_GPU_GRAPHS is 0 */
    bool sums_wait_for_pass;          /* COXSWAIN_OVERLAP is 0 */
    bool waits_for_device;            /* COXSWAIN_GPU_AHEAD is 0 */
    int64_t logit_rows;               /* COXSWAIN_LOGIT_ROWS as graph_options have it; 0: not told */
    int64_t grace_ms;                 /* COXSWAIN_GRACE_SECONDS, or what Kubernetes gives */
    int64_t lost_ms;                  /* COXSWAIN_CHIEF_TIMEOUT; 0: not told */
    int threads;                      /* COXSWAIN_THREADS; 0: not told */
};

/* ERROR_INVALID names the variable. */
int identity_read(struct identity *ret_identity, struct error *error);

#endif
