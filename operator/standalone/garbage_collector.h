/* SPDX-License-Identifier: Apache-2.0
 *
 * Deletes what nobody needs any more in the embedded control plane, as kube-controller-manager does: dependents when their last owner is
 * gone (or is being deleted in the foreground), the objects of a deleted namespace or CustomResourceDefinition, and events after an hour.
 * Once attached, the collector acts on each committed change of the registry; a sweep at start and every ten minutes finds the rest.
 */
#ifndef COXSWAIN_STANDALONE_GARBAGE_COLLECTOR_H
#define COXSWAIN_STANDALONE_GARBAGE_COLLECTOR_H

#include "operator/standalone/registry.h"

/* Collects garbage until the registry is closed. */
void garbage_collector_attach(struct registry *registry);
/* Deletes garbage that an earlier process left: objects whose owners are gone, and old events. */
int garbage_collector_sweep(struct registry *registry, struct error *error);

#endif
