/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/gang.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/json_of.h"
#include "tests/unit/operator/controller/plan/scene.h"

static struct group_view group;

SCENE_SUITE(gang)
{
    scene_init(&scene, 3);
    scene.job.run_policy.gang = (struct gang_spec){
        .scheduler = GANG_VOLCANO, .min_available = FIELD_UNSET, .schedule_timeout_seconds = FIELD_UNSET};
    scene.input.gang.state = OPTIONAL_READY;
    group = (struct group_view){
        .uid = "group-uid", .owner_uid = SCENE_UID, .job_uid = SCENE_UID, .phase = "Inqueue", .words = ""};
}

static void begin(void)
{
    scene_turn(&scene);
    scene_plan(&scene);
}

Test(gang, the_group_comes_before_its_pods)
{
    begin();
    scene_expect("create_group=1 create_pod=0 Scheduled:False=PodGroupPending");
    scene.input.gang.group = &group;
    group.phase = "Pending";
    group.words = "2/3 tasks unschedulable";
    expect_plan("actions=0");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_SCHEDULED].message, "2/3 tasks unschedulable"));
    group.phase = "Inqueue";
    expect_plan("create_pod=3");
}

Test(gang, only_volcano_is_waited_for)
{
    scene.job.run_policy.gang.scheduler = GANG_COSCHEDULING;
    scene.input.gang.group = &group;
    group.phase = "";
    begin();
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 3);
}

Test(gang, a_missing_scheduler_is_named_and_looked_for_again)
{
    scene.input.gang.state = OPTIONAL_MISSING;
    begin();
    scene_expect("actions=0 Scheduled:False=GangSchedulerMissing");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_SCHEDULED].message, "scheduling.volcano.sh"));
    cr_assert_leq(scene.plan.requeue_ms, scene.input.now_ms + OPTIONAL_RETRY_MS);
    scene.input.gang.state = OPTIONAL_UNKNOWN;
    expect_plan("actions=0");
    cr_assert_lt(scene.plan.requeue_ms, scene.input.now_ms + 2000);
}

Test(gang, groups_that_may_not_be_seen_are_no_secret)
{
    scene.input.gang.state = OPTIONAL_UNKNOWN;
    begin();
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_SCHEDULED].message, "looking for"));
    scene.input.gang.refusal = "podgroups is forbidden: no role";
    expect_plan("Scheduled:False=PodGroupPending");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_SCHEDULED].message, "podgroups is forbidden: no role"));
    scene.input.memory.counts_since_ms = scene.input.now_ms;
    scene.input.now_ms += scene.options.count_write_max_ms;
    expect_plan("write_status=1");
}

Test(gang, the_group_of_an_earlier_job_is_waited_for)
{
    scene.input.gang.group = &group;
    group.owner_uid = "another";
    begin();
    cr_assert_eq(scene.plan.action_count, 0);
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_SCHEDULED].message, "earlier job"));
}

Test(gang, a_group_that_lost_its_owner_is_the_jobs_by_its_label)
{
    scene.input.gang.group = &group;
    group.owner_uid = "";
    begin();
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 3);
    group.job_uid = "another";
    expect_plan("actions=0");
}

Test(gang, the_restart_of_a_pod_leaves_the_group_alone)
{
    scene.input.gang.group = &group;
    scene_run(&scene);
    scene_end_pod(&scene, &scene.pods[1], 137);
    for (int turn = 0; turn < 3; turn++) {
        scene_plan(&scene);
        cr_assert_eq(scene_count(&scene, ACTION_DELETE_GROUP) + scene_count(&scene, ACTION_CREATE_GROUP), 0);
        scene_accept(&scene);
    }
}

Test(gang, the_group_goes_on_suspend)
{
    scene.input.gang.group = &group;
    scene_run(&scene);
    scene.job.suspend = true;
    expect_plan("delete_group=0 (first it is said)");
    scene_accept(&scene);
    expect_plan("delete_group=1");
    group.deleting = true;
    expect_plan("delete_group=0");
}

