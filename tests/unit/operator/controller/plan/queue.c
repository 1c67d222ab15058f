/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/controller/objects/queue_build.h"
#include "tests/unit/json_of.h"
#include "tests/unit/operator/controller/plan/scene.h"

static struct workload_view workload, slice;

SCENE_SUITE(queue)
{
    scene_init(&scene, 2);
    scene.job.queue_name = "research";
    scene.input.queue.state = OPTIONAL_READY;
    workload = (struct workload_view){.name = "digits",
                                      .uid = "workload-uid",
                                      .owner_uid = SCENE_UID,
                                      .job_uid = SCENE_UID,
                                      .queue_name = "research",
                                      .waiting = "",
                                      .evicted_reason = "",
                                      .evicted_message = "",
                                      .pods_ready_reason = "",
                                      .assignments = "{}"};
}

/* Updates Kueue's cached workload after the plan's write. */
static void hear(void)
{
    struct pods_ready pods = queue_pods_ready(&workload, &scene.plan.status);
    workload.pods_ready = pods.ready;
    workload.pods_ready_reason = pods.reason;
}

static void succeed(void)
{
    scene.job.status.conditions[CONDITION_SUCCEEDED].status = CONDITION_TRUE;
    scene.job.status.completion_ms = scene.input.now_ms;
}

static void expect_told(bool ready, const char *reason)
{
    expect_turn("tell_workload=1");
    hear();
    cr_assert_eq(workload.pods_ready, ready);
    cr_assert_str_eq(workload.pods_ready_reason, reason);
    expect_turn("tell_workload=0 (told once)");
}

static void admit(void)
{
    scene.input.queue.workload = &workload;
    workload.reserved = workload.admitted = workload.has_admission = true;
}

/* A running job, told to Kueue as such. */
static void run(void)
{
    admit();
    scene_run(&scene);
    scene_turn(&scene);
    hear();
}

Test(queue, no_pod_before_the_workload_is_admitted)
{
    expect_turn("create_workload=1");
    scene.input.queue.workload = &workload;
    workload.waiting = "insufficient quota";
    expect_plan("actions=0 attempt=0 Suspended:True=Queued");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_SUSPENDED].message, "insufficient quota"));
    scene_accept(&scene);
    admit();
    expect_turn("job.attempt=1");
    expect_plan("create_pod=2");
}

Test(queue, another_queue_is_heeded_while_none_has_given_quota)
{
    scene.input.queue.workload = &workload;
    scene_turn(&scene);
    scene.job.queue_name = "production";
    expect_plan("delete_workload=1");
    scene.input.queue.workload = NULL;
    expect_plan("create_workload=1");
}

Test(queue, another_queue_waits_while_one_has_given_quota)
{
    run();
    scene.job.queue_name = "production";
    expect_plan("actions=0 events=1");
    cr_assert_str_eq(scene.plan.events[0].reason, "QueueChangeWaits");
    cr_assert(strstr(scene.plan.events[0].note,
                     "the job's queue is now production, but the job has quota of queue research"));
    scene.input.memory.queue_change_reported = scene.plan.queue_change_waits;
    expect_plan("events=0 (told once)");
    scene.job.suspend = true;
    scene_turn(&scene);
    scene.input.pod_count = 0;
    scene_turn(&scene);
    expect_plan("delete_workload=1 (what comes next is the other queue's)");
}

Test(queue, a_label_that_was_taken_off_gives_the_quota_back_after_the_pods)
{
    run();
    scene.job.queue_name = NULL;
    expect_plan("actions=0 (pods run on it)");
    cr_assert_str_eq(scene.plan.events[0].reason, "QueueChangeWaits");
    cr_assert(strstr(scene.plan.events[0].note, "was taken off, but the job has quota of queue research"));
    scene.input.memory.queue_change_reported = scene.plan.queue_change_waits;
    expect_plan("events=0 (told once)");
    workload.reserved = false;
    expect_plan("delete_workload=1 actions=1 (its pods stay)");
    cr_assert_not(scene.plan.queue_change_waits);
}

Test(queue, an_eviction_is_heeded_after_the_label_was_taken_off)
{
    run();
    scene.job.queue_name = NULL;
    workload.evicted = true;
    expect_turn("Suspended:False=Suspending");
    expect_turn("delete_pod=2");
    scene.input.pod_count = 0;
    expect_plan("delete_workload=1");
}

Test(queue, the_end_is_told_after_the_label_was_taken_off)
{
    run();
    scene.job.queue_name = NULL;
    succeed();
    expect_plan("tell_workload=1");
}

Test(queue, an_eviction_ends_the_pods_and_then_gives_the_quota_back)
{
    run();
    workload.evicted = true;
    workload.evicted_reason = "Preempted";
    workload.evicted_message = "somebody is more important";
    expect_turn("delete_pod=0 (first it is said)");
    expect_turn("delete_pod=2 release_workload=0");
    scene.pod_count = scene.input.pod_count = 0;
    expect_turn("Suspended:True=Evicted");
    expect_turn("release_workload=1 job.restart_count=0");
    hear();
    workload.reserved = workload.admitted = false;
    expect_turn("clear_admission=1");
    workload.has_admission = false;
    expect_told(false, "WaitForStart");
    cr_assert_eq(scene.plan.action_count, 0);
    admit();
    workload.evicted = false;
    expect_turn("job.attempt=2 job.restart_count=0");
}

