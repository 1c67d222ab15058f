/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/plan.h"

#include <string.h>

#include "common/contract/labels.h"

const struct plan_options plan_options_default = {
    .pods = {.worker_image = "coxswain-worker", .coscheduling_scheduler = "scheduler-plugins-scheduler"},
    .controller_name = MANAGED_BY_OPERATOR,
    .start_failure_ms = 120000,
    .settle_ms = 10000,
    .count_write_ms = 1000,
    .count_gather_max_ms = 3000,
    .count_write_max_ms = 5000,
    .dead_node_ms = 60000,
    .unseen_node_ms = 600000,
    .certificate_period_ms = (int64_t)24 * 3600 * 1000,
    .catch_up_ms = 30000,
};

const char *obstacle_reason(enum obstacle_kind kind)
{
    static const char *const reasons[] = {
#define X(name, text) [name] = (text),
        OBSTACLES(X)
#undef X
    };
    return reasons[kind];
}

bool obstacle_is_objects_fault(enum obstacle_kind kind)
{
    return kind == OBSTACLE_REJECTED || kind == OBSTACLE_TEMPLATE;
}

bool plan_is_managed_by(const char *managed_by, const char *controller_name)
{
    bool is_default = !managed_by || *managed_by == '\0' || strcmp(managed_by, MANAGED_BY_MULTIKUEUE) == 0;
    return strcmp(is_default ? MANAGED_BY_OPERATOR : managed_by, controller_name) == 0;
}

bool plan_has_work(const struct plan *plan)
{
    bool tells = false;
    for (size_t i = 0; i < plan->event_count; i++)
        tells |= plan->events[i].of_action;
    return tells || plan->action_count > 0 || plan->write_status;
}

void plan_release(struct plan *plan)
{
    arena_release(&plan->arena);
    json_free(plan->placement);
    json_free(plan->class_defaults);
    *plan = (struct plan){0};
}
