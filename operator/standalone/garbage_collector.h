/* SPDX-License-Identifier: Apache-2.0
 *
 * What kube-controller-manager's garbage collector and namespace controller do:
 * dependents go when their last owner is gone (or is deleted in the foreground),
 * the contents of a namespace and the objects of a deleted
 * CustomResourceDefinition go with it, events go after an hour.
 */
#ifndef COXSWAIN_STANDALONE_GARBAGE_COLLECTOR_H
#define COXSWAIN_STANDALONE_GARBAGE_COLLECTOR_H

#include "operator/standalone/registry.h"

/* Follows the registry until that is closed. */
void garbage_collector_attach(struct registry *registry);
/* Finishes what an earlier life left: objects whose owners are gone, old events. */
int garbage_collector_sweep(struct registry *registry, struct error *error);

#endif
