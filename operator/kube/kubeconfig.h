/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of credentials.h: what the other files of this folder need besides.
 */
#ifndef COXSWAIN_KUBE_KUBECONFIG_H
#define COXSWAIN_KUBE_KUBECONFIG_H

#include "operator/kube/credentials.h"

/* Whether it can stand in an HTTP header as a bearer token. */
bool kube_token_holds(const char *text);

void kube_config_copy(const struct kube_config *config, struct kube_config *ret_copy);

#endif
