/* SPDX-License-Identifier: Apache-2.0
 *
 * The state directory of an embedded control plane (coxswain-standalone --state): who may use it, what lies in it, and how
 * that is forgotten. Volumes of claims without a directory of their own lie in it too; they are people's, not ours.
 */
#ifndef COXSWAIN_COMMON_CONTRACT_STATE_DIRECTORY_H
#define COXSWAIN_COMMON_CONTRACT_STATE_DIRECTORY_H

#include <stdbool.h>

#include "common/error.h"

#define STATE_DATABASE "objects.db"
#define STATE_KUBECONFIG "kubeconfig"
#define STATE_PORT "port"
#define STATE_CERTIFICATES "pki"
#define STATE_PODS "pods"
#define STATE_VOLUMES "volumes"     /* volumes/<namespace>/<claim> */
#define STATE_MADE_FROM "made-from" /* of cox demo */

/* The directory, which must be there, is this process's alone until `*ret_lock` is closed; to be taken once. ERROR_UNAVAILABLE:
 * another process has it. */
int state_directory_lock(const char *path, int *ret_lock, struct error *error);

/* ERROR_INVALID when a directory is there that is not empty and holds neither a control plane's database nor, where one did not
 * get so far, its log. */
int state_directory_check(const char *path, struct error *error);

/* Removes what the programs keep in it, the database last, and with `volumes_too` the volumes. Whatever else lies there stays,
 * as all does of a directory that state_directory_check refuses. The caller holds the lock. */
int state_directory_forget(const char *path, bool volumes_too, struct error *error);

#endif
