/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/refusal.h"

#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"

/* ---------------------------------------------------------------- which part of the API server refused */

/* Where a webhook refuses, code, reason and causes are the webhook's own. That it was one shows in these words alone, with
 * which the API server begins the message. */
#define WEBHOOK "admission webhook \""

/* Messages of the API server's own admission plugins. Each answers 403 with reason Forbidden (a policy with what its author chose) and
 * without a cause that names a field, so only the words differ. */
static const struct {
    const char *words;
    enum obstacle_kind kind;
    const char *remedy;
} speakers[] = {
    /* any validating or mutating webhook */
    {WEBHOOK, OBSTACLE_FORBIDDEN,
     "a webhook of the cluster forbids it: have its rule changed, or create the job anew with a template that it "
     "allows"},
    /* ResourceQuota, when it is used up */
    {"exceeded quota", OBSTACLE_QUOTA, "free some of the quota or raise it"},
    /* ResourceQuota, when the pod does not say how much it needs */
    {"failed quota", OBSTACLE_QUOTA,
     "a quota counts what the template does not name: give the namespace a LimitRange with defaults, or create the job "
     "anew with resources in the template"},
    /* ValidatingAdmissionPolicy */
    {"ValidatingAdmissionPolicy '", OBSTACLE_FORBIDDEN,
     "a policy of the cluster forbids it: have it changed, or create the job anew with a template that it allows"},
    /* PodSecurity */
    {"violates PodSecurity", OBSTACLE_FORBIDDEN,
     "create the job anew with another securityContext in the template, or change the namespace's "
     "pod-security.kubernetes.io/enforce label"},
    /* ServiceAccount */
    {"error looking up service account", OBSTACLE_FORBIDDEN, "create the ServiceAccount that the template names"},
    /* Priority */
    {"no PriorityClass with name", OBSTACLE_FORBIDDEN, "create the PriorityClass of runPolicy.priorityClassName"},
    /* LimitRange: "maximum memory usage per Container is 1Gi, …" */
    {"per Container is", OBSTACLE_FORBIDDEN,
     "the namespace's LimitRange forbids what the template asks for: change either"},
    {"per Pod is", OBSTACLE_FORBIDDEN, "the namespace's LimitRange forbids what the template asks for: change either"},
    /* the authorizer: "User "u" cannot create resource "pods" …" */
    {"cannot create resource", OBSTACLE_FORBIDDEN,
     "the operator's role lacks this right: see its chart or deploy/rbac"},
};
#define SPEAKERS (sizeof speakers / sizeof *speakers)

/* Returns the plugin that wrote a message. Its words come first; the rest may quote others. SPEAKERS: none. */
static size_t speaker_of(const char *message)
{
    size_t found = SPEAKERS;
    const char *first = NULL;
    for (size_t i = 0; i < SPEAKERS; i++) {
        const char *place = strstr(message, speakers[i].words);
        if (place && (!first || place < first)) {
            first = place;
            found = i;
        }
    }
    return found;
}

static bool is_of_webhook(const struct error *error)
{
    return strncmp(error->message, WEBHOOK, strlen(WEBHOOK)) == 0;
}

/* ---------------------------------------------------------------- fields that pods do not have */

/* An object that cannot be decoded is answered with 400 and no details. */
#define UNDECODABLE "cannot be handled as a "
#define STRICT "strict decoding error: "
/* What stands before the fields of an object that is decoded, but not valid: `TrainingJob.coxswain.dev "a" is invalid: ` */
#define IS_INVALID "\" is invalid: "

const char *refusal_unknown_fields(const struct error *error)
{
    bool may = error->kind == ERROR_INVALID && !is_of_webhook(error);
    const char *strict = may ? strstr(error->message, STRICT) : NULL;
    return strict ? strict + strlen(STRICT) : NULL;
}

#define VOLUMES "spec.volumes["

char *refusal_place(const struct pod_source *source, const char *words)
{
    const char *first = strstr(words, "spec.");
    bool is_volume = first && strncmp(first, VOLUMES, strlen(VOLUMES)) == 0;
    unsigned long number = is_volume ? strtoul(first + strlen(VOLUMES), NULL, 10) : source->storage_count;
    const char *class = source->class ? source->class : "";
    return number < source->storage_count ? memory_format("spec.storage[%s]%s", source->storages[number], class)
                                          : memory_format("spec.%s.template%s", role_section(source->role), class);
}

/* ---------------------------------------------------------------- creates */

/* The first cause with this reason (NULL: any) that names a field; "": there is none. */
static const char *field_of_cause(const struct json *status, const char *reason)
{
    const struct json *causes = json_at(status, "details.causes");
    for (const struct json *cause = json_first(causes); cause; cause = json_next(cause)) {
        const char *field = json_string_at(cause, "field", "");
        if (*field && (!reason || strcmp(json_string_at(cause, "reason", ""), reason) == 0))
            return field;
    }
    return "";
}

