/* SPDX-License-Identifier: Apache-2.0
 *
 * What a cluster has before anybody asks for anything: the namespaces, their
 * service account, the one node, and the CustomResourceDefinitions it is given.
 */
#ifndef COXSWAIN_STANDALONE_BOOTSTRAP_H
#define COXSWAIN_STANDALONE_BOOTSTRAP_H

#include "operator/standalone/registry.h"

/* Creates what is missing; commits. */
int bootstrap_cluster(struct registry *registry, struct error *error);
/* `path`: a manifest of CustomResourceDefinitions, or a directory of them (*.yaml, *.yml, *.json). What is stored already
 * is brought up to date. ERROR_NOT_FOUND when there is no such path. Commits. */
int bootstrap_definitions(struct registry *registry, const char *path, struct error *error);

#endif