Test(queue, kueue_is_told_once_of_ready_pods_and_of_the_end)
{
    admit();
    scene_run(&scene);
    expect_plan("tell_workload=1");
    hear();
    expect_plan("tell_workload=0");
    succeed();
    expect_plan("tell_workload=1");
    workload.finished = true;
    expect_plan("tell_workload=0");
}

/* From WaitForStart Kueue counts its timeout from the admission: a crew that has run for longer would be evicted at once.
 * The operator keeps nothing of its own between the plans, so it may be restarted at any of them. */
Test(queue, a_lost_pod_is_a_recovery_and_no_start)
{
    admit();
    scene_run(&scene);
    scene.pods[1].ready = false;
    expect_told(false, "WaitForStart");
    scene.pods[1].ready = true;
    expect_told(true, "Started");
    scene.pods[1].ready = false;
    expect_told(false, "WaitForRecovery");
    scene.pods[1].ready = true;
    expect_told(true, "Recovered");
    scene.pods[0].ready = false;
    expect_told(false, "WaitForRecovery");
    scene.pods[0].ready = true;
    expect_told(true, "Recovered");
}

Test(queue, the_end_leaves_what_was_told_of_the_pods)
{
    run();
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_FALSE;
    scene.job.status.conditions[CONDITION_SUCCEEDED].status = CONDITION_TRUE;
    struct pods_ready pods = queue_pods_ready(&workload, &scene.job.status);
    cr_assert(pods.ready);
    cr_assert_str_eq(pods.reason, "Started");
}

/* After a restart of the operator, or while Kueue is being installed anew. */
Test(queue, a_crew_that_runs_is_not_ended_because_the_cache_is_empty)
{
    run();
    static const enum optional_state states[] = {OPTIONAL_UNKNOWN, OPTIONAL_MISSING};
    for (size_t i = 0; i < 2; i++) {
        scene.input.queue.state = states[i];
        scene.input.queue.workload = NULL;
        expect_plan("actions=0 state=Running");
    }
}

Test(queue, without_kueue_a_new_job_waits_and_says_so)
{
    scene.input.queue.state = OPTIONAL_MISSING;
    scene_turn(&scene);
    expect_turn("Suspended:True=KueueMissing actions=0");
    cr_assert_leq(scene.plan.requeue_ms, scene.input.now_ms + OPTIONAL_RETRY_MS);
}

Test(queue, a_suspended_job_gives_its_workload_back_after_its_pods)
{
    run();
    scene.job.suspend = true;
    for (int i = 0; i < 2; i++)
        expect_turn("delete_workload=0 (pods run on its quota)");
    scene.input.pod_count = 0;
    expect_turn("Suspended:True=Suspended");
    expect_plan("delete_workload=1");
    workload.deleting = true;
    expect_plan("delete_workload=0");
}

Test(queue, a_flavor_that_is_not_known_is_waited_for)
{
    admit();
    scene.input.queue.missing_flavor = "spot";
    scene_turn(&scene);
    expect_plan("create_pod=0 Scheduled:False=FlavorMissing");
}

Test(queue, another_jobs_workload_admits_nothing)
{
    admit();
    workload.owner_uid = "another";
    scene_turn(&scene);
    expect_turn("actions=0 job.attempt=0");
}

Test(queue, a_workload_that_lost_its_owner_is_the_jobs_by_its_label)
{
    run();
    workload.owner_uid = "";
    expect_plan("actions=0 Running:True=CrewComplete");
    workload.job_uid = "another";
    expect_plan("Suspended:False=Suspending");
}

static void be_elastic(int64_t wanted)
{
    scene.job.elastic = (struct elastic_spec){true, 1, 8, wanted};
    scene.job.document.workers = wanted;
}

/* As training_job_parse does, once the status has the number. */
static void parse_again(void)
{
    int64_t admitted = scene.job.status.admitted_workers, wanted = scene.job.elastic.wanted_workers;
    scene.job.document.workers = admitted != FIELD_UNSET && admitted < wanted ? admitted : wanted;
}

Test(queue, an_elastic_crew_has_as_many_workers_as_were_admitted)
{
    be_elastic(3);
    workload.workers = 3;
    workload.admitted_workers = 2;
    scene_turn(&scene);
    admit();
    expect_turn("attempt=0 events=1 create_pod=0 (the number is written first)");
    cr_assert_eq(scene.job.status.admitted_workers, 2);
    parse_again();
    expect_turn("job.attempt=1 job.workers=2");
    expect_plan("create_pod=2");
}

/* As by an API server whose definition of TrainingJob is older than the field. */
static void drop_number(void)
{
    scene_turn(&scene);
    scene.job.status.admitted_workers = FIELD_UNSET;
}

Test(queue, a_job_that_is_admitted_whole_does_not_wait_for_the_number)
{
    be_elastic(2);
    workload.workers = 8;
    workload.admitted_workers = 8; /* by an earlier operator, which asked for the most */
    admit();
    for (int turn = 0; turn < 3; turn++)
        drop_number();
    scene_expect("job.attempt=1 create_pod=2 events=0");
    scene_renew();
    run();
    be_elastic(2);
    workload.workers = workload.admitted_workers = 2;
    drop_number();
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_turn("restart_count=1 (its crew is looked after)");
    cr_assert_eq(scene.job.status.admitted_workers, 2, "which bounds it later");
}

