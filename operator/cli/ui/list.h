/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the list of all jobs and sweeps for the page of `cox ui`, with watches. Each row has the version of the list at which it last
 * changed; a page that polls each second gets only newer rows.
 */
#ifndef COXSWAIN_CLI_UI_LIST_H
#define COXSWAIN_CLI_UI_LIST_H

#include "operator/kube/client.h"

struct ui_list;

/* Starts the watches, in one namespace, or in all if `name_space` is NULL. `kept`: the run has ended and the
 * list shows its saved state, read-only; the page gets this as "kept". The client must outlive the list. */
struct ui_list *ui_list_start(struct kube_client *client, const char *name_space, bool kept);
void ui_list_free(struct ui_list *list);

/* Appends {"version", "whole", "kept", "rows": […], "gone": [key…], "trouble"} to `out`: what has changed since `version`, or with "whole":
 * true everything. "trouble" says in a sentence why the list may be out of date; "": it is not. */
int ui_list_write(const struct ui_list *list, uint64_t version, struct buffer *out, struct error *error);

/* Returns the version of the list: it changes with each row that is new, changed or gone, but not with "trouble". ui_list_write
 * with this version later writes the changes since now. 0: the list is not complete yet. */
uint64_t ui_list_version(const struct ui_list *list);

/* Returns the sentence that says why the cluster cannot be asked now; "": it answers. */
const char *ui_list_trouble(const struct ui_list *list);

#endif
