/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONTROLLER_TERMINAL_H
#define TESTS_CONTROLLER_TERMINAL_H

#include "tests/unit/operator/controller/plan/scene.h"

/* A job that has succeeded at the scene's time: worker 0 ended, the others still run. */
static inline void scene_succeed(struct scene *scene)
{
    scene_run(scene);
    scene_end_pod(scene, &scene->pods[0], 0);
    scene->input.now_ms += 2000;
    scene_plan(scene);
    scene_accept(scene);
}

#endif