Test(queue, a_job_that_is_scaled_beyond_its_quota_is_told)
{
    be_elastic(2);
    workload.workers = workload.admitted_workers = 2;
    run();
    scene_turn(&scene);
    be_elastic(3);
    scene.job.generation++;
    parse_again();
    expect_turn("event=AdmittedInPart job.workers=2 worker.pending=none");
    expect_turn("events=0");
}

Test(queue, the_number_goes_with_the_admission)
{
    be_elastic(2);
    workload.workers = 3;
    workload.admitted_workers = 2;
    run();
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.admitted_workers, 2);
    workload.evicted = true;
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.admitted_workers, 2);
    scene.input.pod_count = 0;
    scene_turn(&scene);
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.admitted_workers, FIELD_UNSET);
}

Test(queue, a_job_that_is_scaled_while_it_waits_keeps_its_workload)
{
    be_elastic(3);
    scene.input.queue.workload = &workload;
    workload.workers = 3;
    scene_turn(&scene);
    expect_turn("delete_workload=0 resize_workload=0");
    be_elastic(4);
    expect_plan("delete_workload=0 resize_workload=1");
    scene.job.queue_name = "another";
    expect_plan("delete_workload=1 resize_workload=0 (the next one asks for all)");
    scene.job.queue_name = (char *)workload.queue_name;
    workload.reserved = true;
    expect_plan("resize_workload=0 (its quota is reserved)");
}

static void expect_size(int64_t workers, int64_t least, const char *expected)
{
    SCOPED_JSON *size = queue_build_size(&scene.job, "v1beta2", "digits", workers, least);
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    cr_assert_eq(json_print(json_at(size, "spec"), &text, NULL), 0);
    cr_assert_str_eq(buffer_text(&text), expected);
    cr_assert_str_eq(json_string_at(size, "metadata.name", ""), "digits");
}

Test(queue, the_size_of_a_workload_is_its_workers)
{
    be_elastic(4);
    expect_size(4, queue_least_workers(&scene.job, 4),
                "{\"podSets\":[{\"name\":\"worker\",\"count\":4,\"minCount\":1}]}");
    expect_size(1, queue_least_workers(&scene.job, 1), "{\"podSets\":[{\"name\":\"worker\",\"count\":1}]}");
}

/* ---------------------------------------------------------------- quota that follows the number of workers */

/* Of four workers with quota for four. */
static void run_sliced(void)
{
    be_elastic(4);
    scene.job.queue_elastic = true;
    scene.job.document.workers = 4;
    workload.workers = workload.admitted_workers = 4;
    workload.least_workers = 1;
    run();
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.admitted_workers, 4);
}

static void scale_to(int64_t wanted)
{
    be_elastic(wanted);
    scene.job.generation++;
    parse_again();
}

/* The pods above the number are gone. */
static void lose_pods_from(size_t count)
{
    scene.pod_count = scene.input.pod_count = count;
}

Test(queue, quota_goes_back_after_the_pods)
{
    run_sliced();
    scale_to(2);
    expect_turn("resize_workload=0 job.workers=2 (first the status says so)");
    cr_assert_eq(scene.job.status.admitted_workers, 2);
    expect_turn("delete_pod=2 resize_workload=0");
    lose_pods_from(3);
    expect_plan("resize_workload=0 (one is left)");
    lose_pods_from(2);
    expect_plan("resize_workload=1 Running:True=CrewComplete");
    cr_assert_eq(scene.plan.actions[0].workers, 2);
    cr_assert_eq(scene.plan.actions[0].workload, &workload);
    workload.workers = workload.admitted_workers = 2;
    expect_turn("actions=0");
    cr_assert_eq(scene.job.status.admitted_workers, 2);
}

Test(queue, a_job_that_grows_again_before_its_quota_went_back_has_it_still)
{
    run_sliced();
    scale_to(2);
    scene_turn(&scene);
    scale_to(4);
    cr_assert_eq(scene.job.document.workers, 2);
    expect_turn("resize_workload=0 events=0");
    cr_assert_eq(scene.job.status.admitted_workers, 4);
    parse_again();
    expect_turn("job.workers=4");
}

/* Kueue's cached Workloads after the plan asked for another one. */
static void see_slice(int64_t workers)
{
    slice = workload;
    slice.name = "digits.slice";
    slice.uid = "slice-uid";
    slice.slice = workload.slice + 1;
    slice.workers = workers;
    slice.least_workers = slice.admitted_workers = 0;
    slice.reserved = slice.admitted = slice.has_admission = slice.pods_ready = false;
    slice.pods_ready_reason = "";
    slice.waiting = "insufficient quota";
    scene.input.queue.slice = &slice;
}

static void admit_slice(void)
{
    slice.reserved = slice.admitted = slice.has_admission = true;
    slice.admitted_workers = slice.workers;
    slice.waiting = "";
}

/* Of four workers, with another Workload that asks for six. */
static void run_and_ask(void)
{
    run_sliced();
    scale_to(6);
    expect_turn("create_slice=1 job.workers=4 event=AdmittedInPart");
    cr_assert_eq(scene.plan.actions[0].workers, 6);
    cr_assert_eq(scene.plan.actions[0].workload, &workload);
    see_slice(6);
    expect_turn("actions=0 Scheduled:True=GrowthQueued Running:True=CrewComplete");
    cr_assert_str_eq(scene.job.status.conditions[CONDITION_SCHEDULED].message,
                     "2 more workers wait in queue research: insufficient quota");
}

