/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/contract/environment.h"
#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/migration.h"
#include "operator/cli/migration_replicas.h"

static const struct kubeflow_kind {
    const char *kind, *section, *specs;
    const char *container, *port; /* names with a meaning in its templates */
    bool fails_at_once;           /* without a restartPolicy */
} kinds[] = {
    {"PyTorchJob", "pytorch", "spec.pytorchReplicaSpecs", "pytorch", "pytorchjob-port", false},
    {"TFJob", "tensorflow", "spec.tfReplicaSpecs", "tensorflow", "tfjob-port", true},
    {"JAXJob", "jax", "spec.jaxReplicaSpecs", "jax", "jaxjob-port", true},
};

#define SCHEDULING "spec.runPolicy.schedulingPolicy."

static const struct migration_row rows[] = {
    MOVED("spec.runPolicy.suspend", "spec.suspend"),
    MOVED_UNLESS("kubeflow.org/training-operator", "spec.runPolicy.managedBy", "spec.managedBy"),
    MOVED(SCHEDULING "priorityClass", "spec.runPolicy.priorityClassName"),
    GONE(SCHEDULING "minResources", "the operator adds up what the pods request", NULL),
    GONE(SCHEDULING "queue", "only Volcano has queues", ""),
    SAME("spec.runPolicy"),
    GONE("spec.successPolicy", "the job has succeeded once its chief, or worker 0, has ended with 0", ""),
    GONE("spec.enableDynamicWorker", "set workers.minReplicas and maxReplicas, which need parameterServers", "false"),
    GONE("spec.elasticPolicy.rdzvPort", "the operator sets the rendezvous; its port is a containerPort named crew",
         NULL),
    GONE("spec.elasticPolicy.rdzvHost", "the operator sets the rendezvous, at the chief or worker 0", NULL),
    GONE("spec.elasticPolicy.rdzvConf", "set PET_RDZV_CONF to key=value,… in the template", NULL),
    GONE("spec.elasticPolicy.standalone", "set PET_STANDALONE to 1 in the template", "false"),
    GONE("spec.elasticPolicy.metrics", "create a HorizontalPodAutoscaler for the job's scale subresource", NULL),
    ROWS_END,
};

static const struct migration_row volcano_rows[] = {
    MOVED(SCHEDULING "minAvailable", "spec.runPolicy.gang.minAvailable"),
    MOVED_UNLESS("", SCHEDULING "queue", "spec.runPolicy.gang.queue"),
    GONE(SCHEDULING "scheduleTimeoutSeconds", "only Coscheduling has such a time", NULL),
    ROWS_END,
};

static const struct migration_row coscheduling_rows[] = {
    MOVED(SCHEDULING "minAvailable", "spec.runPolicy.gang.minAvailable"),
    MOVED(SCHEDULING "scheduleTimeoutSeconds", "spec.runPolicy.gang.scheduleTimeoutSeconds"),
    ROWS_END,
};

/* Which scheduler it was is a setting of Kubeflow's operator. */
static const struct migration_row unknown_rows[] = {
    GONE(SCHEDULING "minAvailable", "set spec.runPolicy.gang.minAvailable, and gang.scheduler to the scheduler you use",
         NULL),
    ROWS_END,
};

/* What torchrun reads, unless it is usual. */
static const struct {
    const char *from, *name, *usual;
} variables[] = {
    {"spec.elasticPolicy.rdzvBackend", "PET_RDZV_BACKEND", "c10d"},
    {"spec.elasticPolicy.rdzvId", "PET_RDZV_ID", ""},
    {"spec.elasticPolicy.maxRestarts", "PET_MAX_RESTARTS", ""},
};

struct crew {
    const struct kubeflow_kind *kind;
    struct replicas roles[ROLE_COUNT];
    int64_t masters; /* among the workers */
    char *restart_policy;
    bool policies_differ;
};

static void crew_release(struct crew *crew)
{
    replicas_release(crew->roles);
    free(crew->restart_policy);
}

/* ---------------------------------------------------------------- templates */

/* What Kubeflow knows by its name gets the name by which this API knows it. */
static void rename_parts(const struct kubeflow_kind *kind, const struct json *template)
{
    struct json *container = migration_find(json_at(template, "spec.containers"), kind->container);
    struct json *port = migration_find(json_member(container, "ports"), kind->port);
    if (container)
        json_set_string(container, "name", TRAINER_CONTAINER);
    if (port)
        json_set_string(port, "name", PORT_CREW_NAME);
}

