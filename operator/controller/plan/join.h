/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the condition JoinBlocked: members are missing while the chief refuses very many connections
 * that do not belong to the job. It becomes True with the chief's first such report, and False once
 * the chief reports otherwise.
 */
#ifndef COXSWAIN_CONTROLLER_JOIN_H
#define COXSWAIN_CONTROLLER_JOIN_H

#include "operator/controller/plan/planning.h"

void join_update(struct planning *planning);

#endif