Test(queue, a_crew_grows_once_kueue_has_admitted_the_workload_that_asks_for_more)
{
    run_and_ask();
    workload.finished = workload.replaced = true;
    expect_turn("actions=0 Running:True=CrewComplete (Kueue admits the other one in a moment)");
    admit_slice();
    expect_plan("delete_workload=1 create_pod=0");
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.admitted_workers, 6);
    scene.input.queue.workload = NULL;
    parse_again();
    expect_turn("job.workers=6");
    expect_plan("create_pod=2 delete_pod=0 create_workload=0 create_slice=0");
}

Test(queue, the_name_of_the_first_workload_is_that_of_the_third)
{
    run_and_ask();
    admit_slice();
    workload.deleting = true;
    scene_turn(&scene);
    scale_to(8);
    scene_turn(&scene);
    expect_plan("create_slice=0 (the name is taken)");
    scene.input.queue.workload = NULL;
    expect_plan("create_slice=1");
    cr_assert_eq(scene.plan.actions[0].workload, &slice);
    workload.deleting = workload.admitted = workload.reserved = false;
    workload.slice = 2;
    workload.workers = 8;
    scene.input.queue.workload = &workload;
    expect_plan("create_slice=0 delete_workload=0 resize_workload=0");
}

/* In one turn of 30 seconds the operator does not know whether Kueue will admit the other Workload. */
Test(queue, a_replacement_that_is_not_admitted_is_an_eviction)
{
    run_and_ask();
    workload.finished = workload.replaced = true;
    expect_turn("actions=0");
    cr_assert(scene.plan.queue_replaces);
    cr_assert_leq(scene.plan.requeue_ms, scene.input.now_ms + 30000);
    scene.input.queue.replaced_since_ms = scene.input.now_ms - 29999;
    expect_plan("actions=0 Running:True=CrewComplete");
    scene.input.queue.replaced_since_ms = scene.input.now_ms - 30000;
    slice.reserved = true;
    expect_plan("actions=0 (it has quota, and waits for a check)");
    slice.reserved = false;
    expect_turn("delete_workload=1 Suspended:False=Suspending");
    cr_assert(scene.plan.queue_replaces, "the decision stands");
    expect_turn("delete_pod=4");
}

Test(queue, a_job_that_does_not_want_more_after_all_asks_for_what_it_has)
{
    run_and_ask();
    scale_to(5);
    expect_plan("resize_workload=1");
    cr_assert_eq(scene.plan.actions[0].workload, &slice);
    cr_assert_eq(scene.plan.actions[0].workers, 5);
    cr_assert_eq(scene.plan.actions[0].least_workers, 0);
    scale_to(2);
    expect_turn("resize_workload=1 delete_workload=0");
    cr_assert_eq(scene.plan.actions[0].workers, 4, "pods use that quota");
    slice.workers = 4;
    expect_turn("resize_workload=0 delete_pod=2 Scheduled:True=AllScheduled");
    lose_pods_from(2);
    expect_plan("resize_workload=1");
    cr_assert_eq(scene.plan.actions[0].workload, &workload);
    workload.workers = workload.admitted_workers = 2;
    expect_plan("resize_workload=1");
    cr_assert_eq(scene.plan.actions[0].workload, &slice);
    cr_assert_eq(scene.plan.actions[0].workers, 2);
}

Test(queue, an_eviction_withdraws_what_asks_for_more)
{
    run_and_ask();
    workload.evicted = true;
    expect_turn("delete_workload=1 Suspended:False=Suspending");
    cr_assert_eq(scene.plan.actions[0].workload, &slice);
    scene.input.queue.slice = NULL;
    expect_turn("delete_pod=4");
    lose_pods_from(0);
    scene_turn(&scene);
    expect_turn("release_workload=1");
    workload.reserved = workload.admitted = false;
    expect_plan("resize_workload=1 clear_admission=1 (it asks for all)");
}

Test(queue, a_suspended_job_and_one_that_has_ended_leave_nothing)
{
    run_and_ask();
    scene.job.suspend = true;
    scene_turn(&scene);
    scene_turn(&scene);
    lose_pods_from(0);
    scene_turn(&scene);
    expect_plan("delete_workload=2");
    scene.job.suspend = false;
    succeed();
    expect_plan("delete_workload=1 tell_workload=1");
}

Test(queue, more_is_asked_for_only_where_that_makes_sense)
{
    run_sliced();
    scale_to(6);
    expect_plan("create_slice=1");
    scene.input.queue.change_retry_ms = scene.input.now_ms + 1;
    expect_plan("create_slice=0 (it was refused)");
    scene.input.queue.change_retry_ms = 0;
    scene.job.queue_elastic = false;
    expect_plan("create_slice=0");
    scene.job.queue_elastic = true;
    scene.job.queue_name = "another";
    expect_plan("create_slice=0 (it wants quota of another queue)");
    scene.job.queue_name = "research";
    see_slice(6);
    slice.owner_uid = slice.job_uid = "another";
    expect_plan("create_slice=0 delete_workload=0 (another job has the name)");
}

Test(queue, a_job_whose_workload_was_replaced_by_one_that_is_gone_asks_anew)
{
    run_sliced();
    workload.finished = workload.replaced = true;
    expect_turn("delete_workload=1 create_workload=0 Suspended:False=Suspending");
    scene.input.queue.workload = NULL;
    expect_plan("create_workload=1");
}

Test(queue, no_less_quota_is_kept_than_mincount)
{
    run_sliced();
    workload.least_workers = 3;
    scale_to(2);
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.admitted_workers, 3);
    lose_pods_from(2);
    expect_plan("resize_workload=1");
    cr_assert_eq(scene.plan.actions[0].workers, 3);
}

