/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of EnvVar (core/v1) as it grows, and the addresses that stand in it: what
 * the environments of all frameworks are made with.
 */
#ifndef COXSWAIN_CONTROLLER_ENVIRONMENT_LIST_H
#define COXSWAIN_CONTROLLER_ENVIRONMENT_LIST_H

#include "common/job/training_job.h"

void environment_add(struct json *list, const char *name, const char *value);
void environment_add_number(struct json *list, const char *name, int64_t number);

/* "digits-worker-0.digits.default.svc"; release with free(). */
char *crew_host(const struct training_job *job, enum role role, int64_t index);

/* Where a role's main container listens: our worker on PORT_CREW; a foreign one on the containerPort named "crew" of its
 * template, else on its framework's own port. */
int64_t crew_port(const struct training_job *job, enum role role);

/* Where processes that have ranks (crew_roles.h) find each other, at the first of them; and which of them this one is. */
struct crew_meeting {
    char *host; /* release with free() */
    int64_t port, rank, size;
};
/* False: a role has no rank, and meets nobody. */
bool crew_meeting(const struct training_job *job, enum role role, int64_t index, struct crew_meeting *ret_meeting);

/* The main container of a role's template, NULL when it gives none. */
const struct json *template_main_container(const struct json *template);

#endif
