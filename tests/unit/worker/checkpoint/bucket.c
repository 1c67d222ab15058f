/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints in a bucket whose server stops at any request. tests/s3/test_checkpoint.sh runs jobs with a real server.
 */
#include "worker/checkpoint/bucket.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "tests/unit/s3_server.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/worker/checkpoint/directory.h"
#include "worker/checkpoint/bucket_shards.h"
#include "worker/checkpoint/file.h"

#define OBJECTS 64
#define STRIDE (IS_SANITIZED ? 5 : 1) /* of the requests at which a chief ends */
#define KEY_MAX 256

struct object {
    char key[KEY_MAX]; /* "": free */
    char crc[16];
    char *bytes;
    size_t length;
    unsigned version;
};

static struct {
    pthread_mutex_t lock;
    void (*hook)(void); /* called once before the next list of objects is sent; NULL: none */
    struct object objects[OBJECTS];
    int answered;          /* requests so far */
    int stops_at;          /* from this request on, all are refused; -1: none */
    bool acts;             /* the first of them is carried out */
    bool is_unconditional; /* the server ignores If-None-Match */
} bucket = {.lock = PTHREAD_MUTEX_INITIALIZER, .stops_at = -1};

static struct scripted_server server;

static struct object *find(const char *key)
{
    for (int i = 0; i < OBJECTS; i++)
        if (strcmp(bucket.objects[i].key, key) == 0)
            return &bucket.objects[i];
    return NULL;
}

static void list(struct scripted_request *request)
{
    SCOPED_BUFFER text;
    char prefix[KEY_MAX] = "";
    const char *encoded = strstr(request->line, "prefix=") + strlen("prefix=");
    for (size_t i = 0; *encoded; encoded++) {
        bool slash = strncmp(encoded, "%2F", 3) == 0;
        prefix[i++] = slash ? '/' : *encoded;
        encoded += slash ? 2 : 0;
    }
    buffer_init(&text, 65536);
    buffer_append_string(&text, "<ListBucketResult>", NULL);
    for (int i = 0; i < OBJECTS; i++)
        if (bucket.objects[i].key[0] && strncmp(bucket.objects[i].key, prefix, strlen(prefix)) == 0)
            buffer_format(&text, "<Contents><Key>%s</Key><ETag>&quot;%u&quot;</ETag><Size>%zu</Size></Contents>",
                          bucket.objects[i].key, bucket.objects[i].version, bucket.objects[i].length);
    buffer_append_string(&text, "</ListBucketResult>", NULL);
    scripted_reply(request, 200, buffer_text(&text));
}

static void get(struct scripted_request *request, const struct object *object)
{
    char head[512];
    if (!object) {
        bool has_body = strncmp(request->line, "HEAD", 4) != 0;
        scripted_reply(request, 404, has_body ? "<Error><Code>NoSuchKey</Code></Error>" : "");
        return;
    }
    snprintf(head, sizeof head,
             "HTTP/1.1 200 X\r\nContent-Length: %zu\r\nETag: \"%u\"\r\nx-amz-meta-coxswain-crc32c: %s\r\n\r\n",
             object->length, object->version, object->crc);
    scripted_send(request, head);
    for (size_t sent = strncmp(request->line, "HEAD", 4) == 0 ? object->length : 0; sent < object->length;) {
        ssize_t count = send(request->descriptor, object->bytes + sent, object->length - sent, MSG_NOSIGNAL);
        if (count <= 0)
            break;
        sent += (size_t)count;
    }
}

static int put(const struct scripted_request *request, const char *key)
{
    struct object *object = find(key);
    const char *length = strcasestr(request->head, "\r\ncontent-length:"),
               *crc = strcasestr(request->head, "\r\nx-amz-meta-coxswain-crc32c:");
    if (object && !bucket.is_unconditional && strcasestr(request->head, "\r\nif-none-match:"))
        return 412;
    if (!object)
        object = find("");
    snprintf(object->key, sizeof object->key, "%s", key);
    sscanf(crc + strlen("\r\nx-amz-meta-coxswain-crc32c:"), " %8s", object->crc);
    free(object->bytes);
    object->length = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
    object->bytes = memory_allocate(object->length + 1, 1);
    memcpy(object->bytes, request->body, object->length);
    object->version++;
    return 200;
}

