/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the job's condition JoinBlocked, at the end of a plan, from the report of the chief, the pod
 * that leads the job. JoinBlocked means that pods of the job cannot join while the chief refuses
 * very many connections that do not belong to the job. The condition becomes True with the chief's
 * first such report, and False once the chief reports otherwise.
 */
#ifndef COXSWAIN_CONTROLLER_JOIN_H
#define COXSWAIN_CONTROLLER_JOIN_H

#include "operator/controller/plan/planning.h"

void join_update(struct planning *planning);

#endif
