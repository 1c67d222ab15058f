/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the restarts that the page of `cox ui` has begun: jobs that are suspended, and go on once their pods are gone. A job that somebody
 * else resumes, or whose pods do not go in time, is left as it is; so are all when `cox ui` ends.
 */
#ifndef COXSWAIN_CLI_UI_RESTARTS_H
#define COXSWAIN_CLI_UI_RESTARTS_H

#include "operator/cli/cluster.h"

struct ui_restarts;

struct ui_restarts *ui_restarts_new(void);
void ui_restarts_free(struct ui_restarts *restarts);

/* Suspends a job of the cluster's namespace, and keeps it. Makes blocking requests. */
int ui_restarts_begin(struct ui_restarts *restarts, struct cluster *cluster, const char *name, struct error *error);
/* Whether the job of that namespace is being restarted. */
bool ui_restarts_has(const struct ui_restarts *restarts, const char *name_space, const char *name);
/* Lets jobs go on whose pods are gone. Call it after each turn of the loop; it asks for each job twice a second, by blocking requests. */
void ui_restarts_work(struct ui_restarts *restarts, struct cluster *cluster);

#endif
