/* SPDX-License-Identifier: Apache-2.0
 *
 * Which container of a pod trains: "trainer", which pods of ours have and those of most others; of a template that names it
 * otherwise, the first that the operator has told whose it is. Webhooks put proxies of theirs before it, or behind.
 */
#ifndef COXSWAIN_CONTRACT_MAIN_CONTAINER_H
#define COXSWAIN_CONTRACT_MAIN_CONTAINER_H

#include "common/json.h"

/* Of a pod as the API server has it; NULL: it has no containers. */
const struct json *main_container(const struct json *pod);

#endif
