/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/volume_options.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "common/job/training_job.h"
#include "common/memory.h"
#include "common/nearest_word.h"
#include "common/scope.h"

#define CLAIMS_MAX 64

struct claims {
    const char *names[CLAIMS_MAX];
    size_t count;
};

static void add_claims(struct claims *claims, const struct json *volumes)
{
    for (const struct json *item = json_first(volumes); item && claims->count < CLAIMS_MAX; item = json_next(item)) {
        const char *claim = json_string_at(item, "persistentVolumeClaim.claimName", NULL);
        bool known = claim == NULL;
        for (size_t i = 0; i < claims->count && !known; i++)
            known = strcmp(claims->names[i], claim) == 0;
        if (!known)
            claims->names[claims->count++] = claim;
    }
}

static const struct json *storage_of(const struct json *spec, const char *name)
{
    const struct json *item = json_first(json_member(spec, "storage"));
    while (item && strcmp(json_string_at(item, "name", ""), name) != 0)
        item = json_next(item);
    return item;
}

/* A person may have written the name of the storage instead of its claim's. */
static const char *claim_of_storage(const struct json *spec, const char *storage)
{
    return json_string_at(storage_of(spec, storage), "persistentVolumeClaim.claimName", NULL);
}

static int unknown_claim(const struct json *spec, const struct claims *claims, const char *option, const char *name,
                         struct error *error)
{
    const char *meant = claim_of_storage(spec, name);
    SCOPED_BUFFER text = BUFFER_INIT(ERROR_MESSAGE_MAX);
    if (!meant)
        meant = nearest_word(name, claims->names, claims->count);
    for (size_t i = 0; i < claims->count; i++)
        buffer_format(&text, "%s%s", i == 0 ? "" : ", ", claims->names[i]);
    if (claims->count == 0)
        return error_set(error, ERROR_INVALID, "--volume %s: the job has no claim", option);
    return error_set(error, ERROR_INVALID, "--volume %s: the job has no claim \"%s\" but %s%s%s%s", option, name,
                     buffer_text(&text), meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

const char *volume_options_find(const char *const *volumes, unsigned count, const char *claim)
{
    size_t length = strlen(claim);
    for (unsigned i = 0; i < count; i++)
        if (strncmp(volumes[i], claim, length) == 0 && volumes[i][length] == '=')
            return volumes[i] + length + 1;
    return NULL;
}

int volume_options_check(const struct json *spec, const char *const *volumes, unsigned count, struct error *error)
{
    struct claims claims = {.count = 0};
    add_claims(&claims, json_member(spec, "storage"));
    for (int role = 0; role < ROLE_COUNT; role++)
        add_claims(&claims, json_at(json_member(spec, role_section((enum role)role)), "template.spec.volumes"));
    for (unsigned i = 0; i < count; i++) {
        const char *directory = strchr(volumes[i], '=') + 1;
        SCOPED_FREE char *name = memory_copy_bytes(volumes[i], (size_t)(directory - volumes[i] - 1));
        bool known = claims.count == CLAIMS_MAX;
        struct stat status;
        for (size_t j = 0; j < claims.count && !known; j++)
            known = strcmp(claims.names[j], name) == 0;
        if (!known)
            return unknown_claim(spec, &claims, volumes[i], name, error);
        if (stat(directory, &status) < 0)
            return error_set_errno(error, "--volume %s: open the directory", volumes[i]);
        if (!S_ISDIR(status.st_mode))
            return error_set(error, ERROR_INVALID, "--volume %s: this is not a directory", volumes[i]);
    }
    return 0;
}

static bool has_entries(const char *directory)
{
    DIR *stream = opendir(directory);
    if (!stream)
        return false;
    bool found = false;
    for (const struct dirent *entry; !found && (entry = readdir(stream)) != NULL;)
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(stream);
    return found;
}

/* Returns whether something fills the folder before the job reads it. */
static bool is_filled_later(const struct json *spec, const char *storage)
{
    bool found = json_member(storage_of(spec, storage), "download") != NULL;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct json *pod = json_at(json_member(spec, role_section((enum role)role)), "template.spec");
        found |= json_count(json_member(pod, "initContainers")) > 0;
    }
    return found;
}

int volume_options_check_data(const struct json *spec, const char *const *volumes, unsigned count,
                              const char *directory, struct error *error)
{
    const char *storage = json_string_at(spec, "coxswain.data.storage", NULL);
    const char *claim = storage ? claim_of_storage(spec, storage) : NULL;
    if (!claim || strcmp(json_string_at(spec, "coxswain.data.format", ""), "Synthetic") == 0 ||
        is_filled_later(spec, storage) || volume_options_find(volumes, count, claim))
        return 0;
    SCOPED_FREE char *folder = memory_format("%s/%s", directory, claim);
    if (has_entries(folder))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "the job reads its data from the claim %s, which would be an empty folder without --volume; add "
                     "--volume %s=FOLDER, the folder with the files",
                     claim, claim);
}
