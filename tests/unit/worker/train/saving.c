/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/saving.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "worker/checkpoint/file.h"
#include "worker/checkpoint/part.h"
#include "worker/strategy/strategy_table.h"

static unsigned two_writers(const struct strategy *strategy)
{
    (void)strategy;
    return 2;
}

static const struct strategy_operations shared_operations = {.writers = two_writers}, plain_operations = {0};

static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static int (*plain_fsync)(int descriptor);

static int fsync_with_the_disk(int descriptor)
{
    pthread_mutex_lock(&disk);
    pthread_mutex_unlock(&disk);
    return plain_fsync(descriptor);
}

Test(saving, a_rank_agrees_to_a_save_once_its_last_part_is_written, .timeout = 60)
{
    char directory[] = "/tmp/coxswain-saving-XXXXXX";
    cr_assert(mkdtemp(directory));
    static const float values[] = {1, 2, 3};
    const struct safetensors_tensor tensor = {
        .name = "a", .dtype = SAFETENSORS_F32, .shape = {3}, .rank = 1, .data = values, .bytes = sizeof values};
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    struct strategy strategy = {.operations = &shared_operations, .world = {.rank = 1, .size = 2}};
    const struct trainer trainer = {
        .crew = {.size = 2, .rank = 1}, .strategy = &strategy, .parts = part_writer_new(directory)};
    cr_expect_eq(saving_votes(&trainer), STRATEGY_VOTE_CHECKPOINT);
    plain_fsync = file_calls.fsync;
    file_calls.fsync = fsync_with_the_disk;
    pthread_mutex_lock(&disk);
    cr_assert_eq(part_writer_save(trainer.parts, &key, &tensor, 1, NULL), 0);
    cr_expect_eq(saving_votes(&trainer), 0);
    pthread_mutex_unlock(&disk);
    cr_assert_eq(part_writer_wait(trainer.parts, NULL), 0);
    cr_expect_eq(saving_votes(&trainer), STRATEGY_VOTE_CHECKPOINT);
    file_calls.fsync = plain_fsync;
    part_writer_free(trainer.parts);
    file_remove_directory(directory, NULL);
}

Test(saving, where_the_chief_writes_alone_nobody_is_asked)
{
    struct strategy strategy = {.operations = &plain_operations, .world = {.rank = 1, .size = 2}};
    const struct trainer trainer = {.crew = {.size = 2, .rank = 1}, .strategy = &strategy};
    cr_expect_eq(saving_votes(&trainer), 0);
}