Test(queue, quota_is_kept_where_the_job_or_kueue_does_not_allow_less)
{
    run_sliced();
    scale_to(2);
    scene_turn(&scene);
    lose_pods_from(2);
    expect_plan("resize_workload=1");
    scene.input.queue.change_retry_ms = scene.input.now_ms + 60000;
    expect_plan("resize_workload=0 (it was refused)");
    cr_assert_leq(scene.plan.requeue_ms, scene.input.now_ms + 60000);
    scene.input.queue.change_retry_ms = scene.input.now_ms;
    expect_plan("resize_workload=1");
    workload.has_topology = true;
    expect_plan("resize_workload=0 (its nodes stay its own)");
    workload.has_topology = false;
    scene.job.queue_workload = "digits";
    expect_plan("resize_workload=0 (it is MultiKueue's)");
    scene.job.queue_workload = NULL;
    scene.job.queue_elastic = false;
    expect_plan("resize_workload=0 (the job does not ask for it)");
    scene.job.queue_elastic = true;
    workload.evicted = true;
    expect_plan("resize_workload=0 (all of its quota goes)");
}

/* ---------------------------------------------------------------- what is read and written */

static const char *flavor(void *context, const char *name)
{
    (void)context;
    if (strcmp(name, "spot") == 0)
        return "{\"nodeSelector\":{\"pool\":\"spot\"},\"tolerations\":[{\"key\":\"spot\"}]}";
    return strcmp(name, "gpu") == 0 ? "{\"nodeSelector\":{\"gpu\":\"a\"}}" : NULL;
}

static void expect(const struct json *json, const char *expected)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    cr_assert_eq(json_print(json, &text, NULL), 0);
    cr_assert_str_eq(buffer_text(&text), expected);
}

#define ADMITTED(flavors)                                                                                              \
    "{\"metadata\":{\"uid\":\"w\",\"labels\":{\"coxswain.dev/"                                                         \
    "job-uid\":\"l\"},\"ownerReferences\":[{\"uid\":\"j\",\"controller\":true}]},\"status\":{"                         \
    "\"conditions\":["                                                                                                 \
    "{\"type\":\"QuotaReserved\",\"status\":\"True\"},{\"type\":\"Admitted\",\"status\":\"True\"},"                    \
    "{\"type\":\"Evicted\",\"status\":\"True\",\"reason\":\"Preempted\",\"message\":\"m\"},"                           \
    "{\"type\":\"PodsReady\",\"status\":\"False\",\"reason\":\"WaitForRecovery\"}],"                                   \
    "\"admission\":{\"podSetAssignments\":[{\"name\":\"worker\","                                                      \
    "\"flavors\":{" flavors "}}]},\"admissionChecks\":[{\"podSetUpdates\":[{\"name\":\"worker\",\"nodeSelector\":"     \
    "{\"rack\":\"7\"},\"tolerations\":[{\"key\":\"t\"}],\"labels\":{\"asked\":\"r1\",\"mine\":\"no\"},"                \
    "\"annotations\":{\"consume\":\"r1\"}},{\"name\":\"nobody\",\"labels\":{\"no\":\"no\"}}]}]}}"

Test(queue, a_workload_is_read)
{
    SCOPED_JSON *object = json_of(ADMITTED("\"cpu\":\"spot\""));
    SCOPED_FREE struct workload_view *view = workload_view_new(object);
    cr_assert(view->reserved && view->admitted && view->evicted && view->has_admission && !view->finished);
    cr_assert(!view->pods_ready);
    cr_assert_str_eq(view->pods_ready_reason, "WaitForRecovery");
    cr_assert_str_eq(view->uid, "w");
    cr_assert_str_eq(view->owner_uid, "j");
    cr_assert_str_eq(view->job_uid, "l");
    cr_assert_str_eq(view->evicted_reason, "Preempted");
}

Test(queue, flavors_and_checks_say_where_pods_belong)
{
    SCOPED_JSON *object = json_of(ADMITTED("\"cpu\":\"spot\",\"memory\":\"spot\",\"nvidia.com/gpu\":\"gpu\""));
    SCOPED_FREE struct workload_view *view = workload_view_new(object);
    char *missing = NULL;
    SCOPED_JSON *placement = queue_placement(view, flavor, NULL, &missing);
    cr_assert_null(missing);
    SCOPED_JSON *pod = json_of("{\"metadata\":{\"labels\":{\"mine\":\"1\"}},\"spec\":{\"nodeSelector\":{\"own\":\"1\"},"
                               "\"tolerations\":[{\"key\":\"o\"}]}}");
    queue_place(pod, ROLE_WORKER, placement);
    expect(json_member(pod, "spec"), "{\"nodeSelector\":{\"own\":\"1\",\"pool\":\"spot\",\"gpu\":\"a\",\"rack\":\"7\"},"
                                     "\"tolerations\":[{\"key\":\"o\"},{\"key\":\"spot\"},{\"key\":\"t\"}]}");
    expect(json_member(pod, "metadata"),
           "{\"labels\":{\"mine\":\"1\",\"asked\":\"r1\",\"kueue.x-k8s.io/podset\":\"worker\"},"
           "\"annotations\":{\"consume\":\"r1\"}}");
}

