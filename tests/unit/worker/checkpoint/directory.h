/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the checkpoint tests: a directory for each test, and a state of two tensors in which every value is the step.
 */
#ifndef COXSWAIN_TESTS_CHECKPOINT_DIRECTORY_H
#define COXSWAIN_TESTS_CHECKPOINT_DIRECTORY_H

#include "worker/checkpoint/checkpoint.h"

#define TEST_PATH_MAX 256
#define TEST_ELEMENTS 3000 /* several pages, so that there are blocks to lose */

/* A fresh directory, removed with all below it at the process's end. */
const char *test_directory(void);
void test_directory_remove(const char *path);

/* Saves a state with `step` as every value, waits, and returns the save's result. */
int test_save(struct checkpoint_store *store, int64_t step, struct error *error);

/* Opens a store for `incarnation` of job "job". */
struct checkpoint_store *test_open(const char *directory, int64_t incarnation);

/* The step of the newest whole checkpoint that a new chief would load, having checked every value; -1: none. */
int64_t test_restored_step(const char *directory);

/* Path of the one file of tensors of a checkpoint. */
void test_shard_path(const char *directory, int64_t step, int64_t incarnation, char path[TEST_PATH_MAX]);

#endif
