/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/execute.h"

#include "operator/controller/objects/progress_push.h"
#include "tests/unit/json_of.h"
#include "tests/unit/operator/controller/plan/scene.h"
#include "tests/unit/operator/kube/loop_fixture.h"

static struct scene scene;
static struct event_recorder *recorder;
static struct job_entry *entry;
static struct {
    int calls;
    enum error_kind kind;
} done;

static void on_done(void *context, struct job_entry *about, const struct error *failed)
{
    (void)context;
    (void)about;
    done.calls++;
    done.kind = failed ? failed->kind : ERROR_NONE;
}

/* Also of what a test has started before. */
static void stop(void)
{
    event_recorder_free(recorder);
    fixture_stop();
    if (entry)
        job_entry_free(entry);
    scene_release(&scene);
    recorder = NULL;
    client = NULL;
    loop = NULL;
    entry = NULL;
}

static void start(scripted_handler *handler)
{
    stop();
    fixture_start(handler, NULL, NULL);
    recorder = event_recorder_new(client, &(struct event_recorder_options){.controller = "c", .instance = "i"});
    entry = job_entry_new("default/digits");
    scene_init_running(&scene, 2);
    job_entry_set_job(entry, scene.job.uid);
    scene.input.now_ms += 60000;
}

/* A job of which nothing was made yet. */
static void begin_afresh(void)
{
    scene_release(&scene);
    scene_init(&scene, 1);
    scene.input.memory.born_ms = SCENE_NOW;
}

static void start_afresh(scripted_handler *handler)
{
    start(handler);
    begin_afresh();
}

static void begin_to_execute(void)
{
    struct executor executor = {.client = client, .recorder = recorder, .options = &scene.options, .done = on_done};
    scene_plan(&scene);
    execute_plan(&executor, entry, &scene.job, &scene.plan);
}

static void execute(void)
{
    int before = done.calls;
    begin_to_execute();
    LOOP_UNTIL(done.calls == before + 1);
}

TestSuite(execute, .fini = stop, .timeout = 120);

#define PODS "POST /api/v1/namespaces/default/pods"
#define STRICT_PODS PODS "?fieldValidation=Strict"
#define GET_PODS "GET /api/v1/namespaces/default/pods"
#define SECRETS "POST /api/v1/namespaces/default/secrets"
#define GET_SECRETS "GET /api/v1/namespaces/default/secrets"
#define SERVICES "POST /api/v1/namespaces/default/services"
#define EVENTS "POST /apis/events.k8s.io"

static bool is_for(const struct scripted_request *request, const char *line)
{
    return strncmp(request->line, line, strlen(line)) == 0;
}

SCRIPTED_REPLY(make_anything, 201, "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"9\"}}")

/* A server that answers requests whose line begins with `line` so (code and body), and others as `otherwise` does. */
#define HANDLER(name, line, otherwise, ...)                                                                            \
    static void name(struct scripted_request *request)                                                                 \
    {                                                                                                                  \
        if (is_for(request, line))                                                                                     \
            scripted_reply(request, __VA_ARGS__);                                                                      \
        else                                                                                                           \
            otherwise(request);                                                                                        \
    }
#define STATUS(code, reason, message)                                                                                  \
    code, "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"code\":" #code ",\"message\":\"" message "\"}"

/* As a real API server says it: a patch is no precondition. */
SCRIPTED_REPLY(refuse_uid, 422,
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\",\"code\":422,\"message\":"
               "\"Pod is invalid: metadata.uid: Invalid value: field is immutable\",\"details\":{\"causes\":[{"
               "\"reason\":\"FieldValueInvalid\",\"field\":\"metadata.uid\",\"message\":\"immutable\"}]}}")

SCRIPTED_REPLY(refuse_label, 422,
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\",\"code\":422,\"message\":"
               "\"no\",\"details\":{\"causes\":[{\"field\":\"metadata.labels\",\"message\":\"no\"}]}}")

static void take_the_label_off(void)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    execute();
    cr_assert_gt(scripted_count(&server, "PATCH /api/v1/namespaces/default/pods/digits-worker-1-1"), 0);
}

Test(execute, the_label_of_a_pod_that_is_another_by_now_needs_no_removal)
{
    start(refuse_uid);
    take_the_label_off();
    cr_assert_eq(done.kind, ERROR_CONFLICT, "the cache is behind, nothing is wrong");
}

Test(execute, another_refusal_of_the_patch_is_told)
{
    start(refuse_label);
    take_the_label_off();
    cr_assert_eq(done.kind, ERROR_INVALID);
}

/* ---- the crew's key comes before the Service */