Test(gang, the_group_goes_at_the_end_unless_it_is_another_jobs)
{
    scene.input.gang.group = &group;
    scene_run(&scene);
    scene.job.status.conditions[CONDITION_FAILED].status = CONDITION_TRUE;
    scene.job.status.completion_ms = scene.input.now_ms;
    expect_plan("delete_group=1");
    group.owner_uid = "another";
    expect_plan("delete_group=0");
}

/* ---------------------------------------------------------------- what is written */

static struct json *build_version(struct training_job *job, const char *version)
{
    struct error error = ERROR_INIT;
    struct json *built = NULL;
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    cr_assert_eq(pod_builder_init(&builder, job, &plan_options_default.pods, &error), 0, "%s", error.message);
    cr_assert_eq(gang_build(&builder, version, &built, &error), 0, "%s", error.message);
    return built;
}

static struct json *build(struct training_job *job)
{
    return build_version(job, gang_kind_of(job->run_policy.gang.scheduler)->versions[0]);
}

#define JOB(roles, policy)                                                                                             \
    "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{\"image\":\"i\"," roles        \
    "\"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},"                                                   \
    "\"model\":{\"preset\":\"mlp\"},\"data\":{\"format\":\"Synthetic\",\"examples\":10},"                              \
    "\"training\":{\"steps\":1,\"batchSize\":8}},\"runPolicy\":{" policy "}}}"
#define CHIEF                                                                                                          \
    "\"chief\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"resources\":{\"requests\":"            \
    "{\"cpu\":\"2\"}}}]}}},"
#define WORKER                                                                                                         \
    "\"workers\":{\"replicas\":4,\"minReplicas\":2,\"maxReplicas\":8,\"template\":{\"spec\":{\"schedulerName\":"       \
    "\"mine\","                                                                                                        \
    "\"containers\":[{\"name\":\"trainer\",\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}]}}},"

static struct training_job parse(const char *text)
{
    struct training_job job;
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = json_of(text);
    cr_assert_eq(training_job_parse(object, &job, &error), 0, "%s", error.message);
    return job;
}

static void expect_spec(const struct json *object, const char *expected)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    cr_assert_eq(json_print(json_member(object, "spec"), &text, NULL), 0);
    cr_assert_str_eq(buffer_text(&text), expected);
}

Test(gang, volcano_is_told_members_tasks_queue_and_resources)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse(JOB(CHIEF WORKER, "\"priorityClassName\":\"high\",\"gang\":{\"scheduler\":\"Volcano\",\"queue\":\"q\"}"));
    SCOPED_JSON *built = build(&job);
    cr_assert_str_eq(json_string_at(built, "apiVersion", ""), "scheduling.volcano.sh/v1beta1");
    cr_assert_str_eq(json_string_at(built, "metadata.name", ""), "digits");
    expect_spec(built, "{\"minMember\":3,\"minTaskMember\":{\"chief\":1,\"worker\":2},\"queue\":\"q\","
                       "\"priorityClassName\":\"high\",\"minResources\":{\"cpu\":\"3\"}}");
}

Test(gang, coscheduling_is_told_members_resources_and_patience)
{
    SCOPED(training_job_release)
    struct training_job job = parse(JOB(CHIEF WORKER, "\"gang\":{\"scheduler\":\"Coscheduling\",\"minAvailable\":2,"
                                                      "\"scheduleTimeoutSeconds\":30}"));
    SCOPED_JSON *built = build(&job);
    expect_spec(built, "{\"minMember\":2,\"scheduleTimeoutSeconds\":30,\"minResources\":{\"cpu\":\"2500m\"}}");
}

Test(gang, only_workers_of_a_served_job_are_counted_with_devices)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse("{\"metadata\":{\"name\":\"digits\",\"namespace\":\"ml\",\"uid\":\"u-1\"},\"spec\":{\"image\":\"i\","
              "\"workers\":{\"replicas\":4},\"chief\":{},\"parameterServers\":{\"replicas\":4},"
              "\"devices\":{\"type\":\"GPU\",\"count\":8},\"coxswain\":{\"strategy\":{\"type\":\"ParameterServer\"},"
              "\"model\":{\"preset\":\"mlp\"},\"data\":{\"format\":\"Synthetic\",\"examples\":10},"
              "\"training\":{\"steps\":1,\"batchSize\":8}},"
              "\"runPolicy\":{\"gang\":{\"scheduler\":\"Coscheduling\"}}}}");
    SCOPED_JSON *built = build(&job);
    expect_spec(built, "{\"minMember\":9,\"minResources\":{\"nvidia.com/gpu\":\"32\"}}");
}