static void serve(struct scripted_request *request)
{
    pthread_mutex_lock(&bucket.lock);
    void (*hook)(void) = strstr(request->line, "list-type=2") ? bucket.hook : NULL;
    bucket.hook = hook ? NULL : bucket.hook;
    pthread_mutex_unlock(&bucket.lock);
    if (hook)
        hook();
    pthread_mutex_lock(&bucket.lock);
    int number = bucket.answered++;
    bool refused = bucket.stops_at >= 0 && number >= bucket.stops_at;
    bool acts = !refused || (bucket.acts && number == bucket.stops_at);
    const char *key = strchr(request->line, '/') + strlen("/runs/");
    int status = 204;
    if (acts && strncmp(request->line, "PUT", 3) == 0)
        status = put(request, key);
    else if (acts && strncmp(request->line, "DELETE", 6) == 0 && find(key))
        find(key)->key[0] = '\0';
    if (refused)
        scripted_reply(request, 400, "<Error><Code>InvalidRequest</Code></Error>");
    else if (strstr(request->line, "list-type=2"))
        list(request);
    else if (strncmp(request->line, "GET", 3) == 0 || strncmp(request->line, "HEAD", 4) == 0)
        get(request, find(key));
    else
        scripted_reply(request, status, status == 412 ? "<Error><Code>PreconditionFailed</Code></Error>" : "");
    pthread_mutex_unlock(&bucket.lock);
}

static void start_server(void)
{
    signal(SIGPIPE, SIG_IGN);
    s3_client_free(s3_server_start(&server, serve));
}

/* Each chief has a folder of its own, as on another node. */
static int open_chief(const char *directory, int64_t incarnation, struct checkpoint_store **ret_store,
                      struct error *error)
{
    SCOPED_FREE char *folder = memory_format("%s/%lld", directory, (long long)incarnation);
    SCOPED_FREE char *settings = memory_format(
        "{\"endpoint\":\"http://127.0.0.1:%d\",\"bucket\":\"runs\",\"prefix\":\"jobs/one\"}", server.port);
    const struct checkpoint_options options = {
        .directory = folder, .bucket = settings, .job_uid = "job", .attempt = 1, .incarnation = incarnation, .keep = 2};
    return checkpoint_store_open(&options, ret_store, error);
}

/* Restores, begins and saves the steps, up to a -1. Returns the newest step that counts as committed; -1: none. */
static int64_t run_chief(const char *directory, int64_t incarnation, const int64_t *steps)
{
    struct checkpoint_store *store;
    struct checkpoint_image image;
    int64_t committed = -1;
    if (open_chief(directory, incarnation, &store, NULL) < 0)
        return -1;
    struct error error = ERROR_INIT;
    if (checkpoint_restore(store, NULL, NULL, &image, &error) == 0)
        checkpoint_image_release(&image);
    else if (error.kind != ERROR_NOT_FOUND) {
        checkpoint_store_free(store);
        return -1;
    }
    if (checkpoint_store_begin(store, false, NULL) == 0)
        for (; *steps >= 0; steps++)
            committed = test_save(store, *steps, NULL) == 0 ? *steps : committed;
    checkpoint_store_free(store);
    return committed;
}

static void expect_weight(const struct checkpoint_image *image)
{
    const struct safetensors_tensor *tensor = checkpoint_image_find(image, "weight");
    for (size_t i = 0; i < tensor->bytes / sizeof(float); i++)
        cr_assert_eq(((const float *)tensor->data)[i], (float)image->manifest.step, "a wrong value was loaded");
}

