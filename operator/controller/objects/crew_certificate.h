/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the Secrets with the TLS certificates of a crew, the pods that train one job, and mounts
 * them into its pods, if the job asks for spec.coxswain.encryption. Certificates are rotated: each
 * generation is a private key and a self-signed certificate in one Secret. Every pod mounts the
 * Secrets of two generations, "even" and "odd", and presents the newer one from a given time on
 * (worker/comm/crew_certificates.h). A new generation replaces the last but one, which no pod
 * presents any more. It is created one period before it is first presented, so that the kubelets
 * have time to update the mounted files. When one is due is decided in crew_certificate_plan.c.
 *
 * The operator does not read the Secrets; the job's status contains the number of the newest
 * generation. A certificate is valid for several periods, so that a crew keeps working while the
 * operator is down.
 */
#ifndef COXSWAIN_CONTROLLER_CREW_CERTIFICATE_H
#define COXSWAIN_CONTROLLER_CREW_CERTIFICATE_H

#include "common/job/training_job.h"

#define CREW_CERTIFICATE_VOLUME "coxswain-crew-tls"
#define CREW_CERTIFICATE_PERIODS 7 /* validity, from when the crew begins to present it */

/* One generation of a crew's certificate. */
struct certificate_generation {
    int64_t number;  /* from 0; FIELD_UNSET: none */
    int64_t from_ms; /* when the crew begins to present it */
    int64_t period_ms;
};

/* Returns whether the job asks for encryption and its crew of our workers has, or can grow to, several pods. */
bool crew_certificate_is_needed(const struct training_job *job);
/* Returns whether the generation's Secret has the name of an older generation's, which must be
 * deleted first. */
bool crew_certificate_replaces(int64_t generation);
/* Builds the Secret of `generation` with a new key and certificate. */
int crew_certificate_build(const struct training_job *job, const struct certificate_generation *generation,
                           int64_t now_ms, struct json **ret_secret, struct error *error);

/* Add the Secrets' volume to a pod's volumes, and its mount to a container's mounts. */
void crew_certificate_add_volume(struct json *volumes, const struct training_job *job);
void crew_certificate_add_mount(struct json *mounts);

#endif
