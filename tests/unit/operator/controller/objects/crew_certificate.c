/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/crew_certificate.h"

#include <string.h>

#include "common/base64.h"
#include "common/certificate.h"
#include "common/contract/environment.h"
#include "tests/unit/operator/controller/plan/scene.h"
#include <criterion/criterion.h>

#define PERIOD 80000
#define DAY ((int64_t)24 * 3600 * 1000)

static void encrypted(struct scene *scene)
{
    scene_init(scene, 2);
    scene->job.document.encryption = ENCRYPTION_TLS;
    scene->options.certificate_period_ms = PERIOD;
}

/* Notes, like the executor, that the Secret exists. */
static void made(struct scene *scene)
{
    scene->input.memory.certificate = scene->plan.certificate;
}

static void check_made(struct scene *scene, int64_t number, int64_t from_ms)
{
    const struct plan *plan = scene_plan(scene);
    cr_assert_eq(scene_count(scene, ACTION_CREATE_CERTIFICATE), 1, "generation %ld", (long)number);
    cr_assert_eq(plan->certificate.number, number);
    cr_assert_eq(plan->certificate.from_ms, from_ms);
    made(scene);
}

static void check_none(struct scene *scene, int64_t number)
{
    const struct plan *plan = scene_plan(scene);
    cr_assert_eq(scene_count(scene, ACTION_CREATE_CERTIFICATE), 0);
    cr_assert_eq(plan->status.certificate_generation, number);
}

/* Before its first pod. */
static void begin(struct scene *scene)
{
    encrypted(scene);
    scene_plan(scene);
    scene_accept(scene); /* attempt 1, and its promises */
    check_made(scene, 0, SCENE_NOW);
    cr_assert_eq(scene_count(scene, ACTION_CREATE_POD), 0);
    check_made(scene, 1, SCENE_NOW + PERIOD);
    cr_assert_eq(scene_count(scene, ACTION_CREATE_POD), 0, "its pods mount both");
    check_none(scene, 1);
    cr_assert_eq(scene_count(scene, ACTION_CREATE_POD), 2);
    cr_assert(scene->plan.write_status);
    scene_accept(scene);
}

Test(crew_certificate, two_are_there_before_the_first_pod)
{
    struct scene scene;
    begin(&scene);
    scene.input.memory.certificate.number = FIELD_UNSET; /* a restarted operator */
    check_none(&scene, 1);
    scene_release(&scene);
}

Test(crew_certificate, the_next_is_made_when_the_newest_is_presented)
{
    struct scene scene;
    begin(&scene);
    int64_t from_ms = SCENE_NOW + PERIOD;
    for (int64_t number = 2; number < 9; number++, from_ms += PERIOD) {
        scene.input.now_ms = from_ms;
        check_none(&scene, number - 1);
        cr_assert_eq(scene.plan.requeue_ms, from_ms + PERIOD / 8);
        scene.input.now_ms = from_ms + PERIOD / 8;
        check_made(&scene, number, from_ms + PERIOD);
        scene_plan(&scene);
        scene_accept(&scene);
    }
    scene_release(&scene);
}

Test(crew_certificate, an_operator_that_was_away_for_long_presents_a_new_one_at_once)
{
    struct scene scene;
    begin(&scene);
    scene.input.now_ms = SCENE_NOW + 10 * (int64_t)PERIOD;
    check_made(&scene, 2, scene.input.now_ms);
    check_none(&scene, 2);
    scene_release(&scene);
}

/* The clock is set: what was told before stands in the status as it was told, and lasts as long as it would have. */
static void set_clock(struct scene *scene, int64_t by_ms)
{
    scene->input.now_ms += by_ms;
    for (int time = 0; time < STATUS_TIME_COUNT; time++)
        scene->input.moved_ms[time] = by_ms;
}

