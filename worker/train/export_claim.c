/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/export_claim.h"

#include <stdbool.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/lineage.h"
#include "worker/train/export_objects.h"

static bool is_by_hand(const struct export_claim *claim)
{
    return claim->job_uid == NULL || *claim->job_uid == '\0';
}

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    return memory_format("%.*s.%s" CHECKPOINT_CLAIMS_SUFFIX, (int)folder, path, path + folder);
}

static bool is_own(const struct incarnation_record *record, const struct export_claim *claim)
{
    return record->state != INCARNATION_DAMAGED && record->fencing == claim->incarnation &&
           strcmp(record->job_uid, claim->job_uid) == 0;
}

/* ERROR_NOT_FOUND: this chief has left none yet. */
static int find_own(const char *directory, const struct export_claim *claim, struct incarnation_record *ret_own,
                    struct error *error)
{
    struct lineage lineage;
    if (lineage_read(directory, &lineage, error) < 0)
        return -1;
    bool found = false;
    for (unsigned i = 0; i < lineage.record_count && !found; i++) {
        found = is_own(&lineage.records[i], claim);
        if (found)
            *ret_own = lineage.records[i];
    }
    lineage_release(&lineage);
    return found ? 0 : error_set(error, ERROR_NOT_FOUND, "%s has no record of this chief", directory);
}

int export_claim_take(const char *path, const struct export_claim *claim, struct error *error)
{
    if (is_by_hand(claim))
        return 0;
    SCOPED_FREE char *directory = directory_of(path);
    struct incarnation_record own;
    struct error cause = ERROR_INIT;
    if (file_make_directories(directory, error) < 0)
        return -1;
    if (find_own(directory, claim, &own, &cause) == 0)
        return 0;
    if (cause.kind != ERROR_NOT_FOUND)
        return error_set(error, cause.kind, "%s", cause.message);
    struct bucket *bucket;
    if (!claim->objects)
        return lineage_claim(directory, claim->job_uid, claim->attempt, claim->incarnation, &own, error);
    if (export_objects_claims(claim->objects, directory, &bucket, error) < 0)
        return -1;
    return bucket_claim(bucket, claim->job_uid, claim->attempt, claim->incarnation, &own, error);
}

int export_claim_check(const char *path, const struct export_claim *claim, struct error *error)
{
    if (is_by_hand(claim))
        return 0;
    SCOPED_FREE char *directory = directory_of(path);
    struct incarnation_record own;
    struct error cause = ERROR_INIT;
    struct bucket *bucket = NULL;
    if (find_own(directory, claim, &own, error) < 0 ||
        (claim->objects && export_objects_claims(claim->objects, directory, &bucket, error) < 0))
        return -1;
    if ((bucket ? bucket_check(bucket, &own, &cause) : lineage_check_current(directory, &own, &cause)) == 0)
        return 0;
    if (cause.kind == ERROR_CONFLICT)
        return error_set(error, ERROR_CONFLICT,
                         "another job has begun to write %s; give the export of every job a name of its own", path);
    return error_set(error, cause.kind, "%s", cause.message);
}