Test(queue, pods_wait_for_their_topology_domain)
{
    SCOPED_JSON *object =
        json_of("{\"metadata\":{\"name\":\"digits\"},\"spec\":{\"podSets\":[{\"name\":\"worker\",\"count\":4}]},"
                "\"status\":{\"admission\":{\"podSetAssignments\":[{\"name\":\"chief\",\"count\":1},{\"name\":"
                "\"worker\",\"count\":3,\"topologyAssignment\":{\"levels\":[\"rack\"]}}]}}}");
    SCOPED_FREE struct workload_view *view = workload_view_new(object);
    cr_assert_eq(view->workers, 4);
    cr_assert_eq(view->admitted_workers, 3);
    cr_assert_not(view->pins_nodes);
    cr_assert(view->has_topology);
    SCOPED_JSON *nodes =
        json_of("{\"status\":{\"admission\":{\"podSetAssignments\":[{\"name\":\"worker\",\"topologyAssignment\":{"
                "\"levels\":[\"rack\",\"kubernetes.io/hostname\"]}}]}}}");
    SCOPED_FREE struct workload_view *on_nodes = workload_view_new(nodes);
    cr_assert(on_nodes->pins_nodes);
    char *missing = NULL;
    SCOPED_JSON *placement = queue_placement(view, flavor, NULL, &missing);
    SCOPED_JSON *worker = json_of("{\"metadata\":{},\"spec\":{}}"), *chief = json_copy(worker);
    queue_place(worker, ROLE_WORKER, placement);
    expect(
        worker,
        "{\"metadata\":{\"labels\":{\"kueue.x-k8s.io/podset\":\"worker\"},\"annotations\":{\"kueue.x-k8s.io/workload\":"
        "\"digits\"}},\"spec\":{\"schedulingGates\":[{\"name\":\"kueue.x-k8s.io/topology\"}]}}");
    queue_place(chief, ROLE_CHIEF, placement);
    expect(chief, "{\"metadata\":{\"labels\":{\"kueue.x-k8s.io/podset\":\"chief\"}},\"spec\":{}}");
}

Test(queue, a_lowered_number_is_what_has_quota)
{
    SCOPED_JSON *object = json_of(
        "{\"metadata\":{\"name\":\"digits\"},\"spec\":{\"podSets\":[{\"name\":\"worker\",\"count\":2,\"minCount\":1}]},"
        "\"status\":{\"admission\":{\"podSetAssignments\":[{\"name\":\"worker\",\"count\":3}]}}}");
    SCOPED_FREE struct workload_view *view = workload_view_new(object);
    cr_assert_eq(view->admitted_workers, 2);
    cr_assert_eq(view->least_workers, 1);
    cr_assert_not(view->has_topology);
    cr_assert_str_eq(view->name, "digits");
}

Test(queue, a_flavor_that_is_missing_is_named)
{
    SCOPED_JSON *object = json_of(ADMITTED("\"cpu\":\"spot\",\"memory\":\"lost\""));
    SCOPED_FREE struct workload_view *view = workload_view_new(object);
    SCOPED_FREE char *missing = NULL;
    cr_assert_null(queue_placement(view, flavor, NULL, &missing));
    cr_assert_str_eq(missing, "lost");
}

#define JOB(LABELS)                                                                                                    \
    "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\",\"labels\":{" LABELS "\"kueue.x-k8s.io/"  \
    "queue-name\":\"research\"}},\"spec\":{\"image\":\"i\",\"workers\":{\"replicas\":2,\"minReplicas\":1,"             \
    "\"maxReplicas\":5},"                                                                                              \
    "\"chief\":{},\"pytorch\":{},\"runPolicy\":{\"priorityClassName\":\"high\"}}}"

static struct json *build(const char *manifest, const char *version)
{
    SCOPED_JSON *object = json_of(manifest);
    SCOPED(training_job_release) struct training_job job;
    struct error error = ERROR_INIT;
    cr_assert_eq(training_job_parse(object, &job, &error), 0, "%s", error.message);
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    struct json *built = NULL;
    cr_assert_eq(pod_builder_init(&builder, &job, &plan_options_default.pods, &error), 0);
    cr_assert_eq(queue_build_workload(&builder, version, 7, &built, &error), 0, "%s", error.message);
    return built;
}

Test(queue, a_workload_that_asks_for_more_names_the_one_that_it_replaces)
{
    SCOPED_JSON *first = build(JOB(""), "v1beta2");
    struct training_job job = {.name = "digits", .namespace = "ml"};
    queue_make_slice(first, &job, &workload, 4);
    cr_assert_str_eq(json_string_at(first, "metadata.name", ""), "digits.slice");
    const struct json *workers = json_next(json_first(json_at(first, "spec.podSets")));
    cr_assert_eq(json_integer_at(workers, "count", 0), 4);
    cr_assert_null(json_member(workers, "minCount"));
    const struct json *annotations = json_at(first, "metadata.annotations");
    cr_assert_str_eq(json_string(json_member(annotations, "kueue.x-k8s.io/workload-slice-replacement-for"), ""),
                     "ml/digits");
    cr_assert_str_eq(json_string(json_member(annotations, "kueue.x-k8s.io/elastic-job"), ""), "true");
    SCOPED_FREE struct workload_view *view = workload_view_new(first);
    cr_assert_eq(view->slice, 1);
    SCOPED_JSON *second = build(JOB(""), "v1beta2");
    queue_make_slice(second, &job, view, 5);
    cr_assert_str_eq(json_string_at(second, "metadata.name", ""), "digits");
    SCOPED_FREE struct workload_view *next = workload_view_new(second);
    cr_assert_eq(next->slice, 2);
}

