/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/lineage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* Far more than retention leaves behind; a directory with more is not ours. */
#define ENTRIES_MAX 65536
#define CLAIM_TRIES 64

/* ---- reading a directory */

struct listing {
    struct incarnation_record *records;
    unsigned record_count;
    struct checkpoint_name *names;
    unsigned name_count;
};

static void listing_release(struct listing *listing)
{
    free(listing->records);
    free(listing->names);
}

static int add_record(struct listing *listing, const char *directory, int64_t incarnation, struct error *error)
{
    struct incarnation_record record;
    struct error cause = ERROR_INIT;
    if (incarnation_record_read(directory, incarnation, &record, &cause) < 0)
        /* Retired by its successor since the directory was listed. */
        return cause.kind == ERROR_NOT_FOUND ? 0 : error_set(error, cause.kind, "%s", cause.message);
    listing->records = memory_resize(listing->records, listing->record_count + 1, sizeof *listing->records);
    listing->records[listing->record_count++] = record;
    return 0;
}

static int add_entry(struct listing *listing, const char *directory, const char *entry, struct error *error)
{
    struct checkpoint_name name;
    int64_t incarnation = incarnation_record_name_parse(entry);
    if (listing->name_count + listing->record_count >= ENTRIES_MAX)
        return error_set(error, ERROR_TOO_LARGE,
                         "%s holds more than %d checkpoints and records; give the job a directory "
                         "of its own",
                         directory, ENTRIES_MAX);
    if (checkpoint_name_is_former(entry))
        return error_set(error, ERROR_UNSUPPORTED,
                         "checkpoint %s/%s has format version 1, which is not read any more; use the build that wrote "
                         "it, or give the job another checkpoint.path",
                         directory, entry);
    if (incarnation >= 0)
        return add_record(listing, directory, incarnation, error);
    if (checkpoint_name_parse(entry, &name) == 0) {
        listing->names = memory_resize(listing->names, listing->name_count + 1, sizeof *listing->names);
        listing->names[listing->name_count++] = name;
    }
    return 0;
}

static int newest_record_first(const void *left, const void *right)
{
    const struct incarnation_record *a = left, *b = right;
    return (a->incarnation < b->incarnation) - (a->incarnation > b->incarnation);
}

static int largest_step_first(const void *left, const void *right)
{
    const struct checkpoint_name *a = left, *b = right;
    return (a->step < b->step) - (a->step > b->step);
}

static int listing_read(const char *directory, struct listing *ret_listing, struct error *error)
{
    struct listing listing = {0};
    DIR *entries = opendir(directory);
    if (entries == NULL && errno != ENOENT)
        return error_set_errno(error, "cannot open checkpoint directory %s", directory);
    struct dirent *entry;
    int result = 0;
    while (result == 0 && entries && (entry = readdir(entries)) != NULL)
        result = add_entry(&listing, directory, entry->d_name, error);
    if (entries)
        closedir(entries);
    if (result < 0) {
        listing_release(&listing);
        return -1;
    }
    if (listing.record_count > 0)
        qsort(listing.records, listing.record_count, sizeof *listing.records, newest_record_first);
    if (listing.name_count > 0)
        qsort(listing.names, listing.name_count, sizeof *listing.names, largest_step_first);
    *ret_listing = listing;
    return 0;
}

/* ---- the line of descent */

static const struct incarnation_record *find_record(const struct listing *listing, int64_t incarnation)
{
    for (unsigned i = 0; i < listing->record_count; i++)
        if (listing->records[i].incarnation == incarnation)
            return &listing->records[i];
    return NULL;
}

/* The newest chief below `incarnation` that may have saved something; -1: none. */
static int64_t next_older(const struct listing *listing, int64_t incarnation)
{
    int64_t newest = -1;
    for (unsigned i = 0; i < listing->record_count; i++) {
        const struct incarnation_record *record = &listing->records[i];
        if (record->state != INCARNATION_CLAIMED && record->incarnation < incarnation && record->incarnation > newest)
            newest = record->incarnation;
    }
    for (unsigned i = 0; i < listing->name_count; i++)
        if (listing->names[i].incarnation < incarnation && listing->names[i].incarnation > newest)
            newest = listing->names[i].incarnation;
    return newest;
}

/* A chief's own checkpoints, as far as its successor started from them. */
static void add_candidates(struct lineage *lineage, const struct listing *listing, int64_t incarnation,
                           int64_t step_limit)
{
    for (unsigned i = 0; i < listing->name_count; i++)
        if (listing->names[i].incarnation == incarnation && listing->names[i].step <= step_limit)
            lineage->candidates[lineage->candidate_count++] = listing->names[i];
}

static void follow_line(struct lineage *lineage, const struct listing *listing)
{
    int64_t incarnation = next_older(listing, INT64_MAX), step_limit = INT64_MAX;
    while (incarnation >= 0) {
        add_candidates(lineage, listing, incarnation, step_limit);
        const struct incarnation_record *record = find_record(listing, incarnation);
        bool known = record && record->state == INCARNATION_DECIDED;
        if (known && record->base.step < 0)
            return;
        if (known) /* perhaps above the newer ones' limit: with larger batches peers count fewer steps */
            step_limit = record->base.step;
        int64_t older = known ? record->base.incarnation : next_older(listing, incarnation);
        incarnation = older < incarnation ? older : -1;
    }
}

