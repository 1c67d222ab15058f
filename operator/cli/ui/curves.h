/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the curves (history.h) of the jobs that the page of `cox ui` shows from the logs of their chiefs. A log is read once, and then
 * what has been added to it. The curves of the last few jobs are kept, also of pods that are gone by now.
 */
#ifndef COXSWAIN_CLI_UI_CURVES_H
#define COXSWAIN_CLI_UI_CURVES_H

#include "operator/cli/cluster.h"
#include "operator/cli/ui/history.h"

struct ui_curves;

struct ui_curves *ui_curves_new(void);
void ui_curves_free(struct ui_curves *curves);

/* Reads what is new of a job's curves; makes blocking requests. `ret_history` is borrowed until the next call. */
int ui_curves_read(struct ui_curves *curves, struct cluster *cluster, const struct json *job, const struct json *pods,
                   const struct history **ret_history, struct error *error);

#endif