Test(queue, a_workload_that_was_replaced_is_known_by_kueues_reason)
{
    SCOPED_JSON *object = json_of("{\"status\":{\"conditions\":[{\"type\":\"Finished\",\"status\":\"True\",\"reason\":"
                                  "\"WorkloadSliceReplaced\"}]}}");
    SCOPED_FREE struct workload_view *view = workload_view_new(object);
    cr_assert(view->finished && view->replaced);
    SCOPED_JSON *ended =
        json_of("{\"metadata\":{\"annotations\":{\"coxswain.dev/workload-slice\":\"-3\"}},\"status\":{"
                "\"conditions\":[{\"type\":\"Finished\",\"status\":\"True\",\"reason\":\"Succeeded\"}]}}");
    SCOPED_FREE struct workload_view *other = workload_view_new(ended);
    cr_assert(other->finished && !other->replaced);
    cr_assert_eq(other->slice, 0);
}

Test(queue, a_workload_of_an_elastic_crew_says_how_few_will_do)
{
    SCOPED_JSON *built = build(JOB(""), "v1beta2");
    cr_assert_str_eq(json_string_at(built, "spec.queueName", ""), "research");
    const struct json *sets = json_at(built, "spec.podSets"), *workers = json_next(json_first(sets));
    cr_assert_eq(json_count(sets), 2);
    cr_assert_eq(json_integer_at(workers, "count", 0), 2);
    cr_assert_eq(json_integer_at(workers, "minCount", 0), 1);
    cr_assert_null(json_member(json_first(sets), "minCount"));
    const struct json *container = json_first(json_at(workers, "template.spec.containers"));
    cr_assert_str_eq(json_string_at(container, "image", ""), "i");
    cr_assert_null(json_member(container, "env"));
}

Test(queue, a_template_asks_for_a_topology)
{
    static const struct {
        const char *annotation, *request;
    } cases[] = {
        {"podset-required-topology\":\"rack", "{\"podIndexLabel\":\"coxswain.dev/index\",\"required\":\"rack\"}"},
        {"podset-preferred-topology\":\"rack", "{\"podIndexLabel\":\"coxswain.dev/index\",\"preferred\":\"rack\"}"},
        {"podset-unconstrained-topology\":\"true", "{\"podIndexLabel\":\"coxswain.dev/index\",\"unconstrained\":true}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_FREE char *manifest = memory_format(
            "{\"metadata\":{\"name\":\"digits\"},\"spec\":{\"image\":\"i\",\"pytorch\":{},\"workers\":{\"template\":"
            "{\"metadata\":{\"annotations\":{\"kueue.x-k8s.io/%s\"}}}}}}",
            cases[i].annotation);
        SCOPED_JSON *built = build(manifest, "v1beta2");
        expect(json_at(json_first(json_at(built, "spec.podSets")), "topologyRequest"), cases[i].request);
    }
}

Test(queue, a_workload_has_the_priority_of_the_label_or_else_of_the_pods)
{
    static const struct {
        const char *manifest, *group, *kind, *name, *source;
    } cases[] = {
        {JOB(""), "scheduling.k8s.io", "PriorityClass", "high", "scheduling.k8s.io/priorityclass"},
        {JOB("\"kueue.x-k8s.io/priority-class\":\"urgent\","), "kueue.x-k8s.io", "WorkloadPriorityClass", "urgent",
         "kueue.x-k8s.io/workloadpriorityclass"},
        {JOB("\"kueue.x-k8s.io/priority-class\":\"\","), "scheduling.k8s.io", "PriorityClass", "high",
         "scheduling.k8s.io/priorityclass"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_JSON *built = build(cases[i].manifest, "v1beta2"), *older = build(cases[i].manifest, "v1beta1");
        cr_expect_eq(json_integer_at(built, "spec.priority", 0), 7);
        cr_expect_str_eq(json_string_at(built, "spec.priorityClassRef.group", ""), cases[i].group);
        cr_expect_str_eq(json_string_at(built, "spec.priorityClassRef.kind", ""), cases[i].kind);
        cr_expect_str_eq(json_string_at(built, "spec.priorityClassRef.name", ""), cases[i].name);
        cr_expect_str_eq(json_string_at(older, "spec.priorityClassName", ""), cases[i].name);
        cr_expect_str_eq(json_string_at(older, "spec.priorityClassSource", ""), cases[i].source);
    }
}

static const char *status_of(const struct json *config, const char *type)
{
    for (const struct json *item = json_first(json_at(config, "status.conditions")); item; item = json_next(item))
        if (strcmp(json_string_at(item, "type", ""), type) == 0)
            return json_string_at(item, "status", "");
    return "";
}

Test(queue, a_preempted_job_is_requeued_at_once)
{
    workload.evicted_reason = "Preempted";
    SCOPED_JSON *preempted = queue_build_release(&scene.job, "v1beta2", &workload, SCENE_NOW);
    cr_assert_str_eq(status_of(preempted, "QuotaReserved"), "False");
    cr_assert_str_eq(status_of(preempted, "Requeued"), "True");
    workload.evicted_reason = "PodsReadyTimeout";
    SCOPED_JSON *late = queue_build_release(&scene.job, "v1beta2", &workload, SCENE_NOW);
    cr_assert_str_eq(status_of(late, "Requeued"), "False");
}

Test(queue, what_is_told_is_what_was_planned)
{
    admit();
    workload.pods_ready_reason = "WaitForRecovery";
    scene_run(&scene);
    scene_turn(&scene);
    SCOPED_JSON *config = queue_build_status(&scene.job, "v1beta2", &workload, &scene.job.status, SCENE_NOW);
    const struct json *condition = json_first(json_at(config, "status.conditions"));
    cr_assert_str_eq(json_string_at(condition, "type", ""), "PodsReady");
    cr_assert_str_eq(json_string_at(condition, "status", ""), "True");
    cr_assert_str_eq(json_string_at(condition, "reason", ""), "Recovered");
}

/* A pod that is lost while nobody knows the flavor must not come up anywhere. */
Test(queue, a_successor_waits_until_its_place_is_known)
{
    run();
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    scene.pods[1].current = false;
    scene.input.queue.state = OPTIONAL_UNKNOWN;
    scene.input.queue.workload = NULL;
    scene.input.queue.refusal = "workloads is forbidden";
    scene.input.now_ms += 60000;
    expect_plan("create_pod=0 Scheduled:False=Queued");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_SCHEDULED].message, "workloads is forbidden"));
    scene.input.queue.state = OPTIONAL_READY;
    scene.input.queue.workload = &workload;
    expect_plan("create_pod=1");
}

