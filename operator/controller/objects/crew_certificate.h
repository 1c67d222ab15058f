/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificates under which the pods of one job talk (spec.coxswain.encryption: TLS):
 * generation after generation, each a key and a certificate that signs itself, in
 * a Secret of its own. All pods have those of two generations mounted, in the
 * places "even" and "odd", and present the newer one from its time on
 * (worker/comm/crew_certificates.h). A new generation goes into the place of the
 * last but one, which nobody presents any more, a period before it is presented:
 * time enough for the kubelets to bring it everywhere.
 *
 * Nothing of them is read back: which generation is the newest stands in the
 * job's status. A certificate is good for several periods, so that a crew outlives
 * an operator that is away.
 */
#ifndef COXSWAIN_CONTROLLER_CREW_CERTIFICATE_H
#define COXSWAIN_CONTROLLER_CREW_CERTIFICATE_H

#include "common/job/training_job.h"

#define CREW_CERTIFICATE_VOLUME "coxswain-crew-tls"
#define CREW_CERTIFICATE_PERIODS 7 /* after it begins to be presented */

/* One of the certificates of a crew, which follow each other. */
struct certificate_generation {
    int64_t number;  /* from 0; FIELD_UNSET: none */
    int64_t from_ms; /* when the crew begins to present it */
    int64_t period_ms;
};

/* Encryption is asked for, and there is somebody to talk to. */
bool crew_certificate_is_needed(const struct training_job *job);
/* Another generation's Secret has the name of this one's. */
bool crew_certificate_replaces(int64_t generation);
/* The Secret with a new key and certificate. */
int crew_certificate_build(const struct training_job *job, const struct certificate_generation *generation,
                           int64_t now_ms, struct json **ret_secret, struct error *error);

/* The volume of a pod's spec, the mount of a container. */
void crew_certificate_add_volume(struct json *volumes, const struct training_job *job);
void crew_certificate_add_mount(struct json *mounts);

#endif
