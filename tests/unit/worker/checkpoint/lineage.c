/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/lineage.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"

Test(lineage, names_are_taken_exactly)
{
    struct checkpoint_name name;
    cr_assert_eq(checkpoint_name_parse("step-00000120.attempt-1.incarnation-4", &name), 0);
    cr_assert_eq(name.step, 120);
    cr_assert_eq(name.incarnation, 4);
    cr_assert_eq(checkpoint_name_parse("step-120.attempt-1.incarnation-4", &name), -1);
    cr_assert_eq(checkpoint_name_parse("step-00000120.attempt-1.incarnation-4.old", &name), -1);
    cr_assert_eq(checkpoint_name_parse(".saving-step-00000120.attempt-1.incarnation-4", &name), -1);
}

Test(lineage, a_path_to_a_checkpoint_may_end_in_slashes)
{
    struct checkpoint_name name = {.step = 0};
    cr_expect(checkpoint_image_is_at("runs/digits/step-00000120.attempt-1.incarnation-4", &name) && name.step == 120);
    cr_expect(checkpoint_image_is_at("step-00000130.attempt-1.incarnation-4//", &name) && name.step == 130);
    cr_expect_not(checkpoint_image_is_at("step-00000120.attempt-1.incarnation-4/rank-0", &name));
    cr_expect_not(checkpoint_image_is_at("runs/digits/", &name));
    cr_expect_not(checkpoint_image_is_at("/", &name));
}

/* A chief of `incarnation` restores (or adopts) and saves the steps given, up to a -1. */
static void run_chief(const char *directory, int64_t incarnation, bool adopts, const int64_t *steps)
{
    struct checkpoint_store *store = test_open(directory, incarnation);
    struct checkpoint_image image;
    struct error error = ERROR_INIT;
    if (!adopts && checkpoint_restore(store, NULL, NULL, &image, NULL) == 0)
        checkpoint_image_release(&image);
    cr_assert_eq(checkpoint_store_begin(store, adopts, &error), 0, "%s", error.message);
    for (; *steps >= 0; steps++)
        cr_assert_eq(test_save(store, *steps, &error), 0, "%s", error.message);
    checkpoint_store_free(store);
}

Test(lineage, a_successor_goes_on_from_the_newest)
{
    const char *directory = test_directory();
    run_chief(directory, 1, false, (int64_t[]){10, 20, -1});
    cr_assert_eq(test_restored_step(directory), 20);
    run_chief(directory, 2, false, (int64_t[]){30, -1});
    cr_assert_eq(test_restored_step(directory), 30);
}

Test(lineage, what_a_superseded_chief_commits_is_never_loaded)
{
    const char *directory = test_directory();
    run_chief(directory, 1, false, (int64_t[]){10, -1});
    struct checkpoint_store *old = test_open(directory, 2);
    struct error error = ERROR_INIT;
    struct checkpoint_image image;
    cr_assert_eq(checkpoint_restore(old, NULL, NULL, &image, NULL), 0);
    checkpoint_image_release(&image);
    cr_assert_eq(checkpoint_store_begin(old, false, &error), 0);
    /* While the chief of incarnation 2 is cut off, one of incarnation 3 takes over and saves step 12. */
    run_chief(directory, 3, false, (int64_t[]){12, -1});
    cr_assert_eq(test_save(old, 99, &error), -1);
    cr_assert_eq(error.kind, ERROR_STALE, "%s", error.message);
    checkpoint_store_free(old);
    cr_assert_eq(test_restored_step(directory), 12);
}

Test(lineage, a_late_commit_beyond_the_successors_base_is_no_candidate)
{
    const char *directory = test_directory();
    char late[TEST_PATH_MAX];
    run_chief(directory, 1, false, (int64_t[]){10, 20, -1});
    run_chief(directory, 2, false, (int64_t[]){-1}); /* starts from 20 */
    snprintf(late, sizeof late, "%s/step-00000030.attempt-1.incarnation-1", directory);
    cr_assert_eq(mkdir(late, 0755), 0);
    struct lineage lineage;
    cr_assert_eq(lineage_read(directory, &lineage, NULL), 0);
    cr_assert_eq(lineage.candidate_count, 2);
    cr_assert_eq(lineage.candidates[0].step, 20);
    cr_assert_eq(lineage.candidates[1].step, 10);
    lineage_release(&lineage);
}

Test(lineage, a_lower_incarnation_of_the_same_job_is_refused)
{
    const char *directory = test_directory();
    run_chief(directory, 5, false, (int64_t[]){10, -1});
    struct error error = ERROR_INIT;
    struct incarnation_record claim;
    cr_assert_eq(lineage_claim(directory, "job", 1, 4, &claim, &error), -1);
    cr_assert_eq(error.kind, ERROR_STALE, "%s", error.message);
    cr_assert_eq(lineage_claim(directory, "job", 1, 5, &claim, &error), -1);
    cr_assert_eq(error.kind, ERROR_STALE, "%s", error.message);
    cr_assert_eq(lineage_claim(directory, "job", 1, 6, &claim, &error), 0, "%s", error.message);
}

