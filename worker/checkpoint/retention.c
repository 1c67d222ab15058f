/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/retention.h"

#include <stdlib.h>

#include "common/contract/checkpoint_layout.h"
#include "common/memory.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"

static bool verified_set_holds(const struct verified_set *set, const struct checkpoint_name *name)
{
    for (unsigned i = 0; i < set->count; i++)
        if (checkpoint_name_equal(&set->names[i], name))
            return true;
    return false;
}

void verified_set_add(struct verified_set *set, const struct checkpoint_name *name)
{
    if (verified_set_holds(set, name))
        return;
    set->names = memory_resize(set->names, set->count + 1, sizeof *set->names);
    set->names[set->count++] = *name;
}

static void verified_set_remove(struct verified_set *set, const struct checkpoint_name *name)
{
    for (unsigned i = 0; i < set->count; i++)
        if (checkpoint_name_equal(&set->names[i], name))
            set->names[i--] = set->names[--set->count];
}

void verified_set_release(struct verified_set *set)
{
    free(set->names);
    *set = (struct verified_set){0};
}

static bool is_whole(const char *path, const struct checkpoint_name *name, struct verified_set *verified)
{
    struct manifest manifest;
    if (verified_set_holds(verified, name))
        return true;
    if (checkpoint_image_verify(path, name, &manifest, NULL) < 0)
        return false;
    manifest_release(&manifest);
    verified_set_add(verified, name);
    return true;
}

/* Renames the checkpoint before removing it, since a half removed directory would look like a
 * damaged checkpoint. */
static int remove_checkpoint(const char *directory, const char *name, struct error *error)
{
    SCOPED_FREE char *path = file_path_join(directory, name);
    SCOPED_FREE char *hidden = memory_format("%s/" CHECKPOINT_SAVING_PREFIX "%s", directory, name);
    if (file_calls.rename(path, hidden) < 0)
        return error_set_errno(error, "cannot retire checkpoint %s", path);
    return file_remove_directory(hidden, error);
}

/* Removes the candidates older than the `keep` newest whole ones. *ret_oldest is the oldest of
 * those kept; its step is -1 if fewer are whole. */
static int retire_candidates(const char *directory, const struct lineage *lineage, int64_t keep,
                             struct verified_set *verified, struct checkpoint_name *ret_oldest, struct error *error)
{
    int64_t whole = 0;
    ret_oldest->step = -1;
    for (unsigned i = 0; i < lineage->candidate_count; i++) {
        const struct checkpoint_name *name = &lineage->candidates[i];
        char text[CHECKPOINT_NAME_MAX];
        checkpoint_name_format(name, text);
        SCOPED_FREE char *path = file_path_join(directory, text);
        if (whole < keep) {
            if (is_whole(path, name, verified) && ++whole == keep)
                *ret_oldest = *name;
            continue;
        }
        verified_set_remove(verified, name);
        if (remove_checkpoint(directory, text, error) < 0)
            return -1;
    }
    return 0;
}

static int retire_strays(const char *directory, const struct lineage *lineage, int64_t own_incarnation,
                         struct error *error)
{
    for (unsigned i = 0; i < lineage->stray_count; i++) {
        char text[CHECKPOINT_NAME_MAX];
        checkpoint_name_format(&lineage->strays[i], text);
        if (lineage->strays[i].incarnation < own_incarnation && remove_checkpoint(directory, text, error) < 0)
            return -1;
    }
    return 0;
}

static int retire_records(const char *directory, const struct lineage *lineage, int64_t oldest_incarnation,
                          struct error *error)
{
    for (unsigned i = 0; i < lineage->record_count; i++)
        if (lineage->records[i].incarnation < oldest_incarnation &&
            incarnation_record_remove(directory, lineage->records[i].incarnation, error) < 0)
            return -1;
    return 0;
}

int retention_apply(const char *directory, const struct incarnation_record *own, int64_t keep,
                    struct verified_set *verified, struct error *error)
{
    struct lineage lineage;
    struct checkpoint_name oldest = {.step = -1};
    if (lineage_read(directory, &lineage, error) < 0)
        return -1;
    int result = lineage_check(&lineage, own, directory, error);
    if (result == 0)
        result = retire_candidates(directory, &lineage, keep, verified, &oldest, error);
    if (result == 0 && oldest.step >= 0)
        result = retire_strays(directory, &lineage, own->incarnation, error);
    if (result == 0 && oldest.step >= 0)
        result = retire_records(directory, &lineage, oldest.incarnation, error);
    lineage_release(&lineage);
    return result;
}