HANDLER(have_the_key, SECRETS, make_anything, STATUS(409, "AlreadyExists", ""))
HANDLER(forbid_secrets, SECRETS, make_anything, STATUS(403, "Forbidden", "no"))
HANDLER(have_no_room_for_secrets, SECRETS, make_anything,
        STATUS(403, "Forbidden",
               "secrets \\\"digits\\\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=4"))

static void execute_without_service(void)
{
    scene.input.service = NULL;
    execute();
}

static int position_of(const char *line)
{
    for (int i = 0; i < server.requests; i++)
        if (strncmp(server.log[i], line, strlen(line)) == 0)
            return i;
    return -1;
}

Test(execute, the_key_is_made_before_the_service)
{
    start(make_anything);
    execute_without_service();
    cr_assert_geq(position_of(SECRETS), 0);
    cr_assert_gt(position_of(SERVICES), position_of(SECRETS));
}

Test(execute, a_key_that_exists_is_the_jobs)
{
    start(have_the_key);
    execute_without_service();
    cr_assert_geq(position_of(SERVICES), 0);
    cr_assert_eq(scripted_count(&server, GET_SECRETS), 0, "it is not ours to read");
}

#define BUDGETS "POST /apis/policy/v1/namespaces/default/poddisruptionbudgets"
HANDLER(have_the_budget, BUDGETS, make_anything, STATUS(409, "AlreadyExists", ""))
HANDLER(forbid_budgets, BUDGETS, make_anything, STATUS(403, "Forbidden", "no"))

static void execute_with_budget(void)
{
    scene.job.run_policy.has_disruption_budget = true;
    scene.job.run_policy.disruption_budget.min_available = FIELD_UNSET;
    execute_without_service();
}

Test(execute, the_disruption_budget_is_made_before_the_service)
{
    start(make_anything);
    execute_with_budget();
    cr_assert_geq(position_of(BUDGETS), 0);
    cr_assert_gt(position_of(SECRETS), position_of(BUDGETS));
    cr_assert_gt(position_of(SERVICES), position_of(SECRETS));
}

Test(execute, a_disruption_budget_that_exists_is_the_jobs)
{
    start(have_the_budget);
    execute_with_budget();
    cr_assert_geq(position_of(SERVICES), 0);
}

Test(execute, without_its_disruption_budget_a_job_gets_no_service)
{
    start(forbid_budgets);
    execute_with_budget();
    cr_assert_eq(position_of(SECRETS), -1);
    cr_assert_eq(position_of(SERVICES), -1);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_FORBIDDEN);
}

Test(execute, without_a_key_there_is_no_service)
{
    start(forbid_secrets);
    execute_without_service();
    cr_assert_eq(position_of(SERVICES), -1);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_FORBIDDEN);
}

#define DRY SECRETS "?dryRun=All"

static void ask_for_key(scripted_handler *handler)
{
    start(handler);
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    scene.pods[1].current = false;
    scene.key_in_doubt = true;
    scene.input.memory.key_look = (struct crew_key_look){0};
    execute();
}

Test(execute, a_key_is_asked_for_and_not_made)
{
    ask_for_key(make_anything);
    cr_assert_eq(scripted_count(&server, DRY), 1);
    cr_assert_eq(scripted_count(&server, SECRETS), 1);
    cr_assert_not(entry->memory.key_look.there);
    cr_assert_eq(entry->memory.key_look.incarnation, scene.job.status.incarnation);
    ask_for_key(have_the_key);
    cr_assert(entry->memory.key_look.there);
    cr_assert_eq(done.kind, ERROR_NONE);
}

Test(execute, a_cluster_that_does_not_let_itself_be_asked_is_taken_to_have_it)
{
    scripted_handler *const refusals[] = {forbid_secrets, have_no_room_for_secrets};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        ask_for_key(refusals[i]);
        cr_assert(entry->memory.key_look.there);
        cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    }
}

/* ---- a certificate gives its place to another */

static bool asks_only(const struct scripted_request *request)
{
    return strstr(request->body, "\"dryRun\":[\"All\"]") != NULL;
}

static void have_a_certificate(struct scripted_request *request)
{
    bool precondition = strstr(request->body, "\"preconditions\":{\"uid\":\"old\"}") != NULL;
    if (!is_for(request, "DELETE") || asks_only(request) || precondition)
        scripted_reply(request, 200, "{\"kind\":\"Status\",\"details\":{\"uid\":\"old\"}}");
    else
        scripted_reply(request, 500, "{\"kind\":\"Status\",\"code\":500,\"message\":\"no precondition\"}");
}

static void have_a_newer_one_by_then(struct scripted_request *request)
{
    if (is_for(request, "DELETE") && !asks_only(request))
        scripted_reply(request, 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409,\"message\":\"\"}");
    else
        have_a_certificate(request);
}

