/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives the pods of a job with progress.push (PyTorch, TensorFlow, JAX) what a script needs to send its progress to the operator: a URL
 * and two files of a Secret of the job, the certificate of the authority that signs the operator's, and the job's token.
 *
 * The token is a code (HMAC-SHA256) of the job's namespace, name and UID under a key that only the operator has. So the operator keeps no
 * list of tokens, and the token of one job is of no use for another. The URL names the pod, so that a pod of an earlier attempt cannot
 * report for a later one (execute/push_intake.h).
 *
 * The operator creates the Secret before the job's Service and need not read it.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_PUSH_H
#define COXSWAIN_CONTROLLER_PROGRESS_PUSH_H

#include "common/hmac.h"
#include "common/job/training_job.h"

/* The address at which this operator accepts reports, and the keys that it uses. */
struct push_endpoint {
    const char *url; /* "https://coxswain-progress.coxswain-system.svc:8443"; NULL: the operator accepts no reports */
    const char *refusal; /* if `url` is NULL: why, and what to do about it */
    const char *authority_pem;
    int64_t reachable_since_ms; /* since when pods can reach it, by clock_monotonic_ms; FIELD_UNSET: they cannot */
    unsigned char key[HMAC_BYTES];
};

/* Names in the path of a URL; "" before push_path_parse. */
#define PUSH_NAME_MAX 254
struct push_path {
    char name_space[PUSH_NAME_MAX], job[PUSH_NAME_MAX], uid[PUSH_NAME_MAX], pod[PUSH_NAME_MAX];
};

bool push_is_wanted(const struct training_job *job);
/* Returns whether the job's pods can report. `endpoint` NULL: the operator takes no reports. */
bool push_is_possible(const struct training_job *job, const struct push_endpoint *endpoint);

/* Returns since when, by the present clock, pods can reach the operator; FIELD_UNSET: they cannot. */
int64_t push_reachable_since(const struct push_endpoint *endpoint, int64_t now_ms);

/* Returns the token of a job; release with free(). */
char *push_token(const struct push_endpoint *endpoint, const char *name_space, const char *job, const char *uid);
/* Compares in constant time. */
bool push_token_matches(const struct push_endpoint *endpoint, const struct push_path *path, const char *token);

/* Reads the path of a request. Returns false if it is no path that push_add_environment writes. */
bool push_path_parse(const char *path, struct push_path *ret_path);

struct json *push_secret_build(const struct training_job *job, const struct push_endpoint *endpoint);

/* Add the Secret's volume to a pod's volumes, its mount to a container's mounts, and the variables to a container's environment. */
void push_add_volume(struct json *volumes, const struct training_job *job);
void push_add_mount(struct json *mounts);
void push_add_environment(struct json *environment, const struct training_job *job,
                          const struct push_endpoint *endpoint, const char *pod_name);

#endif
