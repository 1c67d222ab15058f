/* SPDX-License-Identifier: Apache-2.0
 *
 * The status document of a job's chief, asked for again and again: directly where
 * its pod is a process of this machine, else through the API server
 * (pods/<name>:8080/proxy/status), as far as that allows it.
 */
#ifndef COXSWAIN_CLI_CHIEF_STATUS_H
#define COXSWAIN_CLI_CHIEF_STATUS_H

#include "common/contract/status_document.h"
#include "operator/cli/job_view.h"
#include "operator/kube/client.h"

struct chief_status;
typedef void chief_told(void *context, const struct status_document *document);

/* NULL when there can be none. `told` is called from the loop; documents of another job are left out. */
struct chief_status *chief_status_new(struct kube_client *client, const char *name_space, chief_told *told,
                                      void *context);
void chief_status_free(struct chief_status *status);

/* Whom to ask from now on; nobody when `chief` is NULL or not ready. */
void chief_status_of(struct chief_status *status, const struct pod_line *chief, const char *job_uid);

#endif
