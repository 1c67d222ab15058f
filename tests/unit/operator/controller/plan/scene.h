/* SPDX-License-Identifier: Apache-2.0
 *
 * A job and its pods for table tests of the plan: made in a line, changed in the
 * test, planned with scene_plan. Everything goes with scene_release.
 */
#ifndef TESTS_CONTROLLER_SCENE_H
#define TESTS_CONTROLLER_SCENE_H

#include <criterion/criterion.h>

#include "operator/controller/plan/plan_job.h"

#define SCENE_PODS_MAX 256
#define SCENE_UID "job-uid-1"
#define SCENE_NOW 1700000000000

struct scene {
    struct training_job job;
    struct pod_view pods[SCENE_PODS_MAX];
    const struct pod_view *list[SCENE_PODS_MAX];
    size_t pod_count;
    struct service_view service;
    struct plan_input input;
    struct plan_options options;
    bool key_in_doubt; /* else the crew's key is known to be there; see input.key */
    struct plan plan;
    struct arena arena;
};

/* A Coxswain job of `workers` workers; nothing has been started. The Service is there. */
void scene_init(struct scene *scene, int64_t workers);
void scene_release(struct scene *scene);

/* A running job: attempt 1, incarnation 1, one ready pod of incarnation 1 for each worker. */
void scene_run(struct scene *scene);
/* scene_init, then scene_run. */
void scene_init_running(struct scene *scene, int64_t workers);

/* A ready pod of the job. The name follows from role, index and incarnation. */
struct pod_view *scene_add_pod(struct scene *scene, enum role role, int64_t index, int64_t incarnation);
/* A pod that is left of another job of the name. */
void scene_leave_pod(struct scene *scene, const char *uid);
/* Its main container ended, at the scene's time, with this code. */
void scene_end_pod(struct scene *scene, struct pod_view *pod, int exit_code);

/* Plans; the result stays in `scene->plan` until the next call. */
const struct plan *scene_plan(struct scene *scene);
/* Lets the plan's status be the job's, as after a successful write. */
void scene_accept(struct scene *scene);
/* scene_plan, then scene_accept. */
void scene_turn(struct scene *scene);

size_t scene_count(const struct scene *scene, enum action_type type);
/* The reason of a condition of the planned status, "" when it has not that status. */
const char *scene_reason(const struct scene *scene, enum condition_type type, enum condition_status status);

/* Compares what was planned with words "name=value": a count of actions ("create_pod=2"; "actions": all), a field of the plan
 * ("write_status=1"), the reason of its first event ("event=Started") or of its status ("attempt=2", "worker.pending=0-2", "state=Running"), or the reason of a condition that has
 * a status ("Failed:True=PodRejected"; "": it has not). "job." in front: of the job's own status. "none": NULL; "unset":
 * FIELD_UNSET. Words in parentheses say why. Returns NULL if all is as expected, else what differs.
 * scene_expect asserts it, expect_plan and expect_turn after scene_plan and scene_turn. */
const char *scene_mismatch(const struct scene *scene, const char *expected);
#define scene_expect(expected)                                                                                         \
    do {                                                                                                               \
        const char *mismatch_ = scene_mismatch(&scene, (expected));                                                    \
        cr_assert_null(mismatch_, "%s", mismatch_);                                                                    \
    } while (0)

#define expect_plan(expected)                                                                                          \
    do {                                                                                                               \
        scene_plan(&scene);                                                                                            \
        scene_expect(expected);                                                                                        \
    } while (0)
#define expect_turn(expected)                                                                                          \
    do {                                                                                                               \
        scene_turn(&scene);                                                                                            \
        scene_expect(expected);                                                                                        \
    } while (0)

/* A suite of which each test has a `scene` of its own. A block follows that begins it, as scene_renew
 * does once more; the end of the test releases it.
 *     SCENE_SUITE(adopt) { scene_init_running(&scene, 3); } */
#define SCENE_SUITE(name)                                                                                              \
    static struct scene scene;                                                                                         \
    static void name##_scene_begin(void);                                                                              \
    static void name##_scene_end(void)                                                                                 \
    {                                                                                                                  \
        scene_release(&scene);                                                                                         \
    }                                                                                                                  \
    __attribute__((unused)) static void scene_renew(void)                                                              \
    {                                                                                                                  \
        scene_release(&scene);                                                                                         \
        name##_scene_begin();                                                                                          \
    }                                                                                                                  \
    TestSuite(name, .init = name##_scene_begin, .fini = name##_scene_end);                                             \
    static void name##_scene_begin(void)

/* A progress of which nothing is known. */
struct progress scene_no_progress(void);

/* Copies the status, with its strings in `arena`. */
struct job_status scene_copy_status(const struct job_status *status, struct arena *arena);

#endif