HANDLER(have_no_certificate, "DELETE", make_anything, STATUS(404, "NotFound", ""))

#define CERTIFICATE "DELETE /api/v1/namespaces/default/secrets/digits-tls-job-uid--even"

/* The third is due, in the place of the first. */
static void replace_certificate(scripted_handler *handler)
{
    start(handler);
    scene.job.document.encryption = ENCRYPTION_TLS;
    scene.job.status.certificate_generation = 1;
    scene.job.status.certificate_from_ms = scene.input.now_ms - scene.options.certificate_period_ms;
    execute();
}

Test(execute, a_certificate_is_removed_by_its_uid_alone)
{
    replace_certificate(have_a_certificate);
    cr_assert_eq(scripted_count(&server, CERTIFICATE), 2, "asked, and removed");
    cr_assert_eq(scripted_count(&server, GET_SECRETS), 0, "it is not ours to read");
    cr_assert_eq(scripted_count(&server, SECRETS), 1);
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert_eq(entry->memory.certificate.number, 2);
}

Test(execute, a_newer_certificate_in_its_place_stays)
{
    replace_certificate(have_a_newer_one_by_then);
    cr_assert_eq(scripted_count(&server, SECRETS), 0);
    cr_assert_eq(done.kind, ERROR_CONFLICT, "the cache is behind");
}

Test(execute, a_certificate_that_is_gone_already_is_followed)
{
    replace_certificate(have_no_certificate);
    cr_assert_eq(scripted_count(&server, CERTIFICATE), 1);
    cr_assert_eq(scripted_count(&server, SECRETS), 1);
}

/* ---- a pod that has lost its owner */

static const char *job_answer;
static char applied[65536];

static void answer_for_job(struct scripted_request *request)
{
    if (is_for(request, "GET /apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs/digits"))
        scripted_reply(request, 200, job_answer);
    else if (is_for(request, "PATCH /api/v1/namespaces/default/pods/digits-worker-1-1"))
        snprintf(applied, sizeof applied, "%s", request->body), make_anything(request);
    else
        make_anything(request);
}

static void adopt(const char *job)
{
    start(answer_for_job);
    job_answer = job;
    applied[0] = '\0';
    scene.pods[1].owner_uid = "";
    scene.pods[1].adoptable = true;
    execute();
}

Test(execute, an_orphan_is_adopted_when_the_job_lives)
{
    adopt("{\"metadata\":{\"name\":\"digits\",\"uid\":\"" SCENE_UID "\"}}");
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert(strstr(applied, "\"uid\":\"uid-1\""), "that pod and no other: %s", applied);
    cr_assert(strstr(applied, "\"controller\":true"), "%s", applied);
    cr_assert_eq(entry->pod_write, 9, "the next plan waits to see it");
}

Test(execute, a_deleted_job_and_another_of_its_name_adopt_no_pods)
{
    adopt("{\"metadata\":{\"name\":\"digits\",\"uid\":\"" SCENE_UID
          "\",\"deletionTimestamp\":\"2026-11-20T14:00:00Z\"}}");
    cr_assert_eq(done.kind, ERROR_CONFLICT, "the cache is behind");
    cr_assert_str_eq(applied, "");
    adopt("{\"metadata\":{\"name\":\"digits\",\"uid\":\"another\"}}");
    cr_assert_str_eq(applied, "", "a job of the same name is another job");
}

Test(execute, for_many_orphans_the_job_is_asked_for_once)
{
    start(answer_for_job);
    job_answer = "{\"metadata\":{\"name\":\"digits\",\"uid\":\"" SCENE_UID "\"}}";
    for (int i = 0; i < 2; i++) {
        scene.pods[i].owner_uid = "";
        scene.pods[i].adoptable = true;
    }
    execute();
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert_eq(scripted_count(&server, "GET /apis/coxswain.dev"), 1);
    cr_assert_eq(scripted_count(&server, "PATCH /api/v1/namespaces/default/pods/"), 2);
}

HANDLER(refuse_adoption, "PATCH /api/v1/namespaces/default/pods/digits-worker-1-1", answer_for_job,
        STATUS(403, "Forbidden", "denied"))

Test(execute, an_adoption_that_is_refused_is_remembered)
{
    start(refuse_adoption);
    job_answer = "{\"metadata\":{\"name\":\"digits\",\"uid\":\"" SCENE_UID "\"}}";
    scene.pods[1].owner_uid = "";
    scene.pods[1].adoptable = true;
    execute();
    cr_assert_eq(entry->memory.refused_count, 1);
    cr_assert_str_eq(entry->memory.refused[0].uid, "uid-1");
    cr_assert(strstr(entry->memory.refused[0].words, "denied"));
    job_entry_set_job(entry, "another");
    cr_assert_eq(entry->memory.refused_count, 0);
}

