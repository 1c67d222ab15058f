/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/operator/controller/plan/scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct progress scene_no_progress(void)
{
    return (struct progress){
        .step = FIELD_UNSET,
        .total_steps = FIELD_UNSET,
        .percent = FIELD_UNSET,
        .data_epoch = FIELD_UNSET,
        .seconds_remaining = FIELD_UNSET,
        .last_checkpoint_step = FIELD_UNSET,
        .updated_at_ms = FIELD_UNSET,
    };
}

void scene_init(struct scene *scene, int64_t workers)
{
    memset(scene, 0, sizeof *scene);
    scene->options = plan_options_default;
    scene->service = (struct service_view){.name = "digits",
                                           .owner_uid = SCENE_UID,
                                           .owner_kind = "TrainingJob",
                                           .owner_name = "digits",
                                           .job_uid = SCENE_UID,
                                           .of_job = true};
    scene->job = (struct training_job){
        .name = "digits",
        .namespace = "default",
        .uid = SCENE_UID,
        .resource_version = "1",
        .generation = 1,
        .created_ms = SCENE_NOW,
        .deleted_ms = FIELD_UNSET,
        .pause_step = FIELD_UNSET,
        .framework = FRAMEWORK_COXSWAIN,
        .run_policy = {.backoff_limit = 6,
                       .active_deadline_seconds = FIELD_UNSET,
                       .progress_deadline_seconds = FIELD_UNSET,
                       .ttl_seconds_after_finished = FIELD_UNSET,
                       .force_delete_after_seconds = FIELD_UNSET,
                       .straggler_replacement = {FIELD_UNSET, FIELD_UNSET},
                       .clean_pod_policy = CLEAN_RUNNING},
        .document = {.workers = workers, .strategy = {.type = STRATEGY_MULTI_WORKER_MIRRORED}},
        .status = {.start_ms = FIELD_UNSET,
                   .charged_ms = FIELD_UNSET,
                   .progressed_ms = FIELD_UNSET,
                   .charged_attempt = FIELD_UNSET,
                   .completion_ms = FIELD_UNSET,
                   .chief_finish_ms = FIELD_UNSET,
                   .recovered_restarts = FIELD_UNSET,
                   .recovered_failures = FIELD_UNSET,
                   .backoff_until_ms = FIELD_UNSET,
                   .certificate_generation = FIELD_UNSET,
                   .certificate_from_ms = FIELD_UNSET,
                   .admitted_workers = FIELD_UNSET,
                   .progress = scene_no_progress()},
    };
    scene->input = (struct plan_input){
        .job = &scene->job,
        .pods = scene->list,
        .service = &scene->service,
        .memory.certificate = {.number = FIELD_UNSET},
        .memory.born_ms = FIELD_UNSET,
        .memory.counts_since_ms = FIELD_UNSET,
        .memory.pods_changed_ms = FIELD_UNSET,
        .memory.behind_since_ms = FIELD_UNSET,
        .queue = {.replaced_since_ms = FIELD_UNSET},
        .answers = {.asked_ms = FIELD_UNSET, .since_ms = FIELD_UNSET},
        .now_ms = SCENE_NOW,
        .options = &scene->options,
    };
}

void scene_release(struct scene *scene)
{
    plan_release(&scene->plan);
    arena_release(&scene->arena);
}

struct pod_view *scene_add_pod(struct scene *scene, enum role role, int64_t index, int64_t incarnation)
{
    char name[64], uid[64];
    snprintf(name, sizeof name, "digits-%s-%" PRId64 "-%" PRId64, role_name(role), index, incarnation);
    snprintf(uid, sizeof uid, "uid-%zu", scene->pod_count);
    struct pod_view *pod = &scene->pods[scene->pod_count];
    *pod = (struct pod_view){
        .name = arena_copy_string(&scene->arena, name),
        .uid = arena_copy_string(&scene->arena, uid),
        .job_name = "digits",
        .job_uid = SCENE_UID,
        .owner_uid = SCENE_UID,
        .ip = "127.1.0.1",
        .reason = "",
        .message = "",
        .init_container = "",
        .container = "",
        .waiting_reason = "",
        .waiting_message = "",
        .end_reason = "",
        .termination_message = "",
        .memory_limit = "",
        .unschedulable = "",
        .node = "",
        .avoided = "",
        .disrupted_by = "",
        .conditions = "",
        .incarnation = incarnation,
        .attempt = scene->job.status.attempt,
        .index = index,
        .created_ms = scene->input.now_ms,
        .startable_ms = scene->input.now_ms,
        .started_ms = scene->input.now_ms,
        .finished_ms = FIELD_UNSET,
        .waiting_ms = FIELD_UNSET,
        .deletion_ms = FIELD_UNSET,
        .exit_code = EXIT_CODE_NONE,
        .role = role,
        .phase = POD_RUNNING,
        .member = true,
        .current = true,
        .ready = true,
        .scheduled = true,
    };
    scene->list[scene->pod_count++] = pod;
    scene->input.pod_count = scene->pod_count;
    return pod;
}

