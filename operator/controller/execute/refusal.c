/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/refusal.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

#define STRICT "strict decoding error: "

/* Who speaks shows in the words alone: codes differ from webhook to webhook. The first that fits counts. */
static const struct {
    const char *words;
    enum obstacle_kind kind;
    const char *remedy;
} voices[] = {
    {"exceeded quota", OBSTACLE_QUOTA, "free some of the quota or raise it"},
    {"failed quota", OBSTACLE_QUOTA,
     "a quota counts what the template does not name: give the namespace a LimitRange with defaults, or create the job "
     "anew with resources in the template"},
    {"admission webhook \"", OBSTACLE_FORBIDDEN,
     "a webhook of the cluster forbids it: have its rule changed, or create the job anew with a template that it "
     "allows"},
    {"ValidatingAdmissionPolicy '", OBSTACLE_FORBIDDEN,
     "a policy of the cluster forbids it: have it changed, or create the job anew with a template that it allows"},
    {"violates PodSecurity", OBSTACLE_FORBIDDEN,
     "create the job anew with another securityContext in the template, or change the namespace's "
     "pod-security.kubernetes.io/enforce label"},
    {"serviceaccount \"", OBSTACLE_FORBIDDEN, "create the ServiceAccount that the template names"},
    {"no PriorityClass with name", OBSTACLE_FORBIDDEN, "create the PriorityClass of runPolicy.priorityClassName"},
    {"per Container is", OBSTACLE_FORBIDDEN,
     "the namespace's LimitRange forbids what the template asks for: change either"},
    {"per Pod is", OBSTACLE_FORBIDDEN, "the namespace's LimitRange forbids what the template asks for: change either"},
    {"cannot create resource", OBSTACLE_FORBIDDEN,
     "the operator's role lacks this right: see its chart or deploy/rbac"},
    {"is being terminated", OBSTACLE_FORBIDDEN, "the namespace is being deleted, and the job with it"},
};
#define VOICES (sizeof voices / sizeof *voices)

static size_t voice_of(const struct error *error)
{
    size_t i = 0;
    while (i < VOICES && !strstr(error->message, voices[i].words))
        i++;
    return i;
}

/* Without a remedy of its own. Where no answer came, whatever is wrong is not the object. */
static enum obstacle_kind kind_of(const struct error *error)
{
    if (error->http_status == 0)
        return OBSTACLE_OUTAGE;
    switch (error->kind) {
    case ERROR_NO_SPACE:
        return OBSTACLE_QUOTA;
    case ERROR_FORBIDDEN:
        return OBSTACLE_FORBIDDEN;
    case ERROR_INVALID:
    case ERROR_TOO_LARGE:
        return OBSTACLE_REJECTED;
    default:
        return OBSTACLE_OUTAGE;
    }
}

const char *refusal_unknown_fields(const struct error *error)
{
    const char *strict = error->kind == ERROR_INVALID ? strstr(error->message, STRICT) : NULL;
    return strict ? strict + strlen(STRICT) : NULL;
}

#define VOLUMES "spec.volumes["

char *refusal_place(const struct pod_source *source, const char *words)
{
    const char *first = strstr(words, "spec.");
    bool is_volume = first && strncmp(first, VOLUMES, strlen(VOLUMES)) == 0;
    unsigned long number = is_volume ? strtoul(first + strlen(VOLUMES), NULL, 10) : source->storage_count;
    return number < source->storage_count ? memory_format("spec.storage[%s]", source->storages[number])
                                          : memory_format("spec.roles[%s].template", source->role);
}

enum obstacle_kind refusal_of_create(const struct error *error, const struct pod_source *source, char **ret_message)
{
    const char *words = error->message, *fields = refusal_unknown_fields(error);
    enum obstacle_kind kind = kind_of(error);
    size_t voice = kind != OBSTACLE_OUTAGE ? voice_of(error) : VOICES;
    SCOPED_FREE char *place = source ? refusal_place(source, fields ? fields : words) : NULL;
    if (place && fields) {
        *ret_message = memory_format("%s: %s: correct it and create the job anew", place, fields);
        return OBSTACLE_TEMPLATE;
    }
    if (voice < VOICES) {
        *ret_message = memory_format("%s; %s; it is tried again", words, voices[voice].remedy);
        return voices[voice].kind;
    }
    if (place && kind == OBSTACLE_REJECTED)
        *ret_message = memory_format("%s; correct %s and create the job anew", words, place);
    else
        *ret_message = memory_copy_string(words);
    return kind;
}

enum obstacle_kind refusal_of_look(const struct error *error, const char *name, char **ret_message)
{
    bool forbidden = error->kind == ERROR_FORBIDDEN && error->http_status != 0;
    *ret_message = memory_format("whether pod %s was made is not known, and no other comes before it is: %s%s", name,
                                 error->message,
                                 forbidden ? "; let the operator's role get pods: see its chart or deploy/rbac; it is "
                                             "tried again"
                                           : "");
    return forbidden ? OBSTACLE_FORBIDDEN : OBSTACLE_OUTAGE;
}

enum obstacle_kind refusal_of_priority(const struct error *error, char **ret_message)
{
    static const struct {
        enum error_kind kind;
        const char *remedy;
    } rows[] = {
        {ERROR_NOT_FOUND, "create the PriorityClass of runPolicy.priorityClassName"},
        {ERROR_FORBIDDEN,
         "PriorityClasses belong to no namespace: give the operator a ClusterRole that may get priorityclasses of "
         "scheduling.k8s.io, or create the job anew without runPolicy.priorityClassName"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].kind != error->kind || error->http_status == 0)
            continue;
        *ret_message = memory_format("%s; %s; it is tried again", error->message, rows[i].remedy);
        return OBSTACLE_FORBIDDEN;
    }
    *ret_message = memory_copy_string(error->message);
    return OBSTACLE_OUTAGE;
}
