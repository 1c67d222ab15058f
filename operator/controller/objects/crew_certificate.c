/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/crew_certificate.h"

#include "common/certificate.h"
#include "common/contract/environment.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/job_secret.h"

#define SKEW_S 3600 /* how far behind a node's clock may be */

static const char *const places[] = {"even", "odd"};
static const char *const files[] = {CREW_TLS_EVEN, CREW_TLS_ODD};

bool crew_certificate_is_needed(const struct training_job *job)
{
    return job->document.encryption == ENCRYPTION_TLS && job->framework == FRAMEWORK_COXSWAIN && crew_has_peers(job);
}

bool crew_certificate_replaces(int64_t generation)
{
    return generation >= 2;
}

/* The job's "tls" with "-even" or "-odd"; release with free(). */
static char *secret_name(const struct training_job *job, int64_t generation)
{
    SCOPED_FREE char *name = job_secret_name(job, "tls");
    return memory_format("%s-%s", name, places[generation % 2]);
}

/* Returns the text that worker/comm/crew_certificates.h reads. */
static char *file_text(const struct certificate *made, int64_t from_s)
{
    return memory_format("from %lld\n%s%s", (long long)from_s, made->certificate_pem, made->key_pem);
}

int crew_certificate_build(const struct training_job *job, const struct certificate_generation *generation,
                           int64_t now_ms, struct json **ret_secret, struct error *error)
{
    int64_t from_s = generation->from_ms / 1000, life_s = CREW_CERTIFICATE_PERIODS * generation->period_ms / 1000;
    const struct certificate_request request = {.common_name = job->uid,
                                                .names = "DNS:" CREW_TLS_NAME,
                                                .from_s = now_ms / 1000 - SKEW_S,
                                                .until_s = from_s + life_s + SKEW_S};
    SCOPED(certificate_release) struct certificate made = {0};
    if (certificate_make(&request, NULL, &made, error) < 0)
        return -1;
    SCOPED_FREE char *name = secret_name(job, generation->number), *text = file_text(&made, from_s);
    *ret_secret = job_secret_new(job, name);
    job_secret_set_data(*ret_secret, CREW_TLS_KEY, text, strlen(text));
    return 0;
}

static void add_source(struct json *sources, const struct training_job *job, int place)
{
    SCOPED_FREE char *name = secret_name(job, place);
    struct json *secret = json_set_object(json_append(sources, json_new_object()), "secret");
    struct json *item = json_append(json_set_array(secret, "items"), json_new_object());
    json_set_string(secret, "name", name);
    json_set_string(item, "key", CREW_TLS_KEY);
    json_set_string(item, "path", files[place]);
}

void crew_certificate_add_volume(struct json *volumes, const struct training_job *job)
{
    struct json *volume = json_append(volumes, json_new_object());
    json_set_string(volume, "name", CREW_CERTIFICATE_VOLUME);
    struct json *projected = json_set_object(volume, "projected");
    json_set_integer(projected, "defaultMode", JOB_SECRET_MODE);
    for (int place = 0; place < 2; place++)
        add_source(json_set_array(projected, "sources"), job, place);
}

void crew_certificate_add_mount(struct json *mounts)
{
    job_secret_add_mount(mounts, CREW_CERTIFICATE_VOLUME, CREW_TLS_DIRECTORY);
}
