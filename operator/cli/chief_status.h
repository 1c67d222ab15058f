/* SPDX-License-Identifier: Apache-2.0
 *
 * Polls the status document of a job's chief, the pod that leads the job's other pods, for job_follow.h
 * (`cox run`, `cox top NAME`). The document has newer figures than the TrainingJob's status. The poller
 * connects to the chief directly if its pod is a process on this machine, otherwise through the API server
 * (pods/<name>:8080/proxy/status). It runs on the client's event loop. A request that fails is repeated, but
 * if the API server refuses the proxy request, polling stops until the chief's pod changes.
 */
#ifndef COXSWAIN_CLI_CHIEF_STATUS_H
#define COXSWAIN_CLI_CHIEF_STATUS_H

#include "common/contract/status_document.h"
#include "operator/cli/job_view.h"
#include "operator/kube/client.h"

struct chief_status;
typedef void chief_status_received(void *context, const struct status_document *document);

/* Creates a poller that polls no pod yet (chief_status_of). Returns NULL if no HTTP client can be created;
 * the other functions accept NULL. `received` is called from the loop; documents of other jobs are
 * dropped. `name_space` is copied; the client must outlive the poller. */
struct chief_status *chief_status_new(struct kube_client *client, const char *name_space,
                                      chief_status_received *received, void *context);
void chief_status_free(struct chief_status *status);

/* Sets the pod to poll. Stops polling if `chief` is NULL, is not ready, has ended or has no
 * address, or if `job_uid` is empty. Copies what it needs. */
void chief_status_of(struct chief_status *status, const struct pod_line *chief, const char *job_uid);

#endif
