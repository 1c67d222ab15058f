/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command does where the cluster will not let it look: an informer tries
 * again for ever, a person wants to be told who lacks which right.
 */
#ifndef COXSWAIN_CLI_ACCESS_H
#define COXSWAIN_CLI_ACCESS_H

#include "operator/kube/informer.h"

/* An API server that has just come back may refuse what it allows, so whoever has seen something waits so long. */
#define ACCESS_PATIENCE_MS 30000

/* Of one informer; {0} to begin with. */
struct access {
    int64_t refused_ms; /* since when; 0: it is not */
};

/* -1 once the informer will never be told anything (401, 403, 404). To be asked at each turn of the loop. */
int access_check(struct access *access, const struct informer *informer, int64_t now_ms, struct error *error);

/* Adds to a refusal (401, 403) what to ask for; leaves other errors as they are. */
void access_explain(struct error *error);

#endif