static bool is_stale;

static void write_status_unless_stale(struct scripted_request *request)
{
    if (is_stale && is_for(request, "PATCH /apis/coxswain.dev"))
        scripted_reply(request, 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409,\"message\":\"\"}");
    else
        make_anything(request);
}

Test(execute, what_was_not_told_is_not_taken_for_told)
{
    start(write_status_unless_stale);
    scene_add_pod(&scene, ROLE_WORKER, 0, 1)->owner_uid = "somebody";
    scene_end_pod(&scene, &scene.pods[1], 137);
    is_stale = true;
    execute();
    cr_assert_eq(scene.plan.foreign, 0, "the execution has it");
    cr_assert_eq(entry->memory.foreign_reported, 0);
    is_stale = false;
    execute();
    cr_assert_eq(entry->memory.foreign_reported, 1);
    job_entry_forget_reported(entry, &(struct plan){.foreign = 0});
    cr_assert_eq(entry->memory.foreign_reported, 0, "they are gone");
}

static void write_progress(bool stale)
{
    static struct progress told;
    is_stale = stale;
    told = scene_no_progress();
    told.step = 120;
    scene.input.progress = &told;
    scene.input.progress_due = true;
    entry->document_fresh = false;
    scene_plan(&scene);
    cr_assert(scene.plan.took_progress);
    job_entry_note_document(entry, &scene.plan);
    cr_assert(entry->document_planned);
    execute();
    cr_assert_not(entry->document_planned);
}

Test(execute, a_report_whose_write_fails_is_planned_again)
{
    start(write_status_unless_stale);
    write_progress(true);
    cr_assert_eq(done.kind, ERROR_CONFLICT);
    cr_assert(entry->document_fresh);
    write_progress(false);
    cr_assert_not(entry->document_fresh);
}

static void have_the_pod_of(struct scripted_request *request)
{
    if (is_for(request, PODS))
        scripted_reply(request, 409,
                       "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409,\"message\":\"\"}");
    else if (is_for(request, GET_PODS))
        scripted_reply(
            request, 200,
            "{\"metadata\":{\"name\":\"digits-worker-0-1\",\"resourceVersion\":\"7\",\"ownerReferences\":[{\"kind\":"
            "\"ReplicaSet\","
            "\"name\":\"web\",\"uid\":\"rs\",\"controller\":true}]}}");
    else
        make_anything(request);
}

Test(execute, the_owner_of_a_taken_name_is_named)
{
    start_afresh(have_the_pod_of);
    execute();
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NAME_TAKEN);
    cr_assert_str_eq(entry->memory.obstacle.plural, "pods");
    cr_assert_str_eq(entry->memory.obstacle.message,
                     "pods digits-worker-0-1 exists and belongs to ReplicaSet web: remove it, "
                     "or give the job another name");
}

HANDLER(have_had_the_pod, GET_PODS, have_the_pod_of, STATUS(404, "NotFound", ""))

Test(execute, a_pod_that_came_and_went_unseen_does_not_come_again)
{
    start_afresh(have_had_the_pod);
    execute();
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    cr_assert_eq(entry->memory.gone_incarnation, 1);
    cr_assert_eq(entry->memory.gone_count, 1);
    scene.input.memory.gone = entry->memory.gone;
    scene.input.memory.gone_count = entry->memory.gone_count;
    scene.input.memory.gone_incarnation = entry->memory.gone_incarnation;
    expect_plan("create_pod=0 (not under that incarnation) disruptions=1 incarnation=2");
}

/* The answer to a create is cut. */
static bool was_made, looks_are_lost;

static void lose_the_answer(struct scripted_request *request)
{
    if (is_for(request, PODS))
        scripted_reply(request, 201, "{\"metadata\":{");
    else if (is_for(request, GET_PODS) && looks_are_lost)
        scripted_reply(request, 200, "{\"metadata\":{");
    else if (is_for(request, GET_PODS) && was_made)
        scripted_reply(request, 200,
                       "{\"metadata\":{\"name\":\"digits-worker-0-1\",\"resourceVersion\":\"7\",\"labels\":{"
                       "\"coxswain.dev/job-uid\":\"" SCENE_UID
                       "\"},\"ownerReferences\":[{\"kind\":\"TrainingJob\",\"name\":\"digits\",\"uid\":\"" SCENE_UID
                       "\",\"controller\":true}]}}");
    else if (is_for(request, GET_PODS))
        scripted_reply(request, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"message\":\"\"}");
    else
        make_anything(request);
}

