/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a user's credential plugin, the program that a kubeconfig names under `exec`, as client-go does: it logs in and
 * prints an ExecCredential. Use this only in programs that a person has started, since the plugin runs as that person.
 */
#ifndef COXSWAIN_KUBE_EXEC_PLUGIN_H
#define COXSWAIN_KUBE_EXEC_PLUGIN_H

#include "common/json.h"
#include "operator/kube/exec_credential.h"

/* How long a plugin may run; longer with a terminal, where a person may have to log in. */
#define EXEC_PLUGIN_TIMEOUT_MS 60000
#define EXEC_PLUGIN_TERMINAL_TIMEOUT_MS 600000
#define EXEC_PLUGIN_WORDS_MAX 256 /* entries of `args`, and of `env` */

/* Checks a user's `exec` entry: apiVersion, command, args, env and interactiveMode. ERROR_INVALID or ERROR_UNSUPPORTED. */
int exec_plugin_check(const struct json *plugin, struct error *error);

/* Runs the plugin and waits for it. The plugin shares our stderr. It is interactive, with our stdin, if that is a
 * terminal and interactiveMode allows it. `cluster` is the cluster description passed to it, or NULL. `timeout_ms` 0:
 * the defaults above. ERROR_CANCELLED when the descriptor `cancel` becomes readable (-1: none). After a timeout or
 * cancellation the plugin is killed, and its children too unless it is interactive. The error names the command, and
 * has the kubeconfig's installHint if the command cannot be started. */
int exec_plugin_run(const struct json *plugin, const struct json *cluster, int64_t timeout_ms, int cancel,
                    struct exec_credential *ret_credential, struct error *error);

#endif
