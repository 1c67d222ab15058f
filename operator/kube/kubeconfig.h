/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of credentials.h: what kubeconfig.c and client.c need besides.
 */
#ifndef COXSWAIN_KUBE_KUBECONFIG_H
#define COXSWAIN_KUBE_KUBECONFIG_H

#include "operator/kube/credentials.h"

void kube_config_copy(const struct kube_config *config, struct kube_config *ret_copy);

#endif