/* Else a cache that is behind lets another be promised beside it. */
Test(execute, a_pod_that_was_made_though_the_answer_was_lost_is_waited_for)
{
    was_made = true;
    start_afresh(lose_the_answer);
    execute();
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    cr_assert_eq(entry->pod_write, 7);
}

Test(execute, one_that_was_not_made_is_tried_again)
{
    was_made = false;
    start_afresh(lose_the_answer);
    execute();
    cr_assert_eq(done.kind, ERROR_CORRUPT);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_OUTAGE);
    cr_assert_eq(entry->memory.gone_count, 0, "it is not known to have been there");
}

/* Pods were listed anew, so that a promise of this incarnation would be made once more, under the next. */
static void look_again(void)
{
    scene.input.memory.unsure = entry->memory.unsure;
    scene.input.memory.unsure_count = entry->memory.unsure_count;
    scene.input.memory.inherited_incarnation = 1;
    execute();
}

static void know_nothing(void)
{
    looks_are_lost = true;
    start_afresh(lose_the_answer);
    execute();
    cr_assert_eq(entry->memory.unsure_count, 1);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_OUTAGE);
    look_again();
    cr_assert_eq(entry->memory.unsure_count, 1);
    cr_assert_eq(entry->obstacle_count, 1, "it waits longer");
    cr_assert_eq(scripted_count(&server, PODS), 1);
    looks_are_lost = false;
}

Test(execute, one_of_which_nothing_is_known_is_looked_for_until_it_is_seen)
{
    was_made = true;
    know_nothing();
    look_again();
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert_eq(entry->memory.unsure_count, 0);
    cr_assert_eq(entry->pod_write, 7, "the cache will show it");
}

Test(execute, a_pod_known_to_be_absent_is_promised_again)
{
    was_made = false;
    know_nothing();
    look_again();
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert_eq(entry->memory.unsure_count, 0);
    cr_assert_eq(entry->memory.gone_count, 0);
    scene.input.memory.unsure_count = 0;
    expect_plan("incarnation=2 (now it is promised once more)");
}

HANDLER(refuse_the_look, GET_PODS, lose_the_answer, STATUS(400, "BadRequest", "no such look"))

/* Nor does it end the job, as what only another template would mend. */
Test(execute, a_look_that_is_refused_is_not_told_as_a_create)
{
    start_afresh(refuse_the_look);
    execute();
    cr_assert_eq(entry->memory.unsure_count, 1);
    look_again();
    cr_assert_eq(entry->memory.unsure_count, 1);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_OUTAGE);
    cr_assert(strstr(entry->memory.obstacle.message, "it is not known whether pod digits-worker-0-1 was created"), "%s",
              entry->memory.obstacle.message);
}

static bool exists_and_is_silent_of_it;

static void have_what_nobody_tells_of(struct scripted_request *request)
{
    if (is_for(request, GET_PODS) && exists_and_is_silent_of_it)
        scripted_reply(request, 200, "{\"metadata\":{");
    else
        have_the_pod_of(request);
}

Test(execute, the_owner_of_a_taken_name_is_read_again_after_no_answer)
{
    exists_and_is_silent_of_it = true;
    start_afresh(have_what_nobody_tells_of);
    execute();
    cr_assert_eq(entry->memory.unsure_count, 1);
    exists_and_is_silent_of_it = false;
    look_again();
    cr_assert_eq(entry->memory.unsure_count, 0);
    cr_assert_eq(entry->pod_write, 0, "it is none of ours, and the cache will not show it");
}

static const char *service_labels;

static void have_the_service(struct scripted_request *request)
{
    char service[1024];
    snprintf(service, sizeof service,
             "{\"metadata\":{\"name\":\"digits\",\"namespace\":\"default\",\"resourceVersion\":\"7\",\"labels\":{%s},"
             "\"ownerReferences\":[{\"kind\":\"TrainingJob\",\"uid\":\"" SCENE_UID "\",\"controller\":true}]}}",
             service_labels);
    if (is_for(request, SERVICES))
        scripted_reply(request, 409,
                       "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409,\"message\":\"\"}");
    else if (is_for(request, "GET /api/v1/namespaces/default/services/digits"))
        scripted_reply(request, 200, service);
    else
        make_anything(request);
}