void scene_leave_pod(struct scene *scene, const char *uid)
{
    struct pod_view *pod = scene_add_pod(scene, ROLE_WORKER, 0, 3);
    pod->job_uid = pod->owner_uid = uid;
}

void scene_end_pod(struct scene *scene, struct pod_view *pod, int exit_code)
{
    pod->exit_code = exit_code;
    pod->finished_ms = scene->input.now_ms;
    pod->phase = exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
    pod->ready = false;
}

void scene_run(struct scene *scene)
{
    scene_turn(scene);
    for (int64_t i = 0; i < scene->job.document.workers; i++)
        scene_add_pod(scene, ROLE_WORKER, i, 1);
    scene_turn(scene);
}

void scene_init_running(struct scene *scene, int64_t workers)
{
    scene_init(scene, workers);
    scene_run(scene);
}

const struct plan *scene_plan(struct scene *scene)
{
    plan_release(&scene->plan);
    int64_t incarnation = scene->job.status.incarnation > 0 ? scene->job.status.incarnation
                                                            : 1; /* a first crew may be begun unrecorded */
    if (!scene->key_in_doubt)
        scene->input.memory.key_look = (struct crew_key_look){incarnation, scene->input.now_ms, true};
    plan_job(&scene->input, &scene->plan);
    return &scene->plan;
}

struct job_status scene_copy_status(const struct job_status *status, struct arena *arena)
{
    struct job_status copy = *status;
    copy.ready_summary = arena_copy_string(arena, status->ready_summary);
    copy.selector = arena_copy_string(arena, status->selector);
    for (int type = 0; type < CONDITION_TYPE_COUNT; type++) {
        copy.conditions[type].reason = arena_copy_string(arena, status->conditions[type].reason);
        copy.conditions[type].message = arena_copy_string(arena, status->conditions[type].message);
    }
    for (int role = 0; role < ROLE_COUNT; role++) {
        copy.replicas[role].pending = arena_copy_string(arena, status->replicas[role].pending);
        copy.replicas[role].completed = arena_copy_string(arena, status->replicas[role].completed);
        copy.replicas[role].restarting = arena_copy_string(arena, status->replicas[role].restarting);
        copy.replicas[role].backing_off = arena_copy_string(arena, status->replicas[role].backing_off);
    }
    copy.other_conditions = arena_copy_string(arena, status->other_conditions);
    copy.training_class.name = arena_copy_string(arena, status->training_class.name);
    copy.training_class.uid = arena_copy_string(arena, status->training_class.uid);
    copy.progress.examples_per_second = arena_copy_string(arena, status->progress.examples_per_second);
    copy.progress.goodput = arena_copy_string(arena, status->progress.goodput);
    copy.node_failures = arena_allocate(arena, copy.node_failure_count, sizeof *copy.node_failures);
    for (unsigned i = 0; i < copy.node_failure_count; i++)
        copy.node_failures[i] = (struct node_failure){
            .node = arena_copy_string(arena, status->node_failures[i].node),
            .at_ms = status->node_failures[i].at_ms,
            .reason = arena_copy_string(arena, status->node_failures[i].reason),
            .sure = status->node_failures[i].sure,
        };
    copy.straggler_replacements =
        arena_allocate(arena, copy.straggler_replacement_count + 1, sizeof *copy.straggler_replacements);
    for (unsigned i = 0; i < copy.straggler_replacement_count; i++)
        copy.straggler_replacements[i] = (struct straggler_replacement){
            .pod = arena_copy_string(arena, status->straggler_replacements[i].pod),
            .at_ms = status->straggler_replacements[i].at_ms,
        };
    for (unsigned i = 0; i < copy.progress.metric_count; i++) {
        copy.progress.metrics[i].name = arena_copy_string(arena, status->progress.metrics[i].name);
        copy.progress.metrics[i].value = arena_copy_string(arena, status->progress.metrics[i].value);
    }
    return copy;
}

void scene_accept(struct scene *scene)
{
    scene->job.status = scene_copy_status(&scene->plan.status, &scene->arena);
}

void scene_turn(struct scene *scene)
{
    scene_plan(scene);
    scene_accept(scene);
}

size_t scene_count(const struct scene *scene, enum action_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < scene->plan.action_count; i++)
        count += scene->plan.actions[i].type == type;
    return count;
}

const char *scene_reason(const struct scene *scene, enum condition_type type, enum condition_status status)
{
    const struct condition *condition = &scene->plan.status.conditions[type];
    return condition->status == status ? condition->reason : "";
}
