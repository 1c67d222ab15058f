/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends environment variables to a container's list (core/v1 EnvVar), and computes values that
 * several frameworks and the Service need: a pod's DNS name, the port of a role, and the
 * rendezvous, which is the host, port and rank with which a process meets the others of its job.
 * The files that build pods, their variables and the job's Service use it.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_LIST_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_LIST_H

#include "common/job/training_job.h"

void environment_add(struct json *list, const char *name, const char *value);
void environment_add_number(struct json *list, const char *name, int64_t number);

/* Returns a pod's host name, "digits-worker-0.digits.default.svc"; free with free(). */
char *crew_host(const struct training_job *job, enum role role, int64_t index);

/* Returns the port on which a role's main container listens: PORT_CREW for our worker; else the
 * containerPort named "crew" of the role's template, or the framework's default port. */
int64_t crew_port(const struct training_job *job, enum role role);

/* The address at which processes with ranks (crew_roles.h) rendezvous, which is that of rank 0, and
 * one process' rank. */
struct crew_meeting {
    char *host; /* free with free() */
    int64_t port, rank, size;
};
/* Fills in the rendezvous of one pod. Returns false if its role has no ranks. */
bool crew_meeting(const struct training_job *job, enum role role, int64_t index, struct crew_meeting *ret_meeting);

#endif