/* The API server's own validation refuses the object: it names the fields, or cannot even decode it. */
static bool is_object_invalid(const struct error *error, const struct json *status)
{
    if (error->kind == ERROR_TOO_LARGE)
        return true;
    if (error->kind != ERROR_INVALID || is_of_webhook(error))
        return false;
    return *field_of_cause(status, NULL) || strstr(error->message, UNDECODABLE);
}

static char *of_invalid_object(const struct error *error, const char *place, bool has_run)
{
    if (!place)
        return memory_copy_string(error->message);
    if (!has_run)
        return memory_format("%s; correct %s and create the job anew", error->message, place);
    return memory_format(
        "%s; earlier pods of the job were accepted, so it is tried again: undo what has changed in the "
        "cluster since, or delete the job and create it anew with a corrected %s",
        error->message, place);
}

enum obstacle_kind refusal_of_create(const struct error *error, const struct json *status,
                                     const struct pod_source *source, bool has_run, char **ret_message)
{
    const char *words = error->message, *fields = refusal_unknown_fields(error), *field = field_of_cause(status, NULL);
    bool refused = error->kind == ERROR_INVALID || error->kind == ERROR_FORBIDDEN || error->kind == ERROR_NO_SPACE;
    SCOPED_FREE char *place = source ? refusal_place(source, fields ? fields : *field ? field : words) : NULL;
    if (error->http_status == 0 || !(refused || error->kind == ERROR_TOO_LARGE)) {
        *ret_message = memory_copy_string(words);
        return OBSTACLE_OUTAGE;
    }
    if (place && fields) {
        *ret_message = memory_format("%s: %s: correct it and create the job anew", place, fields);
        return OBSTACLE_TEMPLATE;
    }
    if (is_object_invalid(error, status)) {
        *ret_message = of_invalid_object(error, place, has_run);
        return OBSTACLE_REJECTED;
    }
    if (*field_of_cause(status, "NamespaceTerminating")) {
        *ret_message =
            memory_format("%s; the namespace is being deleted, and the job with it; it is tried again", words);
        return OBSTACLE_FORBIDDEN;
    }
    size_t speaker = speaker_of(words);
    if (speaker < SPEAKERS) {
        *ret_message = memory_format("%s; %s; it is tried again", words, speakers[speaker].remedy);
        return speakers[speaker].kind;
    }
    *ret_message = memory_format("%s; it is tried again", words);
    return error->kind == ERROR_NO_SPACE ? OBSTACLE_QUOTA : OBSTACLE_FORBIDDEN;
}

char *refusal_of_trial(const struct error *error)
{
    const char *fields = refusal_unknown_fields(error), *invalid = strstr(error->message, IS_INVALID);
    if (!fields && invalid)
        fields = invalid + strlen(IS_INVALID);
    if (!fields)
        return memory_copy_string(error->message);
    return memory_format("spec.template, with values of spec.parameters: %s: correct it and create the sweep anew",
                         fields);
}

enum obstacle_kind refusal_of_look(const struct error *error, const char *name, char **ret_message)
{
    bool forbidden = error->kind == ERROR_FORBIDDEN && error->http_status != 0;
    *ret_message =
        memory_format("it is not known whether pod %s was created, and until then no other pod takes its place: %s%s",
                      name, error->message,
                      forbidden ? "; let the operator's role get pods: see its chart or deploy/rbac; it is "
                                  "tried again"
                                : "");
    return forbidden ? OBSTACLE_FORBIDDEN : OBSTACLE_OUTAGE;
}

enum obstacle_kind refusal_of_priority(const struct error *error, bool of_kueue, char **ret_message)
{
    static const struct {
        enum error_kind kind;
        const char *remedies[2]; /* for a PriorityClass and for one of Kueue */
    } rows[] = {
        {ERROR_NOT_FOUND,
         {"create the PriorityClass of runPolicy.priorityClassName",
          "create the WorkloadPriorityClass of the label " LABEL_QUEUE_PRIORITY}},
        {ERROR_FORBIDDEN,
         {"PriorityClasses belong to no namespace: give the operator a ClusterRole that may get priorityclasses of "
          "scheduling.k8s.io, or create the job anew without runPolicy.priorityClassName",
          "WorkloadPriorityClasses belong to no namespace: give the operator a ClusterRole that may get "
          "workloadpriorityclasses of kueue.x-k8s.io, or take the label " LABEL_QUEUE_PRIORITY " off"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].kind != error->kind || error->http_status == 0)
            continue;
        *ret_message = memory_format("%s; %s; it is tried again", error->message, rows[i].remedies[of_kueue]);
        return OBSTACLE_FORBIDDEN;
    }
    *ret_message = memory_copy_string(error->message);
    return OBSTACLE_OUTAGE;
}
