/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/execution.h"
#include "operator/controller/objects/crew_certificate.h"
#include "operator/controller/objects/crew_key.h"
#include "operator/controller/objects/disruption_budget.h"
#include "operator/controller/objects/progress_push.h"
#include "operator/controller/objects/service_build.h"
#include "operator/controller/plan/replicas.h"

/* ---------------------------------------------------------------- the key */

/* The name belongs to this job only, and the operator may not read Secrets: a Secret that exists is
 * taken for the job's. */
static void key_created(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    struct execution *execution = creation->execution;
    if (answer->error && answer->error->kind != ERROR_ALREADY_EXISTS) {
        creation_note_refusal(creation, answer->error, answer->object);
    } else {
        execution_create(execution, KUBE_SERVICES, creation->service);
    }
    creation_end(creation);
}

static void create_key(struct execution *execution, const struct json *secret, struct json *service)
{
    struct creation creation = {
        .execution = execution, .resource = KUBE_SECRETS, .priority = KUBE_HIGH, .service = service};
    creation_send(creation, secret, key_created);
}

/* Takes over the service. */
static void create_key_and_service(struct execution *execution, const struct json *secret, struct json *service)
{
    if (secret) {
        create_key(execution, secret, service);
        return;
    }
    execution_create(execution, KUBE_SERVICES, service);
    json_free(service);
}

static void budget_created(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    if (answer->error && answer->error->kind != ERROR_ALREADY_EXISTS) {
        creation_note_refusal(creation, answer->error, answer->object);
    } else {
        create_key_and_service(creation->execution, creation->secret, creation->service);
        creation->service = NULL;
    }
    creation_end(creation);
}

void execute_create_service(struct execution *execution, const struct training_job *job)
{
    struct error error = ERROR_INIT;
    const struct push_endpoint *push = execution->executor.options->pods.push;
    SCOPED_JSON *budget = disruption_budget_build(job), *secret = NULL;
    if (push_is_possible(job, push)) { /* no crew of our worker's, and so without a key */
        secret = push_secret_build(job, push);
        execution->entry->push_secret_sent = true;
    } else if (crew_key_is_needed(job) && crew_key_secret_build(job, &secret, &error) < 0) {
        execution_refuse(execution, OBSTACLE_OUTAGE, error.message);
        return;
    }
    struct json *service = service_build(job);
    if (!budget) {
        create_key_and_service(execution, secret, service);
        return;
    }
    struct creation creation = {.execution = execution,
                                .resource = KUBE_DISRUPTION_BUDGETS,
                                .priority = KUBE_HIGH,
                                .secret = secret,
                                .service = service};
    secret = NULL;
    creation_send(creation, budget, budget_created);
}

/* A Secret that exists is the job's. Without one the pods train all the same. */
static void push_secret_created(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    struct execution *execution = creation->execution;
    if (answer->error && answer->error->kind != ERROR_ALREADY_EXISTS) {
        execution_note_failure(execution, answer->error, "create the Secret of progress.push");
        if (job_entry_is_about(execution->entry, execution->uid))
            execution->entry->push_secret_sent = false;
    }
    creation_end(creation);
}

void execute_send_push_secret(struct execution *execution, const struct training_job *job)
{
    const struct push_endpoint *push = execution->executor.options->pods.push;
    if (execution->entry->push_secret_sent || !push_is_possible(job, push))
        return;
    struct creation creation = {.execution = execution, .resource = KUBE_SECRETS, .priority = KUBE_HIGH};
    SCOPED_JSON *secret = push_secret_build(job, push);
    execution->entry->push_secret_sent = true;
    creation_send(creation, secret, push_secret_created);
}

/* Notes for later plans whether the key's Secret exists. */
static void note_key(const struct execution *execution, bool there)
{
    if (job_entry_is_about(execution->entry, execution->uid))
        execution->entry->memory.key_look = (struct crew_key_look){
            .incarnation = execution->plan.incarnation, .at_ms = execution->plan.now_ms, .there = there};
}

/* Handles a dry-run create. A cluster may refuse it, and an exhausted quota does so before the name
 * is checked. The key is then assumed to exist, which is the usual case. */