/* ---------------------------------------------------------------- roles */

static bool role_find(const char *name, enum role *ret_role)
{
    static const struct {
        const char *name;
        enum role role;
    } names[] = {{"Worker", ROLE_WORKER},
                 {"Master", ROLE_CHIEF},
                 {"Chief", ROLE_CHIEF},
                 {"PS", ROLE_PS},
                 {"Evaluator", ROLE_EVALUATOR}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(names[i].name, name) == 0) {
            *ret_role = names[i].role;
            return true;
        }
    return false;
}

/* Pods are replaced after OnFailure and Always alike. */
static void read_policy(struct crew *crew, const char *given, bool has_limit)
{
    bool plain = !*given || strcmp(given, "Always") == 0;
    const char *policy = !*given && crew->kind->fails_at_once && !has_limit ? "Never" : plain ? "OnFailure" : given;
    if (!crew->restart_policy)
        crew->restart_policy = memory_copy_string(policy);
    if (strcmp(crew->restart_policy, policy) != 0)
        crew->policies_differ = true;
}

static void read_role(struct migration *migration, struct crew *crew, struct json *spec, const char *path)
{
    enum role role = ROLE_WORKER;
    int64_t count = json_integer_at(spec, "replicas", 1);
    if (!role_find(json_key(spec), &role) || crew->roles[role].template) {
        migration_leave_out(migration, spec, path, "there is no place for this role");
        return;
    }
    bool has_limit = json_integer_at(migration->old, "spec.runPolicy.backoffLimit", -1) >= 0;
    if (count > 0) {
        struct json *template = json_member(spec, "template");
        read_policy(crew, json_string_at(spec, "restartPolicy", ""), has_limit);
        crew->roles[role] = (struct replicas){count, template ? json_copy(template) : json_new_object()};
        rename_parts(crew->kind, crew->roles[role].template);
    }
    if (count > 1 && (role == ROLE_CHIEF || role == ROLE_EVALUATOR))
        migration_note(migration, path, "left out: all but one of its %" PRId64 " replicas; there is one %s", count,
                       role_name(role));
    json_remove(spec, "replicas");
    json_remove(spec, "restartPolicy");
    json_remove(spec, "template");
    migration_leave_out(migration, spec, path, MIGRATION_NO_FIELD);
}

/* A leader is worker 0 if nothing else sets it apart. To TensorFlow its role does. */
static void join_leader(struct crew *crew)
{
    struct replicas *chief = &crew->roles[ROLE_CHIEF], *workers = &crew->roles[ROLE_WORKER];
    bool equal = strcmp(crew->kind->section, "pytorch") == 0 && json_equal(chief->template, workers->template);
    if (chief->count == 0 || (workers->count > 0 && !equal))
        return;
    crew->masters = workers->count > 0;
    workers->count++;
    json_free(workers->template);
    workers->template = chief->template;
    *chief = (struct replicas){0};
}

static void read_roles(struct migration *migration, struct crew *crew)
{
    SCOPED_JSON *specs = migration_take(migration, crew->kind->specs);
    if (json_type(specs) != JSON_OBJECT)
        migration_leave_out(migration, specs, crew->kind->specs, MIGRATION_WRONG);
    for (struct json *spec = json_type(specs) == JSON_OBJECT ? json_first(specs) : NULL; spec; spec = json_next(spec)) {
        SCOPED_FREE char *path = memory_format("%s.%s", crew->kind->specs, json_key(spec));
        read_role(migration, crew, spec, path);
    }
    join_leader(crew);
}

/* ---------------------------------------------------------------- PyTorch */

static void put_variables(struct migration *migration, struct crew *crew)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        SCOPED_JSON *value = migration_take(migration, variables[i].from);
        SCOPED_FREE char *text = json_scalar_text(value);
        if (!text)
            migration_leave_out(migration, value, variables[i].from, MIGRATION_WRONG);
        else if (strcmp(text, variables[i].usual) != 0)
            replicas_add_variable(crew->roles, variables[i].name, text);
    }
}