static void check_next_on_a_clock_set_by(int64_t by_ms)
{
    struct scene scene;
    begin(&scene);
    int64_t logged_ms = scene.job.status.certificate_from_ms;
    scene.input.memory.certificate.number = FIELD_UNSET; /* as a successor knows it: from the status alone */
    scene.input.now_ms = SCENE_NOW + PERIOD;
    set_clock(&scene, by_ms);
    check_none(&scene, 1);
    cr_assert_eq(scene.plan.status.certificate_from_ms, logged_ms);
    cr_assert_eq(scene.plan.requeue_ms, SCENE_NOW + by_ms + PERIOD + PERIOD / 8);
    scene.input.now_ms = scene.plan.requeue_ms;
    check_made(&scene, 2, SCENE_NOW + by_ms + 2 * (int64_t)PERIOD);
    scene_release(&scene);
}

Test(crew_certificate, a_clock_that_is_set_neither_hurries_nor_delays_the_next)
{
    check_next_on_a_clock_set_by(10 * (int64_t)PERIOD);
    check_next_on_a_clock_set_by(-10 * (int64_t)PERIOD);
}

Test(crew_certificate, a_refusal_waits_for_its_time)
{
    struct scene scene;
    encrypted(&scene);
    scene_plan(&scene);
    scene_accept(&scene);
    scene.input.memory.obstacle = (struct obstacle){OBSTACLE_FORBIDDEN, "no", SCENE_NOW + 5000, NULL};
    check_none(&scene, FIELD_UNSET);
    cr_assert_leq(scene.plan.requeue_ms, SCENE_NOW + 5000);
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 0);
    scene.input.now_ms = SCENE_NOW + 5000;
    check_made(&scene, 0, scene.input.now_ms);
    scene_release(&scene);
}

Test(crew_certificate, nobody_else_has_any)
{
    struct scene scene;
    encrypted(&scene);
    cr_assert(crew_certificate_is_needed(&scene.job));
    scene.job.document.encryption = ENCRYPTION_NONE;
    cr_assert_not(crew_certificate_is_needed(&scene.job));
    scene_plan(&scene);
    scene_accept(&scene);
    check_none(&scene, FIELD_UNSET);
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 2);
    scene_release(&scene);
}

static char *text_of(const struct json *secret)
{
    char *text;
    size_t length;
    cr_assert_eq(
        base64_decode(json_string(json_member(json_member(secret, "data"), CREW_TLS_KEY), ""), &text, &length, NULL),
        0);
    return text;
}

Test(crew_certificate, a_secret_holds_what_the_worker_reads)
{
    struct scene scene;
    int64_t until_s;
    scene_init(&scene, 2);
    const struct certificate_generation even = {.number = 4, .from_ms = SCENE_NOW, .period_ms = DAY};
    const struct certificate_generation odd = {.number = 5, .from_ms = SCENE_NOW, .period_ms = DAY};
    struct json *secret = NULL, *other = NULL;
    cr_assert_eq(crew_certificate_build(&scene.job, &even, SCENE_NOW, &secret, NULL), 0);
    cr_assert_eq(crew_certificate_build(&scene.job, &odd, SCENE_NOW, &other, NULL), 0);
    cr_assert_str_eq(json_string_at(secret, "metadata.name", ""), "digits-tls-job-uid--even");
    cr_assert_str_eq(json_string_at(other, "metadata.name", ""), "digits-tls-job-uid--odd");
    cr_assert_str_eq(json_string_at(json_first(json_at(secret, "metadata.ownerReferences")), "uid", ""), SCENE_UID);
    SCOPED_FREE char *text = text_of(secret), *others = text_of(other);
    cr_assert(strstr(text, "from 1700000000\n") == text && strstr(text, "PRIVATE KEY"));
    cr_assert_str_neq(text, others);
    cr_assert_eq(certificate_end(text, &until_s, NULL), 0);
    cr_assert_eq(until_s, SCENE_NOW / 1000 + 7 * 24 * 3600 + 3600, "a week without the operator");
    json_free(secret);
    json_free(other);
    scene_release(&scene);
}