Test(execute, what_the_cache_cannot_show_is_not_taken_for_made)
{
    start(have_the_service);
    service_labels = "\"coxswain.dev/job-uid\":\"" SCENE_UID "\"";
    execute_without_service();
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    cr_assert_eq(entry->service_write, 7);
    service_labels = "";
    execute_without_service();
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NAME_TAKEN);
    cr_assert_str_eq(entry->memory.obstacle.message,
                     "services digits is this job's, but has lost the label by which it is found: kubectl -n default "
                     "label services digits coxswain.dev/job-uid=" SCENE_UID);
}

/* ---- what a template says must be a pod's */

HANDLER(refuse_pods, STRICT_PODS, make_anything,
        STATUS(400, "BadRequest",
               "Pod in version \\\"v1\\\" cannot be handled as a Pod: strict decoding error: unknown field "
               "\\\"spec.tolerants\\\""))

Test(execute, a_field_that_pods_do_not_have_is_an_invalid_template)
{
    start_afresh(refuse_pods);
    execute();
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_TEMPLATE);
    cr_assert_str_eq(entry->memory.obstacle.message,
                     "spec.workers.template: unknown field \"spec.tolerants\": correct it "
                     "and create the job anew");
}

static char last_event[65536];

static void refuse_pods_and_note_event(struct scripted_request *request)
{
    if (is_for(request, EVENTS))
        snprintf(last_event, sizeof last_event, "%s", request->body);
    refuse_pods(request);
}

/* Worker 1 is lost, and its successor promised. */
static void lose_worker(void)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    scene.pods[1].current = false;
}

/* An operator that is stricter than the last one must not end what runs. */
Test(execute, a_job_that_has_run_goes_on_with_a_field_that_pods_do_not_have)
{
    start(refuse_pods_and_note_event);
    lose_worker();
    execute();
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    cr_assert_eq(done.kind, ERROR_NONE);
    cr_assert_eq(scripted_count(&server, STRICT_PODS), 1);
    cr_assert_eq(scripted_count(&server, PODS), 2);
    LOOP_UNTIL(event_recorder_counts(recorder).written == 1);
    cr_assert(strstr(last_event, "\"TemplateFieldIgnored\""), "%s", last_event);
    cr_assert(strstr(last_event, "spec.tolerants"), "%s", last_event);
    execute();
    cr_assert_eq(scripted_count(&server, STRICT_PODS), 1, "known by now");
    cr_assert_eq(scripted_count(&server, PODS), 3);
}

/* As make_anything answers, but for the events. */
static void execute_with_template(const char *text)
{
    SCOPED_JSON *template = json_of(text);
    scene.job.roles[ROLE_WORKER].template = template;
    execute();
    scene.job.roles[ROLE_WORKER].template = NULL;
}

Test(execute, what_a_template_does_not_have_around_its_spec_is_found_too)
{
    start(make_anything);
    lose_worker();
    execute_with_template("{\"metadata\":{\"label\":{}}}");
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE, "it has run");
    cr_assert(entry->fields_ignored);
    cr_assert_eq(scripted_count(&server, PODS), 1);
    begin_afresh();
    execute_with_template("{\"metadata\":{\"label\":{}}}");
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_TEMPLATE);
    cr_assert_str_eq(entry->memory.obstacle.message,
                     "spec.workers.template: unknown field \"metadata.label\": correct it "
                     "and create the job anew");
    cr_assert_eq(scripted_count(&server, PODS), 1);
}

/* Not all pods of a large crew with a large template are in memory at once. */
Test(execute, pods_are_built_a_few_at_a_time)
{
    enum { WORKERS = 40, BYTES = 1 << 20 };
    start(make_anything);
    scene_release(&scene);
    scene_init(&scene, WORKERS);
    scene.input.memory.born_ms = SCENE_NOW;
    SCOPED_FREE char *large = memory_allocate(BYTES + 1, 1);
    memset(large, 'x', BYTES);
    SCOPED_JSON *template = json_new_object();
    struct json *container =
        json_append(json_set_array(json_set_object(template, "spec"), "containers"), json_new_object());
    json_set_string(container, "name", "trainer");
    json_append_string(json_set_array(container, "args"), large);
    scene.job.roles[ROLE_WORKER].template = template;
    execute();
    int made = scripted_count(&server, PODS);
    cr_assert(made >= 1 && made <= 20, "%d of %d", made, WORKERS);
    scene.job.roles[ROLE_WORKER].template = NULL;
}

#define SETS_JOB                                                                                                       \
    "{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"env\":[{\"name\":\"COXSWAIN_JOB\",\"value\":\"ddp\"}]}]}}"

Test(execute, a_name_that_an_operator_has_come_to_reserve_ends_no_job_that_has_run)
{
    start(make_anything);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.image = "torch";
    scene.job.run_policy.restart_scope = RESTART_SCOPE_POD;
    lose_worker();
    execute_with_template(SETS_JOB);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    cr_assert_eq(scripted_count(&server, PODS), 1);
    begin_afresh();
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.image = "torch";
    execute_with_template(SETS_JOB);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_REJECTED);
}