static bool is_candidate(const struct lineage *lineage, const struct checkpoint_name *name)
{
    for (unsigned i = 0; i < lineage->candidate_count; i++)
        if (checkpoint_name_equal(&lineage->candidates[i], name))
            return true;
    return false;
}

static void add_strays(struct lineage *lineage, const struct listing *listing)
{
    for (unsigned i = 0; i < listing->name_count; i++)
        if (!is_candidate(lineage, &listing->names[i]))
            lineage->strays[lineage->stray_count++] = listing->names[i];
}

int lineage_read(const char *directory, struct lineage *ret_lineage, struct error *error)
{
    struct listing listing;
    if (listing_read(directory, &listing, error) < 0)
        return -1;
    struct lineage lineage = {
        .candidates = memory_allocate(listing.name_count, sizeof *lineage.candidates),
        .strays = memory_allocate(listing.name_count, sizeof *lineage.strays),
        .records = listing.records,
        .record_count = listing.record_count,
    };
    follow_line(&lineage, &listing);
    add_strays(&lineage, &listing);
    free(listing.names);
    *ret_lineage = lineage;
    return 0;
}

void lineage_release(struct lineage *lineage)
{
    free(lineage->candidates);
    free(lineage->strays);
    free(lineage->records);
    *lineage = (struct lineage){0};
}

/* ---- a new chief */

static bool same_job(const struct incarnation_record *record, const char *job_uid)
{
    return job_uid[0] != '\0' && record->state != INCARNATION_DAMAGED && strcmp(record->job_uid, job_uid) == 0;
}

static int choose_incarnation(const struct listing *listing, const char *job_uid, int64_t fencing,
                              int64_t *ret_incarnation, struct error *error)
{
    int64_t highest = -1;
    for (unsigned i = 0; i < listing->record_count; i++) {
        const struct incarnation_record *record = &listing->records[i];
        if (same_job(record, job_uid) && record->fencing >= fencing)
            return error_set(error, ERROR_STALE,
                             "a chief of incarnation %lld has taken over; this one has incarnation %lld",
                             (long long)record->fencing, (long long)fencing);
        highest = record->incarnation > highest ? record->incarnation : highest;
    }
    for (unsigned i = 0; i < listing->name_count; i++)
        highest = listing->names[i].incarnation > highest ? listing->names[i].incarnation : highest;
    *ret_incarnation = highest >= fencing ? highest + 1 : fencing;
    return 0;
}

/* Fails with ERROR_ALREADY_EXISTS when a rival was quicker with the same number. */
static int try_claim(const char *directory, struct incarnation_record *claim, struct error *error)
{
    struct listing listing;
    if (listing_read(directory, &listing, error) < 0)
        return -1;
    int result = choose_incarnation(&listing, claim->job_uid, claim->fencing, &claim->incarnation, error);
    listing_release(&listing);
    return result < 0 ? -1 : incarnation_record_create(directory, claim, error);
}

int lineage_claim(const char *directory, const char *job_uid, int64_t attempt, int64_t fencing,
                  struct incarnation_record *ret_claim, struct error *error)
{
    struct incarnation_record claim = {
        .state = INCARNATION_CLAIMED, .fencing = fencing, .attempt = attempt, .base = {.step = -1}};
    snprintf(claim.job_uid, sizeof claim.job_uid, "%s", job_uid);
    struct error cause = ERROR_INIT;
    for (int i = 0; i < CLAIM_TRIES; i++) {
        if (try_claim(directory, &claim, &cause) == 0) {
            *ret_claim = claim;
            return 0;
        }
        if (cause.kind != ERROR_ALREADY_EXISTS)
            break;
    }
    return error_set(error, cause.kind, "%s", cause.message);
}

int lineage_decide(const char *directory, struct incarnation_record *claim, const struct checkpoint_name *base,
                   struct error *error)
{
    if (lineage_check_current(directory, claim, error) < 0)
        return -1;
    claim->state = INCARNATION_DECIDED;
    if (base)
        claim->base = *base;
    return incarnation_record_replace(directory, claim, error);
}

static int check_newest(const struct incarnation_record *records, unsigned count, const struct incarnation_record *own,
                        const char *directory, struct error *error)
{
    const struct incarnation_record *newest = count > 0 ? &records[0] : own;
    if (newest->incarnation <= own->incarnation)
        return 0;
    if (newest->state == INCARNATION_DAMAGED || same_job(newest, own->job_uid))
        return error_set(error, ERROR_STALE, "a newer chief (incarnation %lld) has taken over %s",
                         (long long)newest->incarnation, directory);
    return error_set(error, ERROR_CONFLICT,
                     "another job (UID \"%s\") has taken over %s; give every job a checkpoint.path of its own",
                     newest->job_uid, directory);
}

int lineage_check(const struct lineage *lineage, const struct incarnation_record *own, const char *directory,
                  struct error *error)
{
    return check_newest(lineage->records, lineage->record_count, own, directory, error);
}

int lineage_check_current(const char *directory, const struct incarnation_record *own, struct error *error)
{
    struct listing listing;
    if (listing_read(directory, &listing, error) < 0)
        return -1;
    int result = check_newest(listing.records, listing.record_count, own, directory, error);
    listing_release(&listing);
    return result;
}