/* What a chief on a new node starts from, whose values are checked. */
static int64_t restored(const char *directory, int64_t incarnation)
{
    struct checkpoint_store *store;
    struct checkpoint_image image;
    struct error error = ERROR_INIT;
    int64_t step = -1;
    cr_assert_eq(open_chief(directory, incarnation, &store, &error), 0, "%s", error.message);
    bool found = checkpoint_restore(store, NULL, NULL, &image, &error) == 0;
    if (found) {
        step = image.manifest.step;
        expect_weight(&image);
        checkpoint_image_release(&image);
    }
    cr_assert(found || error.kind == ERROR_NOT_FOUND, "%s", error.message);
    checkpoint_store_free(store);
    return step;
}

static int count_objects(const char *part)
{
    int count = 0;
    for (int i = 0; i < OBJECTS; i++)
        count += bucket.objects[i].key[0] && strstr(bucket.objects[i].key, part);
    return count;
}

static void empty_bucket(void)
{
    for (int i = 0; i < OBJECTS; i++)
        bucket.objects[i].key[0] = '\0';
    bucket.answered = 0;
    bucket.stops_at = -1;
}

TestSuite(bucket, .timeout = 120);

Test(bucket, a_chief_on_another_node_goes_on_from_the_newest)
{
    const char *directory = test_directory();
    start_server();
    cr_expect_eq(run_chief(directory, 1, (int64_t[]){10, 20, 30, -1}), 30);
    cr_expect_eq(count_objects("/manifest.json"), 2, "keep: 2");
    cr_expect_eq(count_objects("/rank-00000"), 2, "nothing is left of a checkpoint that is removed");
    SCOPED_FREE char *older =
        memory_format("%s/1/step-00000020.attempt-1.incarnation-1/rank-00000.safetensors", directory);
    cr_expect_lt(access(older, F_OK), 0, "the local copy has the tensors of the newest only");
    cr_expect_eq(run_chief(directory, 2, (int64_t[]){40, 50, -1}), 50);
    cr_expect_eq(restored(directory, 3), 50);
    cr_expect_eq(count_objects("/incarnation-1.json"), 0, "no line needs it");
    scripted_server_stop(&server);
}

/* The first chief ends at every request in turn, before or after the server has carried it out. */
Test(bucket, no_request_at_which_a_chief_ends_loses_a_checkpoint)
{
    const char *directory = test_directory();
    start_server();
    for (int acts = 0; acts < 2; acts++)
        for (int stop = IS_SANITIZED ? acts : 0, ended = 0; !ended; stop += STRIDE) {
            empty_bucket();
            cr_assert_eq(run_chief(directory, 1, (int64_t[]){10, 20, 30, -1}), 30);
            bucket.answered = 0;
            bucket.stops_at = stop;
            bucket.acts = acts;
            int64_t committed = run_chief(directory, 2, (int64_t[]){40, 50, 60, -1});
            ended = bucket.answered < stop;
            bucket.stops_at = -1;
            int64_t found = restored(directory, 3);
            cr_assert(found >= 30 && found >= committed, "request %d: step %lld was committed, and %lld is loaded",
                      stop, (long long)committed, (long long)found);
            cr_assert_eq(run_chief(directory, 4, (int64_t[]){70, 80, -1}), 80);
            cr_assert_eq(count_objects("/manifest.json"), 2, "request %d", stop);
            cr_assert_eq(count_objects("/rank-00000"), 2, "request %d", stop);
            for (int i = 1; i <= 4; i++) {
                SCOPED_FREE char *folder = memory_format("%s/%d", directory, i);
                test_directory_remove(folder);
            }
            cr_assert_lt(stop, 200);
        }
    scripted_server_stop(&server);
}