/* The replacement of a chief starts while its predecessor still saves and retires: from the claim on, that must not move a
 * thing. It used to be told that every checkpoint was damaged, and started anew. */
Test(lineage, from_the_claim_on_the_predecessor_changes_nothing)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    struct checkpoint_store *old = test_open(directory, 1);
    cr_assert_eq(checkpoint_store_begin(old, false, &error), 0);
    for (int64_t step = 1; step <= 5; step++)
        cr_assert_eq(test_save(old, step, &error), 0, "%s", error.message);
    struct checkpoint_store *new = test_open(directory, 2);
    cr_assert_eq(test_save(old, 6, &error), -1);
    cr_assert_eq(error.kind, ERROR_STALE, "%s", error.message);
    struct checkpoint_image image;
    cr_assert_eq(checkpoint_restore(new, NULL, NULL, &image, &error), 0, "%s", error.message);
    cr_assert_eq(image.manifest.step, 5);
    checkpoint_image_release(&image);
    checkpoint_store_free(old);
    checkpoint_store_free(new);
}

/* Damages the newest checkpoint, and retires the next one while that is being told. */
static void retire_next(void *context, const char *name, const char *reason)
{
    (void)name, (void)reason;
    char path[TEST_PATH_MAX];
    snprintf(path, sizeof path, "%s/step-00000020.attempt-1.incarnation-1", (const char *)context);
    test_directory_remove(path);
}

Test(lineage, a_checkpoint_that_goes_meanwhile_is_no_damage)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX];
    run_chief(directory, 1, false, (int64_t[]){10, 20, 30, -1});
    test_shard_path(directory, 30, 1, path);
    cr_assert_eq(truncate(path, 100), 0);
    struct checkpoint_store *store = test_open(directory, 2);
    struct checkpoint_image image;
    struct error error = ERROR_INIT;
    cr_assert_eq(checkpoint_restore(store, retire_next, (void *)directory, &image, &error), 0, "%s", error.message);
    cr_assert_eq(image.manifest.step, 10);
    checkpoint_image_release(&image);
    checkpoint_store_free(store);
}

Test(lineage, a_damaged_record_hides_nothing)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX];
    run_chief(directory, 1, false, (int64_t[]){10, 20, -1});
    snprintf(path, sizeof path, "%s/incarnation-1.json", directory);
    SCOPED_BUFFER text = BUFFER_INIT(INCARNATION_RECORD_BYTES_MAX);
    cr_assert_eq(buffer_read_file(&text, path, NULL), 0);
    for (size_t bit = 0; bit < 8 * text.length; bit += 5) {
        text.data[bit / 8] ^= (char)(1 << bit % 8);
        FILE *file = fopen(path, "wb");
        fwrite(text.data, 1, text.length, file);
        fclose(file);
        struct lineage lineage;
        cr_assert_eq(lineage_read(directory, &lineage, NULL), 0);
        cr_assert_eq(lineage.records[0].state, INCARNATION_DAMAGED, "bit %zu", bit);
        cr_assert_eq(lineage.candidate_count, 2, "bit %zu", bit);
        cr_assert_eq(lineage.candidates[0].step, 20);
        lineage_release(&lineage);
        text.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(test_restored_step(directory), 20, "without any record");
}

Test(lineage, a_claim_alone_changes_no_line)
{
    const char *directory = test_directory();
    run_chief(directory, 1, false, (int64_t[]){10, 20, -1});
    checkpoint_store_free(test_open(directory, 2)); /* dies before it decides */
    cr_assert_eq(test_restored_step(directory), 20);
}

Test(lineage, another_job_in_the_same_directory_is_named)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    struct incarnation_record claim;
    struct checkpoint_store *store = test_open(directory, 1);
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    cr_assert_eq(lineage_claim(directory, "other", 1, 1, &claim, NULL), 0);
    cr_assert_eq(test_save(store, 10, &error), -1);
    cr_assert_eq(error.kind, ERROR_CONFLICT, "%s", error.message);
    cr_assert_not_null(strstr(error.message, "checkpoint.path"), "%s", error.message);
    checkpoint_store_free(store);
}

/* In a directory that holds another job's higher numbers both chiefs of a job choose the same one: the newer must not lose. */
Test(lineage, the_newer_of_two_chiefs_wins_in_a_reused_directory)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    struct incarnation_record first, second;
    cr_assert_eq(lineage_claim(directory, "other", 1, 7, &first, NULL), 0);
    cr_assert_eq(lineage_claim(directory, "job", 1, 1, &first, NULL), 0);
    cr_assert_eq(first.incarnation, 8);
    cr_assert_eq(lineage_claim(directory, "job", 1, 2, &second, &error), 0, "%s", error.message);
    cr_assert_eq(second.incarnation, 9);
    cr_assert_eq(lineage_check_current(directory, &first, &error), -1);
    cr_assert_eq(error.kind, ERROR_STALE);
}

