/* SPDX-License-Identifier: Apache-2.0
 *
 * Credential plugins (client-go's exec): the program that a kubeconfig names as a user, which logs in somewhere and prints an
 * ExecCredential. Only for programs that a person has started: it runs whatever the kubeconfig says, as that person.
 */
#ifndef COXSWAIN_KUBE_EXEC_PLUGIN_H
#define COXSWAIN_KUBE_EXEC_PLUGIN_H

#include "common/json.h"
#include "operator/kube/exec_credential.h"

/* A plugin has so long to answer; with a terminal a person may have to log in. */
#define EXEC_PLUGIN_TIMEOUT_MS 60000
#define EXEC_PLUGIN_TERMINAL_TIMEOUT_MS 600000
#define EXEC_PLUGIN_WORDS_MAX 256

/* Of a user's `exec`: a version that is known, a command, arguments and environment as they should be. */
int exec_plugin_check(const struct json *plugin, struct error *error);

/* Runs it and waits; its stderr is ours, its stdin too where it may ask and there is a terminal. `cluster`: what it is told of
 * the cluster, or NULL. `timeout_ms` 0: as above. ERROR_CANCELLED once the descriptor `cancel` is readable (-1: none). It is
 * killed where it has not come to an end, with its children where it may ask nobody. The error names the command, and says what
 * the kubeconfig has to say of how it is installed. */
int exec_plugin_run(const struct json *plugin, const struct json *cluster, int64_t timeout_ms, int cancel,
                    struct exec_credential *ret_credential, struct error *error);

#endif
