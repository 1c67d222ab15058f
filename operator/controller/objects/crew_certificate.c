/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/crew_certificate.h"

#include "common/base64.h"
#include "common/certificate.h"
#include "common/contract/environment.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/crew_key.h"

#define SKEW_S 3600 /* how far behind a node's clock may be */
#define UID_PART 8

static const char *const places[] = {"even", "odd"};
static const char *const files[] = {CREW_TLS_EVEN, CREW_TLS_ODD};

bool crew_certificate_is_needed(const struct training_job *job)
{
    return job->document.encryption == ENCRYPTION_TLS && crew_key_is_needed(job);
}

bool crew_certificate_replaces(int64_t generation)
{
    return generation >= 2;
}

/* "<job>-tls-<start of its UID>-even"; release with free(). */
static char *secret_name(const struct training_job *job, int64_t generation)
{
    return memory_format("%s-tls-%.*s-%s", job->name, UID_PART, job->uid, places[generation % 2]);
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
    SCOPED_FREE char *name = secret_name(job, generation->number);
    SCOPED_FREE char *text = file_text(&made, from_s), *encoded = base64_encode(text, strlen(text));
    struct json *secret = json_new_object();
    json_set_string(secret, "apiVersion", "v1");
    json_set_string(secret, "kind", "Secret");
    child_metadata_fill(json_set(secret, "metadata", json_new_object()), job, name);
    json_set_string(secret, "type", "Opaque");
    json_set_string(json_set(secret, "data", json_new_object()), CREW_TLS_KEY, encoded);
    *ret_secret = secret;
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
    json_set_integer(projected, "defaultMode", 0444); /* readable for any user that a template sets */
    for (int place = 0; place < 2; place++)
        add_source(json_set_array(projected, "sources"), job, place);
}

void crew_certificate_add_mount(struct json *mounts)
{
    struct json *mount = json_append(mounts, json_new_object());
    json_set_string(mount, "name", CREW_CERTIFICATE_VOLUME);
    json_set_string(mount, "mountPath", CREW_TLS_DIRECTORY);
    json_set_boolean(mount, "readOnly", true);
}
