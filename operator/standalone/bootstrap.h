/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the objects that every cluster has from the start, when the embedded control plane starts: the namespaces, their default service
 * accounts, the node and the given CustomResourceDefinitions. Objects that an earlier run created are kept; CustomResourceDefinitions are
 * updated.
 */
#ifndef COXSWAIN_STANDALONE_BOOTSTRAP_H
#define COXSWAIN_STANDALONE_BOOTSTRAP_H

#include "operator/standalone/registry.h"

/* Creates the objects that are missing, and commits. */
int bootstrap_cluster(struct registry *registry, struct error *error);
/* Creates or updates the CustomResourceDefinitions in `path`, a manifest or a directory of
 * manifests (*.yaml, *.yml, *.json), and commits. ERROR_NOT_FOUND when `path` does not exist. */
int bootstrap_definitions(struct registry *registry, const char *path, struct error *error);

#endif
