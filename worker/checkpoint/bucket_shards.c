/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/bucket_shards.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/s3_transfer.h"
#include "worker/checkpoint/s3_settings.h"

#define FAILED_SUFFIX ".failed"
#define CALL_FORMAT "called.%08" PRIx32 ".%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".%lld"
#define SHARD_FORMAT "shard-%05u.%08" PRIx32 ".%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".%lld.safetensors"

static int print_name(uint32_t owner, const struct checkpoint_part_key *key, char name[BUCKET_SHARD_NAME_MAX])
{
    return snprintf(name, BUCKET_SHARD_NAME_MAX, SHARD_FORMAT, key->rank, owner, key->attempt, key->incarnation,
                    key->counter, (long long)key->step) < BUCKET_SHARD_NAME_MAX
               ? 0
               : -1;
}

int bucket_shard_name(const struct bucket *bucket, const struct checkpoint_part_key *key,
                      char name[BUCKET_SHARD_NAME_MAX], struct error *error)
{
    return print_name(bucket_owner(bucket), key, name) == 0
               ? 0
               : error_set(error, ERROR_INVALID, "the numbers of step %lld are too long for the name of a shard",
                           (long long)key->step);
}

bool bucket_shard_name_parse(const char *name, struct checkpoint_part_key *ret_key, uint32_t *ret_owner)
{
    struct checkpoint_part_key key = {0};
    uint32_t owner;
    long long step = -1;
    char exact[BUCKET_SHARD_NAME_MAX];
    if (sscanf(name, "shard-%9u.%8" SCNx32 ".%" SCNu32 ".%" SCNu32 ".%" SCNu32 ".%18lld", &key.rank, &owner,
               &key.attempt, &key.incarnation, &key.counter, &step) != 6 ||
        step < 0)
        return false;
    key.step = step;
    *ret_key = key;
    *ret_owner = owner;
    return print_name(owner, &key, exact) == 0 && strcmp(exact, name) == 0;
}

/* Parses the name of the object that checkpoint_parts_call leaves. */
static bool parse_call(const char *name, struct checkpoint_part_key *ret_key, uint32_t *ret_owner)
{
    struct checkpoint_part_key key = {0};
    long long step = 0;
    if (sscanf(name, "called.%8" SCNx32 ".%" SCNu32 ".%" SCNu32 ".%" SCNu32 ".%18lld", ret_owner, &key.attempt,
               &key.incarnation, &key.counter, &step) != 5)
        return false;
    key.step = step;
    *ret_key = key;
    return true;
}

bool bucket_shard_object_parse(const char *below, struct checkpoint_part_key *ret_key, uint32_t *ret_owner)
{
    if (strncmp(below, BUCKET_SHARDS, strlen(BUCKET_SHARDS)) != 0)
        return false;
    below += strlen(BUCKET_SHARDS);
    SCOPED_FREE char *name = memory_copy_bytes(below, strcspn(below, "/"));
    char *suffix = strstr(name, FAILED_SUFFIX);
    if (suffix)
        *suffix = '\0';
    return parse_call(name, ret_key, ret_owner) || bucket_shard_name_parse(name, ret_key, ret_owner);
}

static char *shard_key(const struct bucket *bucket, const char *name, const char *suffix)
{
    SCOPED_FREE char *below = memory_format(BUCKET_SHARDS "%s%s", name, suffix);
    return bucket_key(bucket, below);
}

int bucket_put_shard(struct bucket *bucket, const char *path, const char *name, struct error *error)
{
    SCOPED_FREE char *key = shard_key(bucket, name, "");
    return s3_upload(bucket_client(bucket), key, path, S3_SETTINGS_CONNECTIONS, error) < 0 ? bucket_fail(error) : 0;
}

void bucket_put_failure(struct bucket *bucket, const char *name, const struct error *why)
{
    char text[PART_FAILURE_MAX];
    SCOPED_FREE char *key = shard_key(bucket, name, FAILED_SUFFIX);
    int length = part_failure_format(why, text);
    s3_put(bucket_quick_client(bucket), key, text, (size_t)length, S3_PUT_ALWAYS, NULL);
}

void bucket_remove_shards(struct bucket *bucket, const struct checkpoint_part_key *key, unsigned ranks)
{
    static const char *const suffixes[] = {"", FAILED_SUFFIX};
    struct checkpoint_part_key part = *key;
    char name[BUCKET_SHARD_NAME_MAX];
    for (part.rank = 1; part.rank < ranks; part.rank++)
        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
            if (print_name(bucket_owner(bucket), &part, name) < 0)
                return;
            SCOPED_FREE char *object = shard_key(bucket, name, suffixes[i]);
            if (s3_delete(bucket_quick_client(bucket), object, NULL) < 0)
                return;
        }
}

/* Returns -1 with the reason if the writer has uploaded one (bucket_put_failure), else 0. */
static int look_for_failure(struct bucket *bucket, const char *name, struct error *error)
{
    SCOPED_FREE char *key = shard_key(bucket, name, FAILED_SUFFIX);
    SCOPED_BUFFER text;
    struct error cause = ERROR_INIT;
    buffer_init(&text, PART_FAILURE_MAX);
    if (s3_get_whole(bucket_client(bucket), key, &text, &cause) < 0 && cause.kind == ERROR_NOT_FOUND)
        return 0;
    if (cause.kind != ERROR_NONE)
        return bucket_fail_with(&cause, error);
    return part_failure_read(buffer_text(&text), error);
}

int bucket_look_for_shard(struct bucket *bucket, struct manifest_file *file, struct error *error)
{
    SCOPED_FREE char *key = shard_key(bucket, file->name, "");
    struct s3_head head;
    struct error cause = ERROR_INIT;
    if (s3_head(bucket_client(bucket), key, &head, &cause) < 0) {
        if (cause.kind == ERROR_NOT_FOUND)
            return look_for_failure(bucket, file->name, error);
        return bucket_fail_with(&cause, error);
    }
    if (!head.has_crc || head.size <= 0)
        return error_set(error, ERROR_SYSTEM, "the server does not report the checksum that %s was uploaded with", key);
    file->bytes = head.size;
    file->crc32c = head.crc;
    return 1;
}

static char *call_key(const struct bucket *bucket, const struct checkpoint_part_key *key)
{
    SCOPED_FREE char *name = memory_format(BUCKET_SHARDS CALL_FORMAT, bucket_owner(bucket), key->attempt,
                                           key->incarnation, key->counter, (long long)key->step);
    return bucket_key(bucket, name);
}

int bucket_call_parts(struct bucket *bucket, const struct checkpoint_part_key *key, struct error *error)
{
    SCOPED_FREE char *name = call_key(bucket, key);
    return s3_put(bucket_quick_client(bucket), name, "\n", 1, S3_PUT_ALWAYS, error) < 0 ? bucket_fail(error) : 0;
}

bool bucket_parts_are_called(struct bucket *bucket, const struct checkpoint_part_key *key)
{
    SCOPED_FREE char *name = call_key(bucket, key);
    struct s3_head head;
    return s3_head(bucket_quick_client(bucket), name, &head, NULL) == 0;
}
