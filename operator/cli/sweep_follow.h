/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches a TrainingSweep and its trials for `cox run` and `cox sweep top`, and shows their progress in the terminal.
 * Runs on the client's event loop: the caller calls the functions below on each turn of the loop.
 */
#ifndef COXSWAIN_CLI_SWEEP_FOLLOW_H
#define COXSWAIN_CLI_SWEEP_FOLLOW_H

#include "operator/cli/sweep_view.h"
#include "operator/cli/terminal.h"
#include "operator/kube/client.h"

struct sweep_follow;

/* Starts watching the sweep of a manifest, which is in the namespace. The client must outlive the result. `continues`: an earlier command
 * has followed the sweep, so that trials that are over at first are only counted, unless the whole sweep is over. */
struct sweep_follow *sweep_follow_start(struct kube_client *client, const struct json *manifest, const char *name_space,
                                        bool continues);
void sweep_follow_free(struct sweep_follow *follow);

/* Returns -1 if the API server refuses to let the sweep or its trials be watched. Call it on each turn of the loop. */
int sweep_follow_check(struct sweep_follow *follow, struct error *error);
/* Returns whether there is nothing more to follow: the sweep was deleted, or it is over and all trials that it counts were seen to
 * end. Does not wait longer than two seconds for those, as trials may have been deleted. After a change of
 * an ended sweep's spec, waits up to ten seconds for the operator to decide whether the sweep goes on. */
bool sweep_follow_is_over(struct sweep_follow *follow, int64_t now_ms);
bool sweep_follow_deleted(const struct sweep_follow *follow);
/* Returns whether the sweep and its trials have been listed once. */
bool sweep_follow_synced(const struct sweep_follow *follow);
/* Returns whether the sweep was over when it was seen first, and has not gone on since. */
bool sweep_follow_was_over(const struct sweep_follow *follow);

/* Returns the sweep as last received. Borrowed until the loop's next turn. */
const struct training_sweep *sweep_follow_sweep(const struct sweep_follow *follow);
/* Gets a view of the sweep and its trials as last received. It is valid until the loop's next turn; release it with sweep_view_release. */
void sweep_follow_view(const struct sweep_follow *follow, struct sweep_view *ret_view);

/* Prints the trials that have ended since the last call, then redraws the block; if not live, prints a line when another trial has
 * ended, at intervals. */
void sweep_follow_show(struct sweep_follow *follow, struct terminal *terminal, int64_t now_ms);

#endif