/* ---- the first crew comes before its status */

static char last_pod[65536];

static void note_pod(struct scripted_request *request)
{
    if (is_for(request, PODS))
        snprintf(last_pod, sizeof last_pod, "%s", request->body);
    make_anything(request);
}

Test(execute, pods_of_the_first_crew_carry_what_the_status_will_say)
{
    start_afresh(note_pod);
    execute();
    cr_assert(strstr(last_pod, "\"digits-worker-0-1\""), "%s", last_pod);
    cr_assert(strstr(last_pod, "\"coxswain.dev/incarnation\":\"1\""), "%s", last_pod);
    cr_assert(strstr(last_pod, "\"coxswain.dev/attempt\":\"1\""), "%s", last_pod);
    cr_assert_eq(position_of("PATCH"), -1, "the status is gathered with what comes next");
}

/* ---- the Secret of a job whose script sends its progress */

static const struct push_endpoint push = {.url = "https://coxswain-progress.n.svc:8443", .authority_pem = "PEM"};

/* An earlier operator, which took no reports, made the Service. */
static void start_pushing_job(scripted_handler *handler)
{
    start_afresh(handler);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.image = "torch";
    scene.job.document.progress.push = true;
    scene.options.pods.push = &push;
}

Test(execute, a_job_that_is_older_than_the_keys_gets_its_token_with_its_next_pods)
{
    start_pushing_job(make_anything);
    execute();
    cr_assert_eq(scripted_count(&server, SECRETS), 1);
    cr_assert_eq(scripted_count(&server, PODS), 1);
    execute();
    cr_assert_eq(scripted_count(&server, SECRETS), 1, "it is there by now");
}

Test(execute, a_token_that_exists_or_is_refused_keeps_no_pod_back)
{
    start_pushing_job(have_the_key);
    execute();
    cr_assert_eq(scripted_count(&server, PODS), 1);
    cr_assert_eq(done.kind, ERROR_NONE);
    start_pushing_job(forbid_secrets);
    execute();
    cr_assert_eq(scripted_count(&server, PODS), 1);
    cr_assert_eq(entry->memory.obstacle.kind, OBSTACLE_NONE);
    cr_assert_not(entry->push_secret_sent, "it is tried again with the next pods");
}

/* ---- order */

Test(execute, no_pod_goes_before_the_service)
{
    start_afresh(make_anything);
    execute_without_service();
    cr_assert_geq(position_of(SERVICES), 0);
    cr_assert_eq(scripted_count(&server, PODS), 0);
    scene.input.service = &scene.service;
    execute();
    cr_assert_eq(scripted_count(&server, PODS), 1);
}

Test(execute, a_small_crew_goes_before_the_pods_of_a_large_one)
{
    struct kube_call_options large = {.flow = "n/large", .answered = on_answer};
    fixture_start(make_anything, NULL, &(struct kube_client_options){.max_in_flight = 1});
    recorder = event_recorder_new(client, &(struct event_recorder_options){.controller = "c", .instance = "i"});
    entry = job_entry_new("default/digits");
    scene_init(&scene, 4);
    scene.input.memory.born_ms = SCENE_NOW;
    SCOPED_JSON *object = json_new_object();
    for (int i = 0; i < 40; i++)
        kube_client_create(client, &pods, object, &large);
    execute();
    cr_assert_leq(answer.calls, 4);
    cr_assert_eq(scripted_count(&server, PODS), 4);
    LOOP_UNTIL(answer.calls == 40);
}

/* ---- a status that the server does not take */

static void note_event(struct scripted_request *request)
{
    snprintf(last_event, sizeof last_event, "%s", request->body);
    make_anything(request);
}

static void refuse_status(struct scripted_request *request)
{
    if (is_for(request, "PATCH /apis/coxswain.dev"))
        scripted_reply(request, 422,
                       "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\",\"code\":422,\"message\":"
                       "\"suspendedMilliseconds: should be at least 0\"}");
    else if (is_for(request, EVENTS))
        note_event(request);
    else
        make_anything(request);
}

Test(execute, a_status_that_is_refused_is_told_in_an_event)
{
    start(refuse_status);
    scene_end_pod(&scene, &scene.pods[1], 137);
    execute();
    cr_assert_eq(done.kind, ERROR_INVALID);
    LOOP_UNTIL(event_recorder_counts(recorder).written == 1);
    cr_assert(strstr(last_event, "\"StatusRefused\""), "%s", last_event);
    cr_assert(strstr(last_event, "suspendedMilliseconds: should be at least 0"), "%s", last_event);
}