/* Format 1 called the incarnation epoch. A job that began anew beside such checkpoints would lose them without a word. */
Test(lineage, checkpoints_of_format_1_are_refused_by_name)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    struct lineage lineage;
    struct incarnation_record claim;
    SCOPED_FREE char *former = file_path_join(directory, "step-00000010.attempt-1.epoch-1");
    cr_assert_eq(mkdir(former, 0755), 0);
    cr_assert_eq(lineage_claim(directory, "job", 1, 2, &claim, &error), -1);
    cr_expect_eq(error.kind, ERROR_UNSUPPORTED);
    cr_expect_not_null(strstr(error.message, former), "%s", error.message);
    cr_assert_eq(lineage_read(directory, &lineage, &error), -1);
    cr_expect_eq(error.kind, ERROR_UNSUPPORTED);
    cr_expect_not(checkpoint_name_is_former("step-00000010.attempt-1.epoch-1.old"));
    cr_expect_not(checkpoint_name_is_former(".bad-step-00000010.attempt-1.epoch-1"));
}

Test(lineage, drafts_of_the_dead_are_swept)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX];
    snprintf(path, sizeof path, "%s/incarnation-1.json.draft-0123456789abcdef", directory);
    fclose(fopen(path, "w"));
    run_chief(directory, 1, false, (int64_t[]){10, -1});
    cr_assert_eq(access(path, F_OK), -1);
}

Test(lineage, strays_and_old_records_go)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX];
    run_chief(directory, 1, false, (int64_t[]){10, 20, -1});
    snprintf(path, sizeof path, "%s/step-00000015.attempt-1.incarnation-0", directory); /* of nobody's line */
    cr_assert_eq(mkdir(path, 0755), 0);
    run_chief(directory, 2, false, (int64_t[]){30, 40, 50, 60, -1});
    cr_assert_eq(access(path, F_OK), -1, "a stray stays for ever");
    snprintf(path, sizeof path, "%s/incarnation-1.json", directory);
    cr_assert_eq(access(path, F_OK), -1, "a record that nobody needs stays for ever");
    cr_assert_eq(test_restored_step(directory), 60);
}

Test(lineage, another_job_goes_on_with_higher_numbers)
{
    const char *directory = test_directory();
    run_chief(directory, 5, false, (int64_t[]){10, -1});
    struct checkpoint_options options = {.directory = directory, .job_uid = "other", .incarnation = 1, .keep = 3};
    struct error error = ERROR_INIT;
    struct checkpoint_image image;
    for (int64_t incarnation = 1; incarnation <= 2; incarnation++) {
        struct checkpoint_store *store;
        options.incarnation = incarnation;
        cr_assert_eq(checkpoint_store_open(&options, &store, &error), 0);
        cr_assert_eq(checkpoint_restore(store, NULL, NULL, &image, &error), 0, "%s", error.message);
        cr_assert_eq(image.manifest.step, incarnation == 1 ? 10 : 11);
        checkpoint_image_release(&image);
        cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
        cr_assert_eq(test_save(store, 10 + incarnation, &error), 0, "%s", error.message);
        checkpoint_store_free(store);
    }
}

Test(lineage, a_chief_that_adopted_a_peers_state_keeps_the_chain)
{
    const char *directory = test_directory();
    run_chief(directory, 1, false, (int64_t[]){10, -1});
    run_chief(directory, 2, true, (int64_t[]){-1}); /* adopts a newer state from a peer and dies before saving */
    cr_assert_eq(test_restored_step(directory), 10);
}

/* Peers that go on with larger batches count fewer steps. */
Test(lineage, what_a_chief_started_from_stays_in_its_line_though_it_saved_lower_steps)
{
    const char *directory = test_directory();
    struct lineage lineage;
    run_chief(directory, 1, false, (int64_t[]){10, 24, -1});
    run_chief(directory, 2, false, (int64_t[]){12, -1});
    run_chief(directory, 3, false, (int64_t[]){14, -1});
    cr_assert_eq(lineage_read(directory, &lineage, NULL), 0);
    cr_assert_eq(lineage.candidate_count, 3);
    cr_expect_eq(lineage.candidates[0].step, 14);
    cr_expect_eq(lineage.candidates[1].step, 12);
    cr_expect_eq(lineage.candidates[2].step, 24);
    lineage_release(&lineage);
}

Test(lineage, runs_by_hand_follow_each_other)
{
    const char *directory = test_directory();
    const struct checkpoint_options options = {.directory = directory, .job_uid = "", .keep = 2};
    struct error error = ERROR_INIT;
    for (int64_t step = 1; step <= 3; step++) {
        struct checkpoint_store *store;
        struct checkpoint_image image;
        cr_assert_eq(checkpoint_store_open(&options, &store, &error), 0);
        int found = checkpoint_restore(store, NULL, NULL, &image, NULL);
        cr_assert_eq(found, step == 1 ? -1 : 0);
        if (found == 0) {
            cr_assert_eq(image.manifest.step, step - 1);
            checkpoint_image_release(&image);
        }
        cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
        cr_assert_eq(test_save(store, step, &error), 0, "%s", error.message);
        checkpoint_store_free(store);
    }
}