Test(bucket, an_older_chief_commits_nothing_more)
{
    const char *directory = test_directory();
    struct checkpoint_store *first, *second;
    struct error error = ERROR_INIT;
    start_server();
    cr_assert_eq(open_chief(directory, 1, &first, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(first, false, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(first, 10, &error), 0, "%s", error.message);
    cr_assert_eq(open_chief(directory, 2, &second, &error), 0, "%s", error.message);
    cr_assert_lt(test_save(first, 20, &error), 0);
    cr_assert_eq(error.kind, ERROR_STALE, "%s", error.message);
    cr_assert_lt(checkpoint_store_check(first, &error), 0, "nor does it export");
    cr_assert_eq(count_objects("step-00000020"), 0);
    checkpoint_store_free(first);
    checkpoint_store_free(second);
    cr_assert_lt(open_chief(directory, 2, &second, &error), 0);
    cr_assert_eq(error.kind, ERROR_STALE, "an incarnation is used once: %s", error.message);
    scripted_server_stop(&server);
}

/* The same name in the bucket, by another process: no second commit. */
Test(bucket, a_checkpoint_is_committed_once)
{
    const char *directory = test_directory();
    struct checkpoint_store *store;
    struct error error = ERROR_INIT;
    start_server();
    cr_assert_eq(open_chief(directory, 1, &store, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(store, 10, &error), 0, "%s", error.message);
    int puts = scripted_count(&server, "PUT");
    cr_assert_eq(test_save(store, 10, &error), 0, "it has the same tensors: %s", error.message);
    cr_assert_eq(scripted_count(&server, "PUT"), puts, "and is there already");
    checkpoint_store_free(store);
    scripted_server_stop(&server);
}

/* Saves step 10 with other values than test_save. */
static int save_again(struct checkpoint_store *store, float value, struct error *error)
{
    const struct manifest manifest = {.step = 10, .workers = 1, .logical_shards = 1};
    const struct safetensors_tensor tensor = {
        .name = "again", .dtype = SAFETENSORS_F32, .shape = {1}, .rank = 1, .data = &value, .bytes = sizeof value};
    enum checkpoint_start start;
    return checkpoint_save(store, &manifest, &tensor, 1, &start, error) < 0 ? -1 : checkpoint_wait(store, error);
}

/* The value of save_again that a chief on a new node loads; 0: it loads what test_save has saved; -1: nothing. */
static float restored_again(const char *directory, int64_t incarnation)
{
    struct checkpoint_store *store;
    struct checkpoint_image image;
    struct error error = ERROR_INIT;
    float value = -1;
    cr_assert_eq(open_chief(directory, incarnation, &store, &error), 0, "%s", error.message);
    if (checkpoint_restore(store, NULL, NULL, &image, &error) == 0) {
        const struct safetensors_tensor *tensor = checkpoint_image_find(&image, "again");
        value = tensor ? *(const float *)tensor->data : 0;
        if (!tensor)
            expect_weight(&image);
        checkpoint_image_release(&image);
    }
    checkpoint_store_free(store);
    return value;
}

/* The crew returned to an older step and saves the only checkpoint again, with other bits, twice; the chief ends at every request. */
Test(bucket, a_second_save_of_a_step_never_leaves_the_bucket_without_it)
{
    const char *directory = test_directory();
    struct checkpoint_store *store;
    start_server();
    for (int acts = 0; acts < 2; acts++)
        for (int stop = 0, ended = 0; !ended; stop++) {
            struct error error = ERROR_INIT;
            empty_bucket();
            cr_assert_eq(open_chief(directory, 1, &store, &error), 0, "%s", error.message);
            cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
            cr_assert_eq(test_save(store, 10, &error), 0, "%s", error.message);
            bucket.answered = 0;
            bucket.stops_at = stop;
            bucket.acts = acts;
            float committed = save_again(store, 1, NULL) == 0 ? 1 : 0;
            committed = save_again(store, 2, NULL) == 0 ? 2 : committed;
            ended = bucket.answered < stop;
            bucket.stops_at = -1;
            checkpoint_store_free(store);
            cr_expect_eq(count_objects("/rank-00000"), ended ? 1 : count_objects("/rank-00000"), "nothing is left");
            float found = restored_again(directory, 2);
            cr_assert_geq(found, committed, "request %d: %g was committed, and %g is loaded", stop, (double)committed,
                          (double)found);
            for (int i = 1; i <= 2; i++) {
                SCOPED_FREE char *folder = memory_format("%s/%d", directory, i);
                test_directory_remove(folder);
            }
            cr_assert_lt(stop, 100);
        }
    scripted_server_stop(&server);
}

/* A lifecycle rule, or a person, has removed or shortened the tensors and left the manifest. */
Test(bucket, a_second_save_of_a_step_uploads_what_the_bucket_has_lost)
{
    const char *directory = test_directory();
    struct checkpoint_store *store;
    struct error error = ERROR_INIT;
    start_server();
    cr_assert_eq(open_chief(directory, 1, &store, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(store, 10, &error), 0, "%s", error.message);
    for (int i = 0; i < OBJECTS; i++)
        if (strstr(bucket.objects[i].key, "/rank-00000"))
            bucket.objects[i].key[0] = '\0';
    cr_assert_eq(test_save(store, 10, &error), 0, "%s", error.message);
    checkpoint_store_free(store);
    cr_expect_eq(restored(directory, 2), 10);
    scripted_server_stop(&server);
}

Test(bucket, a_server_that_ignores_conditions_is_refused)
{
    const char *directory = test_directory();
    struct checkpoint_store *store;
    struct error error = ERROR_INIT;
    start_server();
    bucket.is_unconditional = true;
    cr_assert_lt(open_chief(directory, 1, &store, &error), 0);
    cr_expect_eq(error.kind, ERROR_UNSUPPORTED, "%s", error.message);
    cr_expect(strstr(error.message, "conditional writes"), "%s", error.message);
    scripted_server_stop(&server);
}

/* Only the chief needs the best weights, which are as large as the model. */
Test(bucket, other_workers_copy_manifests_and_no_weights)
{
    const char *directory = test_directory();
    struct checkpoint_store *store;
    struct bucket *reader;
    struct error error = ERROR_INIT;
    start_server();
    cr_assert_eq(open_chief(directory, 1, &store, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(store, 10, &error), 0, "%s", error.message);
    SCOPED_FREE char *kept = memory_format("%s/1/best.safetensors", directory);
    cr_assert_eq(file_replace(kept, "best", 4, &error), 0);
    cr_assert_eq(checkpoint_store_publish(store, "best.safetensors", &error), 0, "%s", error.message);
    cr_assert_eq(count_objects("best.safetensors"), 1);
    SCOPED_FREE char *settings = memory_format(
        "{\"endpoint\":\"http://127.0.0.1:%d\",\"bucket\":\"runs\",\"prefix\":\"jobs/one\"}", server.port);
    SCOPED_FREE char *folder = memory_format("%s/worker", directory);
    SCOPED_FREE char *copied = memory_format("%s/best.safetensors", folder);
    SCOPED_FREE char *manifest = memory_format("%s/step-00000010.attempt-1.incarnation-1/manifest.json", folder);
    cr_assert_eq(file_make_directories(folder, &error), 0);
    cr_assert_eq(bucket_open(settings, folder, &reader, &error), 0, "%s", error.message);
    cr_assert_eq(bucket_refresh(reader, false, &error), 0, "%s", error.message);
    cr_expect_eq(access(manifest, F_OK), 0);
    cr_expect_lt(access(copied, F_OK), 0);
    cr_assert_eq(bucket_refresh(reader, true, &error), 0, "%s", error.message);
    cr_expect_eq(access(copied, F_OK), 0, "a chief needs them");
    bucket_free(reader);
    checkpoint_store_free(store);
    scripted_server_stop(&server);
}

static const char *hook_directory;
static struct checkpoint_store *hook_chief;

static void claim_by_the_second(void)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(open_chief(hook_directory, 2, &hook_chief, &error), 0, "%s", error.message);
}

/* The second chief claims the bucket after the first one has uploaded the bytes and before they have their name. */
Test(bucket, an_older_chief_replaces_no_best_weights)
{
    const char *directory = hook_directory = test_directory();
    struct checkpoint_store *first;
    struct error error = ERROR_INIT;
    start_server();
    cr_assert_eq(open_chief(directory, 1, &first, &error), 0, "%s", error.message);
    SCOPED_FREE char *kept = memory_format("%s/1/best.safetensors", directory);
    cr_assert_eq(file_replace(kept, "best", 4, &error), 0);
    bucket.hook = claim_by_the_second;
    cr_assert_lt(checkpoint_store_publish(first, "best.safetensors", &error), 0);
    cr_assert_eq(error.kind, ERROR_STALE, "%s", error.message);
    cr_assert_eq(count_objects("best.safetensors"), 0);
    checkpoint_store_free(first);
    checkpoint_store_free(hook_chief);
    scripted_server_stop(&server);
}

/* ---- shards of other ranks */

static struct checkpoint_store *shard_chief;
static struct part_writer *shard_writer;
static struct bucket *shard_bucket;

/* The chief and rank 1, each with a folder of its own. */
static void open_crew(const char *directory, int64_t incarnation)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *settings = memory_format(
        "{\"endpoint\":\"http://127.0.0.1:%d\",\"bucket\":\"runs\",\"prefix\":\"jobs/one\"}", server.port);
    SCOPED_FREE char *folder = memory_format("%s/rank-1", directory);
    cr_assert_eq(open_chief(directory, incarnation, &shard_chief, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_begin(shard_chief, false, &error), 0, "%s", error.message);
    cr_assert_eq(file_make_directories(folder, &error), 0);
    cr_assert_eq(bucket_open(settings, folder, &shard_bucket, &error), 0, "%s", error.message);
    bucket_set_job(shard_bucket, "job");
    shard_writer = part_writer_new(folder, shard_bucket);
}

static void close_crew(void)
{
    part_writer_free(shard_writer);
    bucket_free(shard_bucket);
    checkpoint_store_free(shard_chief);
}

/* All values are the step. */
static const struct safetensors_tensor *tensor_of(const char *name, int64_t step)
{
    static float values[2];
    static struct safetensors_tensor tensors[2];
    int index = strcmp(name, "part") == 0;
    values[index] = (float)step;
    tensors[index] = (struct safetensors_tensor){.name = name,
                                                 .dtype = SAFETENSORS_F32,
                                                 .shape = {1},
                                                 .rank = 1,
                                                 .data = &values[index],
                                                 .bytes = sizeof values[index]};
    return &tensors[index];
}

static struct checkpoint_part_key key_of(int64_t step, uint32_t counter)
{
    return (struct checkpoint_part_key){.attempt = 1, .incarnation = 1, .counter = counter, .step = step, .rank = 1};
}

static void begin_save_of(unsigned ranks, int64_t step, uint32_t counter)
{
    const struct checkpoint_part_key key = key_of(step, counter);
    const struct manifest manifest = {.step = step, .workers = 2, .logical_shards = 2};
    enum checkpoint_start start;
    struct error error = ERROR_INIT;
    cr_assert_eq(
        checkpoint_save_with_parts(shard_chief, &manifest, tensor_of("weight", step), 1, &key, ranks, &start, &error),
        0, "%s", error.message);
    cr_assert_eq(start, CHECKPOINT_STARTED);
    checkpoint_fence(shard_chief);
}

static void begin_save(int64_t step, uint32_t counter)
{
    begin_save_of(2, step, counter);
}

static int write_part(int64_t step, uint32_t counter, struct error *error)
{
    const struct checkpoint_part_key key = key_of(step, counter);
    return part_writer_save(shard_writer, &key, tensor_of("part", step), 1, error) < 0
               ? -1
               : part_writer_wait(shard_writer, error);
}

static void save_together(int64_t step, uint32_t counter)
{
    struct error error = ERROR_INIT;
    begin_save(step, counter);
    cr_assert_eq(write_part(step, counter, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_wait(shard_chief, &error), 0, "%s", error.message);
}

static void expect_part(const struct checkpoint_image *image)
{
    const struct safetensors_tensor *part = checkpoint_image_find(image, "part");
    cr_assert(part && *(const float *)part->data == (float)image->manifest.step);
}

/* The step of the newest checkpoint that a chief on a new node loads, whose part is checked; -1: none. */
static int64_t restored_with_part(const char *directory, int64_t incarnation)
{
    struct checkpoint_store *store;
    struct checkpoint_image image;
    int64_t step = -1;
    cr_assert_eq(open_chief(directory, incarnation, &store, NULL), 0);
    if (checkpoint_restore(store, NULL, NULL, &image, NULL) == 0) {
        step = image.manifest.step;
        expect_part(&image);
        checkpoint_image_release(&image);
    }
    checkpoint_store_free(store);
    return step;
}

Test(bucket, a_checkpoint_is_committed_when_the_shard_of_each_rank_is_there)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    start_server();
    open_crew(directory, 1);
    begin_save(10, 7);
    usleep(400000);
    cr_expect_eq(count_objects("/manifest.json"), 0, "rank 1 has not written");
    cr_assert_eq(write_part(10, 7, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_wait(shard_chief, &error), 0, "%s", error.message);
    cr_expect_eq(count_objects("/manifest.json"), 1);
    cr_expect_eq(count_objects(".1.1.7.10.safetensors"), 1);
    save_together(20, 7);
    save_together(30, 8);
    cr_expect_eq(count_objects("/shards/"), 2, "keep: 2");
    SCOPED_FREE char *left = memory_format("%s/rank-1/.part-1.1.8-step-00000030-rank-00001", directory);
    cr_expect_lt(access(left, F_OK), 0, "what is uploaded takes no room");
    cr_expect_eq(restored_with_part(directory, 2), 30);
    close_crew();
    scripted_server_stop(&server);
}

Test(bucket, a_rank_that_cannot_write_its_shard_says_so)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    start_server();
    open_crew(directory, 1);
    SCOPED_FREE char *folder = memory_format("%s/rank-1", directory);
    cr_assert_eq(file_remove_directory(folder, &error), 0);
    cr_assert_eq(file_write(folder, "", 0, &error), 0);
    begin_save(10, 1);
    cr_assert_lt(write_part(10, 1, NULL), 0);
    cr_assert_lt(checkpoint_wait(shard_chief, &error), 0);
    cr_expect(strstr(error.message, "rank 1: save this rank's part of step 10"), "%s", error.message);
    cr_expect_eq(count_objects("/manifest.json"), 0);
    close_crew();
    scripted_server_stop(&server);
}

/* A rank of an older generation writes late, when the step is committed; and one writes for a save that is still to come. */
Test(bucket, late_shards_change_nothing_and_are_removed)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    start_server();
    open_crew(directory, 1);
    save_together(10, 7);
    const struct checkpoint_part_key late = key_of(10, 6);
    cr_assert_eq(part_writer_save(shard_writer, &late, tensor_of("part", 99), 1, &error), 0, "%s", error.message);
    cr_assert_eq(part_writer_wait(shard_writer, &error), 0, "%s", error.message);
    cr_expect_eq(count_objects("/shards/"), 2);
    cr_assert_eq(write_part(30, 7, &error), 0, "%s", error.message);
    save_together(20, 7);
    cr_expect_eq(count_objects(".1.1.6.10.safetensors"), 0, "no checkpoint has it");
    cr_expect_eq(count_objects(".30.safetensors"), 1, "it may be committed yet");
    begin_save(30, 7);
    cr_assert_eq(checkpoint_wait(shard_chief, &error), 0, "%s", error.message);
    cr_expect_eq(restored_with_part(directory, 2), 30);
    close_crew();
    scripted_server_stop(&server);
}

/* Rank 2 never writes. A retry of the last save finds the shard of rank 1, which is not written again. */
Test(bucket, saves_that_fail_leave_the_shards_of_the_last_only)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    start_server();
    open_crew(directory, 1);
    for (int64_t step = 10; step <= 50; step += 10) {
        begin_save_of(3, step, 7);
        cr_assert_eq(write_part(step, 7, &error), 0, "%s", error.message);
        checkpoint_give_up_parts(shard_chief);
        cr_assert_lt(checkpoint_wait(shard_chief, NULL), 0);
        cr_expect_eq(count_objects("/shards/"), 1, "step %lld", (long long)step);
    }
    begin_save(50, 7);
    cr_assert_eq(checkpoint_wait(shard_chief, &error), 0, "%s", error.message);
    begin_save_of(3, 60, 7);
    checkpoint_give_up_parts(shard_chief);
    cr_assert_lt(checkpoint_wait(shard_chief, NULL), 0);
    cr_expect_eq(restored_with_part(directory, 2), 50, "its shards stay, although a save of them had failed");
    close_crew();
    scripted_server_stop(&server);
}

Test(bucket, a_checkpoint_without_its_shard_is_passed_over)
{
    const char *directory = test_directory();
    start_server();
    open_crew(directory, 1);
    save_together(10, 1);
    save_together(20, 1);
    for (int i = 0; i < OBJECTS; i++)
        if (strstr(bucket.objects[i].key, ".20.safetensors"))
            bucket.objects[i].key[0] = '\0';
    cr_expect_eq(restored_with_part(directory, 2), 10);
    close_crew();
    scripted_server_stop(&server);
}

Test(bucket, the_names_of_shards_are_strict)
{
    char name[BUCKET_SHARD_NAME_MAX];
    struct bucket *opened;
    uint32_t owner;
    struct checkpoint_part_key key = {.attempt = 1, .incarnation = 5, .counter = 7, .step = 30, .rank = 3}, parsed;
    cr_assert_eq(bucket_open("{\"endpoint\":\"http://x\",\"bucket\":\"runs\"}", "/tmp", &opened, NULL), 0);
    bucket_set_job(opened, "job");
    cr_assert_eq(bucket_shard_name(opened, &key, name, NULL), 0);
    cr_assert(bucket_shard_name_parse(name, &parsed, &owner), "%s", name);
    cr_assert(parsed.rank == 3 && parsed.incarnation == 5 && parsed.counter == 7 && parsed.step == 30);
    cr_assert_eq(owner, bucket_owner(opened));
    bucket_set_job(opened, "another");
    cr_assert_neq(owner, bucket_owner(opened), "two jobs in one directory have no name in common");
    static const char *const others[] = {
        "shard-3.00000000.1.5.7.30.safetensors", "shard-00003.00000000.1.5.7.-3.safetensors",
        "shard-00003.00000000.1.5.7.30.safetensors.failed", "rank-00003.safetensors", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_not(bucket_shard_name_parse(others[i], &parsed, &owner), "%s", others[i]);
    key = (struct checkpoint_part_key){UINT32_MAX, UINT32_MAX, UINT32_MAX, INT64_MAX, 99999};
    cr_assert_lt(bucket_shard_name(opened, &key, name, NULL), 0);
    bucket_free(opened);
}

Test(bucket, settings_that_are_wrong_are_named)
{
    struct bucket *opened;
    struct error error = ERROR_INIT;
    cr_assert_lt(bucket_open("{\"endpoint\":\"ftp://x\",\"bucket\":\"runs\"}", "/tmp", &opened, &error), 0);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert(strstr(error.message, "COXSWAIN_CHECKPOINT_S3"), "%s", error.message);
    cr_assert_lt(bucket_open("[", "/tmp", &opened, &error), 0);
}
