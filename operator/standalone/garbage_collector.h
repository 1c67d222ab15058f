/* SPDX-License-Identifier: Apache-2.0
 *
 * Garbage collection, as kube-controller-manager does it. Deletes dependents when
 * their last owner is gone (or is being deleted in the foreground), the objects of
 * a deleted namespace or CustomResourceDefinition, and events after an hour.
 */
#ifndef COXSWAIN_STANDALONE_GARBAGE_COLLECTOR_H
#define COXSWAIN_STANDALONE_GARBAGE_COLLECTOR_H

#include "operator/standalone/registry.h"

/* Collects garbage until the registry is closed. */
void garbage_collector_attach(struct registry *registry);
/* Deletes garbage that an earlier process left: objects whose owners are gone, and old events. */
int garbage_collector_sweep(struct registry *registry, struct error *error);

#endif