/* Kubeflow's autoscaler moves the number of Workers between the bounds, without the Master. */
static void put_bounds(struct migration *migration, const struct crew *crew)
{
    if (json_type(json_at(migration->old, "spec.elasticPolicy")) != JSON_OBJECT)
        return;
    SCOPED_JSON *lowest = migration_take(migration, "spec.elasticPolicy.minReplicas");
    SCOPED_JSON *highest = migration_take(migration, "spec.elasticPolicy.maxReplicas");
    int64_t workers = crew->roles[ROLE_WORKER].count - crew->masters;
    int64_t min = json_integer(lowest, json_integer(highest, workers)), max = json_integer(highest, min);
    migration_put(migration, "spec.workers.minReplicas", json_new_integer(min + crew->masters), "");
    migration_put(migration, "spec.workers.maxReplicas", json_new_integer(max + crew->masters), "");
}

static void put_processes(struct migration *migration, struct crew *crew)
{
    SCOPED_JSON *given = migration_take(migration, "spec.nprocPerNode");
    SCOPED_JSON *earlier = migration_take(migration, "spec.elasticPolicy.nProcPerNode");
    SCOPED_FREE char *text = json_scalar_text(earlier ? earlier : given);
    replicas_put_processes(migration, crew->roles, text, "spec.nprocPerNode");
    if (!text)
        migration_leave_out(migration, earlier ? earlier : given, "spec.nprocPerNode", MIGRATION_WRONG);
}

/* ---------------------------------------------------------------- runPolicy */

static void put_policy(struct migration *migration, const struct crew *crew)
{
    SCOPED_FREE char *path = memory_format("%s.*.restartPolicy", crew->kind->specs);
    const char *policy = crew->restart_policy ? crew->restart_policy : "";
    if (crew->policies_differ) {
        migration_note(migration, path,
                       "left out: the roles differ in it; here all pods are replaced, up to runPolicy.backoffLimit");
    } else if (strcmp(policy, "ExitCode") == 0) {
        migration_note(migration, path,
                       "left out: here exit codes from 1 to 127 count for runPolicy.backoffLimit, too; to fail at "
                       "once write runPolicy.failurePolicy.rules");
    } else if (strcmp(policy, "Never") == 0) {
        SCOPED_JSON *limit = migration_take(migration, "spec.runPolicy.backoffLimit");
        if (json_integer(limit, 0) != 0)
            migration_note(migration, "spec.runPolicy.backoffLimit", "left out: restartPolicy Never means 0");
        migration_put(migration, "spec.runPolicy.backoffLimit", json_new_integer(0), "");
    }
}

static void put_gang(struct migration *migration, const struct crew *crew)
{
    const struct json *given = json_at(migration->old, "spec.runPolicy.schedulingPolicy");
    const char *name = json_string_at(crew->roles[ROLE_WORKER].template, "spec.schedulerName", "");
    bool least = json_integer_at(given, "minAvailable", 0) > 0;
    bool queued = *json_string_at(given, "queue", "") || (least && strcmp(name, "volcano") == 0);
    bool waits = json_integer_at(given, "scheduleTimeoutSeconds", 0) > 0 ||
                 (least && strcmp(name, "scheduler-plugins-scheduler") == 0);
    if (queued || waits)
        migration_put(migration, "spec.runPolicy.gang.scheduler", json_new_string(queued ? "Volcano" : "Coscheduling"),
                      "");
    migration_apply(migration, queued ? volcano_rows : waits ? coscheduling_rows : unknown_rows);
}

/* ---------------------------------------------------------------- a job */

static const struct kubeflow_kind *kind_find(const struct json *document)
{
    const char *version = json_string_at(document, "apiVersion", ""), *kind = json_string_at(document, "kind", "");
    for (size_t i = 0; strcmp(version, "kubeflow.org/v1") == 0 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return &kinds[i];
    return NULL;
}

bool migration_is_kubeflow(const struct json *document)
{
    return kind_find(document) != NULL;
}

void migration_from_kubeflow(struct migration *migration, const struct json *document)
{
    SCOPED(crew_release) struct crew crew = {.kind = kind_find(document)};
    migration->section = crew.kind->section;
    read_roles(migration, &crew);
    if (strcmp(migration->section, "pytorch") == 0) {
        put_variables(migration, &crew);
        put_processes(migration, &crew);
        put_bounds(migration, &crew);
    }
    replicas_put(migration, crew.roles);
    put_policy(migration, &crew);
    put_gang(migration, &crew);
    migration_apply(migration, rows);
}