/* ---- what is told when the cached job is another by then */

static void note_any_event(struct scripted_request *request)
{
    if (is_for(request, EVENTS))
        note_event(request);
    else
        make_anything(request);
}

Test(execute, what_is_wrong_with_a_spec_is_told_in_its_own_words)
{
    char invalid[] = "spec.workers.replicas: must be a whole number from 1 to 1000";
    start_afresh(note_any_event);
    scene.input.invalid = invalid;
    begin_to_execute();
    memset(invalid, '#', strlen(invalid)); /* the status is written, and its event has replaced the job */
    LOOP_UNTIL(event_recorder_counts(recorder).written == 1);
    cr_assert(strstr(last_event, "\"InvalidSpec\""), "%s", last_event);
    cr_assert(strstr(last_event, "spec.workers.replicas: must be a whole number"), "%s", last_event);
}

/* ---- the end of the operator */

static void hold(struct scripted_request *request)
{
    scripted_hold(request);
}

/* As main.c ends: the client takes the calls with it that are on the wire. */
Test(execute, what_is_under_way_when_the_operator_ends_tells_nobody)
{
    start(hold);
    scene_add_pod(&scene, ROLE_WORKER, 0, 1)->owner_uid = "somebody";
    scene.input.service = NULL;
    int before = done.calls;
    begin_to_execute();
    LOOP_UNTIL(server.requests > 0);
    event_recorder_stop(recorder);
    kube_client_free(client);
    client = NULL;
    cr_assert_eq(done.calls, before + 1);
    cr_assert_eq(done.kind, ERROR_CANCELLED);
    cr_assert_eq(event_recorder_counts(recorder).dropped, 1);
}

/* ---- a pod that is told to be deleted is */

static _Atomic bool is_away;
static _Atomic int told; /* events of it */

static void delete_unless_away(struct scripted_request *request)
{
    told += strstr(request->body, "\"PodForceDeleted\"") != NULL;
    if (is_away && is_for(request, "DELETE"))
        scripted_reply(request, 500, "{\"kind\":\"Status\",\"code\":500,\"message\":\"etcd\"}");
    else
        make_anything(request);
}

static bool all_is_told(void)
{
    struct event_recorder_counts counts = event_recorder_counts(recorder);
    return counts.written == counts.recorded;
}

Test(execute, a_pod_that_could_not_be_deleted_is_not_told_to_be)
{
    start(delete_unless_away);
    scene.pods[1].deletion_ms = scene.input.now_ms - 200000;
    scene.pods[1].grace_ms = 30000;
    is_away = true;
    execute();
    cr_assert_eq(done.kind, ERROR_UNAVAILABLE);
    LOOP_UNTIL(all_is_told());
    cr_assert_eq(told, 0);
    is_away = false;
    execute();
    LOOP_UNTIL(told == 1);
}

/* ---- the node of a pod that does not end */

#define NODES "GET /api/v1/nodes/node-a"
#define ONE_POD "DELETE /api/v1/namespaces/default/pods/digits-worker-1-1"

static int node_status;
static const char *node_body;

HANDLER(tell_of_node, NODES, make_anything, node_status, node_body)

Test(execute, a_pod_is_removed_by_force_when_its_node_is_found_dead)
{
    static const struct {
        int status;
        const char *body;
        enum node_state state;
    } cases[] = {
        {200, "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}", NODE_ALIVE},
        {403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"no\"}", NODE_UNKNOWN},
        {200, "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\"}]}}", NODE_DEAD},
        {404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"message\":\"no\"}", NODE_DEAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start(tell_of_node);
        node_status = cases[i].status;
        node_body = cases[i].body;
        scene.pods[1].node = "node-a";
        scene.pods[1].deletion_ms = scene.input.now_ms - 300000;
        scene.pods[1].grace_ms = 30000;
        execute();
        cr_assert_eq(done.kind, ERROR_NONE);
        cr_assert_eq(entry->memory.node_count, 1);
        cr_assert_eq(entry->memory.nodes[0].state, cases[i].state);
        cr_assert_str_eq(entry->memory.nodes[0].name, "node-a");
        job_entry_note_node(entry, "node-a", entry->memory.nodes[0].state, scene.input.now_ms);
        cr_assert_eq(entry->memory.node_count, 1, "the newest look counts");
        scene.input.memory.nodes = entry->memory.nodes;
        scene.input.memory.node_count = entry->memory.node_count;
        execute();
        cr_expect_eq(scripted_count(&server, ONE_POD), cases[i].state == NODE_DEAD, "%d", cases[i].status);
    }
}