Test(gang, the_native_group_has_a_gang_policy)
{
    SCOPED(training_job_release)
    struct training_job job = parse(JOB(CHIEF WORKER, "\"gang\":{\"scheduler\":\"Native\"}"));
    SCOPED_JSON *built = build(&job);
    expect_spec(built, "{\"schedulingPolicy\":{\"gang\":{\"minCount\":3}}}");
}

Test(gang, a_native_group_that_can_do_without_no_pod_is_preempted_whole)
{
    SCOPED(training_job_release)
    struct training_job job = parse(JOB("\"workers\":{\"replicas\":3},", "\"gang\":{\"scheduler\":\"Native\"}"));
    SCOPED_JSON *built = build(&job);
    expect_spec(built, "{\"schedulingPolicy\":{\"gang\":{\"minCount\":3}},\"disruptionMode\":{\"all\":{}}}");
    SCOPED_JSON *older = build_version(&job, "v1alpha2");
    expect_spec(older, "{\"schedulingPolicy\":{\"gang\":{\"minCount\":3}},\"disruptionMode\":\"PodGroup\"}");
}

Test(gang, the_native_group_has_the_jobs_topology)
{
    SCOPED(training_job_release)
    struct training_job job =
        parse(JOB(CHIEF WORKER, "\"gang\":{\"scheduler\":\"Native\",\"topologyKey\":\"example.com/rack\"}"));
    SCOPED_JSON *built = build(&job);
    expect_spec(built, "{\"schedulingPolicy\":{\"gang\":{\"minCount\":3}},"
                       "\"schedulingConstraints\":{\"topology\":[{\"key\":\"example.com/rack\"}]}}");
}

/* Kubernetes refuses a pod with another priority than its group's. */
Test(gang, the_native_group_has_the_priority_of_its_pods)
{
    static const struct {
        const char *policy, *template;
    } cases[] = {
        {"\"priorityClassName\":\"high\",", ""},
        {"\"priorityClassName\":\"low\",", "\"priorityClassName\":\"high\","},
        {"", "\"priorityClassName\":\"high\","},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_FREE char *text =
            memory_format(JOB("\"workers\":{\"replicas\":4,\"minReplicas\":2,\"maxReplicas\":8,"
                              "\"template\":{\"spec\":{%s\"containers\":[{\"name\":\"trainer\"}]}}},",
                              "%s\"gang\":{\"scheduler\":\"Native\"}"),
                          cases[i].template, cases[i].policy);
        SCOPED(training_job_release) struct training_job job = parse(text);
        SCOPED_JSON *built = build(&job);
        expect_spec(built, "{\"priorityClassName\":\"high\",\"schedulingPolicy\":{\"gang\":{\"minCount\":2}}}");
    }
}

Test(gang, why_a_group_is_not_placed_is_read_as_each_scheduler_says_it)
{
    static const char *const conditions[][2] = {
        {"Unschedulable", "True"}, {"PodGroupScheduled", "False"}, {"PodGroupInitiallyScheduled", "False"}};
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        SCOPED_JSON *object = NULL;
        SCOPED_FREE char *text =
            memory_format("{\"status\":{\"conditions\":[{\"type\":\"%s\",\"status\":\"%s\",\"message\":\"no room\"}]}}",
                          conditions[i][0], conditions[i][1]);
        cr_assert_eq(json_parse(text, strlen(text), 4096, &object, NULL), 0);
        SCOPED_FREE struct group_view *view = group_view_new(object);
        cr_expect_str_eq(view->words, "no room", "%s", conditions[i][0]);
    }
}