/* ---- a Workload that the API server does not take */

static void refuse_workload(enum obstacle_kind kind)
{
    scene_turn(&scene);
    scene.input.memory.obstacle = (struct obstacle){kind, "workloads digits exists", scene.input.now_ms + 2000, NULL};
}

Test(queue, a_workload_that_is_refused_is_told_and_tried_again_later)
{
    refuse_workload(OBSTACLE_NAME_TAKEN);
    expect_turn("create_workload=0");
    cr_assert_leq(scene.plan.requeue_ms, scene.input.now_ms + 2000);
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_SUSPENDED].message,
                     "waiting in queue research: workloads digits exists");
    scene.input.now_ms += 2000;
    expect_turn("create_workload=1");
    scene.input.queue.workload = &workload;
    scene.input.service = &scene.service;
    scene_plan(&scene);
    cr_assert(scene.plan.obstacle_over);
}

Test(queue, a_workload_that_is_refused_for_good_ends_the_job)
{
    refuse_workload(OBSTACLE_REJECTED);
    expect_plan("Failed:True=PodRejected");
}

/* ---- MultiKueue */

Test(queue, a_copy_of_multikueue_takes_its_workload_and_leaves_its_deletion_to_it)
{
    scene.job.queue_workload = scene.job.name;
    scene.input.queue.workload = &workload;
    workload.owner_uid = "";
    workload.job_uid = "of the job in the other cluster";
    expect_plan("create_workload=1 (takes it)");
    workload.owner_uid = workload.job_uid = SCENE_UID;
    scene_turn(&scene);
    scene.job.queue_name = "production";
    expect_plan("delete_workload=0 (another queue)");
    scene.job.queue_name = NULL;
    expect_plan("delete_workload=0 (no queue)");
    scene.job.queue_name = "research";
    scene.job.suspend = true;
    scene_turn(&scene);
    expect_plan("delete_workload=0 (suspended)");
}

Test(queue, a_job_that_multikueue_sends_away_has_only_a_workload_here)
{
    scene.job.managed_by = MANAGED_BY_MULTIKUEUE;
    expect_turn("create_workload=1 actions=1 attempt=0 Suspended:True=Queued");
    admit();
    expect_plan("actions=0 write_status=0 (it runs elsewhere)");
    scene.job.status.attempt = 1;
    scene.job.status.conditions[CONDITION_SUSPENDED].status = CONDITION_ABSENT;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_TRUE;
    scene.job.status.replicas[ROLE_WORKER].ready = 2;
    expect_plan("actions=0 write_status=0 (Kueue writes the copy's status)");
    scene.job.suspend = true;
    expect_plan("delete_workload=1 actions=1 write_status=1 Suspended:True=Suspended Running:False=Suspended");
    expect_plan("worker.ready=0 (the copy is deleted)");
    scene.job.suspend = false;
    scene.job.status.conditions[CONDITION_SUCCEEDED].status = CONDITION_TRUE;
    scene.input.queue.workload = NULL;
    expect_plan("actions=0 write_status=0 (it is over)");
}

Test(queue, a_job_that_was_sent_away_gives_its_quota_back_when_it_is_evicted)
{
    scene.job.managed_by = MANAGED_BY_MULTIKUEUE;
    admit();
    scene.job.status.attempt = 1;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_TRUE;
    workload.evicted = true;
    expect_turn("release_workload=1 actions=1 Suspended:True=Evicted Running:False=Suspended");
    workload.reserved = workload.admitted = false;
    expect_plan("clear_admission=1 actions=1");
    workload.has_admission = workload.evicted = false;
    expect_turn("actions=0 Suspended:True=Queued");
    workload.reserved = workload.admitted = true;
    scene.job.queue_name = NULL;
    expect_plan("actions=0 (it keeps the quota that it has)");
    scene.input.queue.workload = NULL;
    expect_plan("actions=0 Suspended:True=Queued (no queue can send it away)");
}

Test(queue, a_wrong_job_is_not_sent_away)
{
    scene.job.managed_by = MANAGED_BY_MULTIKUEUE;
    scene.input.invalid = "training.batchSize: -3 is below 1";
    expect_plan("actions=0 write_status=0 events=1");
    cr_assert_str_eq(scene.plan.events[0].note, "training.batchSize: -3 is below 1");
}