static void key_looked_for(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    enum error_kind kind = answer->error ? answer->error->kind : ERROR_NONE;
    bool refused =
        kind == ERROR_ALREADY_EXISTS || kind == ERROR_FORBIDDEN || kind == ERROR_NO_SPACE || kind == ERROR_INVALID;
    if (kind == ERROR_NONE || refused)
        note_key(creation->execution, refused);
    else
        execution_note_failure(creation->execution, answer->error, "ask for the crew's key");
    creation_end(creation);
}

static void key_renewed(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    if (answer->error && answer->error->kind != ERROR_ALREADY_EXISTS)
        creation_note_refusal(creation, answer->error, answer->object);
    else
        note_key(creation->execution, true);
    creation_end(creation);
}

void execute_send_key(struct execution *execution, const struct training_job *job, bool dry_run)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *secret = NULL;
    struct creation creation = {
        .execution = execution, .resource = KUBE_SECRETS, .priority = KUBE_HIGH, .dry_run = dry_run};
    if (dry_run && !replicas_promised(&execution->plan.status)) /* no pod waits for the answer */
        creation.priority = KUBE_NORMAL;
    if (crew_key_secret_build(job, &secret, &error) < 0)
        execution_refuse(execution, OBSTACLE_OUTAGE, error.message);
    else
        creation_send(creation, secret, dry_run ? key_looked_for : key_renewed);
}

/* ---------------------------------------------------------------- certificates */

/* If one of the first two Secrets exists already, it was created before a crash. Later ones replace
 * a Secret that was deleted before. */
static void certificate_created(void *context, const struct kube_answer *answer)
{
    struct creation *creation = context;
    struct execution *execution = creation->execution;
    bool made = !answer->error || (answer->error->kind == ERROR_ALREADY_EXISTS &&
                                   !crew_certificate_replaces(execution->plan.certificate.number));
    if (!made)
        creation_note_refusal(creation, answer->error, answer->object);
    else if (job_entry_is_about(execution->entry, execution->uid))
        execution->entry->memory.certificate = execution->plan.certificate;
    creation_end(creation);
}

static void send_certificate(struct execution *execution, const struct json *secret)
{
    struct creation creation = {.execution = execution, .resource = KUBE_SECRETS, .priority = KUBE_HIGH};
    creation_send(creation, secret, certificate_created);
}

/* Deletes the Secret that is to be replaced. `uid` NULL: a dry run, which only returns its UID. */
static void certificate_asked(struct execution *execution, const char *uid, kube_answered *answered)
{
    const char *name = json_string_at(execution->certificate, "metadata.name", "");
    struct resource_path path = {KUBE_SECRETS, execution->namespace, name, NULL};
    struct kube_delete_options what = {.uid = uid, .grace_seconds = -1, .dry_run = uid == NULL};
    struct kube_call_options options = execution_call_options(execution, answered, execution);
    execution->open++;
    kube_client_delete(execution->executor.client, &path, &what, &options);
}

static void certificate_removed(void *context, const struct kube_answer *answer)
{
    struct execution *execution = context;
    SCOPED_JSON *secret = execution->certificate;
    execution->certificate = NULL;
    if (answer->error && answer->error->kind != ERROR_NOT_FOUND)
        execution_note_failure(execution, answer->error, "remove a certificate");
    else
        send_certificate(execution, secret);
    execution_request_end(execution);
}

/* Deletes the Secret with the UID found: if another operator has replaced it by a newer one, that
 * one stays. */
static void certificate_found(void *context, const struct kube_answer *answer)
{
    struct execution *execution = context;
    const char *uid = answer->error ? "" : json_string_at(answer->object, "details.uid", "");
    if (*uid == '\0') {
        certificate_removed(context, answer);
        return;
    }
    certificate_asked(execution, uid, certificate_removed);
    execution_request_end(execution);
}

/* A dry-run delete returns the old Secret's UID for the precondition, because the operator may not
 * read Secrets. */
void execute_create_certificate(struct execution *execution, const struct training_job *job)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *secret = NULL;
    if (crew_certificate_build(job, &execution->plan.certificate, execution->plan.now_ms, &secret, &error) < 0) {
        execution_refuse(execution, OBSTACLE_OUTAGE, error.message);
        return;
    }
    if (!crew_certificate_replaces(execution->plan.certificate.number)) {
        send_certificate(execution, secret);
        return;
    }
    execution->certificate = secret;
    secret = NULL; /* kept */
    certificate_asked(execution, NULL, certificate_found);
}