static struct json *member(const struct training_job *job, enum role role)
{
    struct json *pod = NULL;
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    cr_assert_eq(pod_builder_init(&builder, job, &plan_options_default.pods, NULL), 0);
    cr_assert_eq(pod_build(&builder, role, 0, &pod, NULL), 0);
    return pod;
}

static const char *annotation(const struct json *pod, const char *key)
{
    return json_string(json_member(json_at(pod, "metadata.annotations"), key), "");
}

Test(gang, pods_are_marked_as_each_scheduler_wants)
{
    SCOPED(training_job_release)
    struct training_job job = parse(JOB(CHIEF WORKER, "\"gang\":{\"scheduler\":\"Volcano\"}"));
    SCOPED_JSON *volcano = member(&job, ROLE_CHIEF);
    cr_assert_str_eq(annotation(volcano, "scheduling.k8s.io/group-name"), "digits");
    cr_assert_str_eq(annotation(volcano, "volcano.sh/task-spec"), "chief");
    cr_assert_str_eq(json_string_at(volcano, "spec.schedulerName", ""), "volcano");
    SCOPED_JSON *given = member(&job, ROLE_WORKER);
    cr_assert_str_eq(json_string_at(given, "spec.schedulerName", ""), "mine", "what the template says wins");
    job.run_policy.gang.scheduler = GANG_COSCHEDULING;
    SCOPED_JSON *plugin = member(&job, ROLE_CHIEF);
    cr_assert_str_eq(json_string(json_member(json_at(plugin, "metadata.labels"), "scheduling.x-k8s.io/pod-group"), ""),
                     "digits");
    cr_assert_str_eq(json_string_at(plugin, "spec.schedulerName", ""), "scheduler-plugins-scheduler");
    job.run_policy.gang.scheduler = GANG_NATIVE;
    SCOPED_JSON *native = member(&job, ROLE_CHIEF);
    cr_assert_str_eq(json_string_at(native, "spec.schedulingGroup.podGroupName", ""), "digits");
    job.run_policy.gang.scheduler = GANG_NONE;
    SCOPED_JSON *alone = member(&job, ROLE_CHIEF);
    cr_assert_null(json_at(alone, "spec.schedulingGroup"));
    cr_assert_null(json_at(alone, "spec.schedulerName"));
}

Test(gang, a_group_whose_name_is_taken_is_tried_again_later)
{
    begin();
    scene.input.memory.obstacle = (struct obstacle){OBSTACLE_NAME_TAKEN, "taken", scene.input.now_ms + 2000, NULL};
    expect_plan("create_group=0 Scheduled:False=NameTaken");
    scene.input.now_ms += 2000;
    expect_plan("create_group=1");
}

Test(gang, that_the_api_is_gone_is_told_and_not_that_a_create_failed)
{
    begin();
    scene.input.memory.obstacle =
        (struct obstacle){OBSTACLE_OUTAGE, "the server could not find it", scene.input.now_ms + 2000, POD_GROUP_PLURAL};
    expect_plan("Scheduled:False=CreateFailed");
    scene.input.gang.state = OPTIONAL_UNKNOWN;
    scene_plan(&scene);
    cr_assert_not(scene.plan.obstacle_over, "nobody knows that it is gone");
    scene.input.gang.state = OPTIONAL_MISSING;
    expect_plan("Scheduled:False=GangSchedulerMissing");
    cr_assert(scene.plan.obstacle_over);
}

Test(gang, what_else_was_not_created_waits_its_time_without_the_api_too)
{
    static const enum optional_state states[] = {OPTIONAL_UNKNOWN, OPTIONAL_MISSING};
    begin();
    scene.input.service = NULL;
    scene.input.memory.obstacle =
        (struct obstacle){OBSTACLE_OUTAGE, "no answer from a webhook", scene.input.now_ms + 2000, "services"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        scene.input.gang.state = states[i];
        scene_plan(&scene);
        cr_assert_not(scene.plan.obstacle_over);
        scene_expect("create_service=0 Scheduled:False=CreateFailed");
    }
    scene.input.now_ms += 2000;
    expect_plan("create_service=1");
}
