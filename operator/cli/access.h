/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a command that watches objects gives up because the API server refuses access (HTTP 401, 403)
 * or does not know the resource (404). An informer (operator/kube/informer.h) retries forever; a command
 * should end and report the refusal. The command calls access_check for each of its informers on each turn of
 * its event loop. If the informer has not received its first list, the command ends at once; later, only
 * after ACCESS_PATIENCE_MS of refusals.
 */
#ifndef COXSWAIN_CLI_ACCESS_H
#define COXSWAIN_CLI_ACCESS_H

#include "operator/kube/informer.h"

/* How long a refusal must last once the informer has synced. An API server that has just restarted
 * may refuse requests that it allows later. */
#define ACCESS_PATIENCE_MS 30000

/* The state of access_check for one informer. Initialize it to {0}. */
struct access {
    int64_t refused_ms; /* when the refusal began; 0: not refused */
};

/* Returns -1 with the refusal (401, 403, 404) if the informer has never synced, or if the refusal
 * has lasted ACCESS_PATIENCE_MS. Call it on each turn of the loop. */
int access_check(struct access *access, const struct informer *informer, int64_t now_ms, struct error *error);

/* Returns whether the user may not do this at all (401, 403). */
bool access_is_denied(const struct error *error);

/* Adds the remedy to the message of a refusal (401, 403). Leaves other errors unchanged. */
void access_explain(struct error *error);

#endif
