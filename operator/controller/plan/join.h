/* SPDX-License-Identifier: Apache-2.0
 *
 * JoinBlocked: members are missing while the chief refuses very many connections
 * that do not belong to the job. The condition comes with the first such report of
 * the chief, and turns False when it reports otherwise.
 */
#ifndef COXSWAIN_CONTROLLER_JOIN_H
#define COXSWAIN_CONTROLLER_JOIN_H

#include "operator/controller/plan/planning.h"

void join_update(struct planning *planning);

#endif
