/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that become shorter while they are read. Without the mend these tests die of SIGBUS, but for those that cut within
 * a page.
 */
#include "common/data/mapped_file.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/forking.h"
#include "worker/data/dataset.h"
#include "worker/data/storage_map.h"

#define CONTEXT 64
#define EXAMPLES 4096

static const struct example_format windows = {.input_type = ELEMENT_INT32,
                                              .input_elements = CONTEXT,
                                              .target_type = ELEMENT_INT32,
                                              .target_elements = CONTEXT,
                                              .classes = 256};
static char path[] = "/tmp/coxswain-mapped-XXXXXX";

static void write_text(void)
{
    int descriptor = mkstemp(path);
    FILE *file = fdopen(descriptor, "wb");
    for (int i = 0; i < EXAMPLES * CONTEXT + 1; i++)
        fputc('a' + i % 26, file);
    cr_assert_eq(fclose(file), 0);
}

static struct dataset *open_text(void)
{
    struct data_spec spec = {.format = DATA_FORMAT_BYTES,
                             .train = {.text = path, .first = FIELD_UNSET, .last = FIELD_UNSET},
                             .validation = {.first = FIELD_UNSET, .last = FIELD_UNSET}};
    struct error error = ERROR_INIT;
    struct storage_map *storage;
    struct dataset *dataset = NULL;
    cr_assert_eq(storage_map_parse(NULL, &storage, NULL), 0);
    cr_assert_eq(dataset_open(&spec, storage, SPLIT_TRAIN, &windows, &dataset, &error), 0, "%s", error.message);
    storage_map_free(storage);
    return dataset;
}

static int read_windows(const struct dataset *dataset, int64_t first, struct error *error)
{
    static int32_t tokens[4 * CONTEXT], targets[4 * CONTEXT];
    const int64_t indices[] = {first, 0, first + 1, 1};
    return dataset_read(dataset, indices, 4, tokens, targets, error);
}

static void expect_refused(const struct dataset *dataset, int64_t first)
{
    struct error error = ERROR_INIT;
    cr_expect_eq(read_windows(dataset, first, &error), -1);
    cr_expect(error.kind == ERROR_NOT_FOUND && strstr(error.message, path) && strstr(error.message, "no longer has"),
              "%s", error.message);
}

Test(mapped_file, a_file_that_shrinks_is_an_error)
{
    write_text();
    struct dataset *dataset = open_text();
    cr_assert_eq(read_windows(dataset, EXAMPLES - 2, NULL), 0);
    cr_assert_eq(truncate(path, EXAMPLES * CONTEXT / 2), 0);
    expect_refused(dataset, EXAMPLES - 2);
    expect_refused(dataset, EXAMPLES / 2 + 100);
    cr_assert_eq(truncate(path, 0), 0);
    expect_refused(dataset, 0);
    dataset_free(dataset);
    unlink(path);
}

/* The missing bytes of the last page read as zeros, without a signal. */
Test(mapped_file, one_byte_less_is_an_error)
{
    write_text();
    struct dataset *dataset = open_text();
    cr_assert_eq(truncate(path, EXAMPLES * CONTEXT), 0);
    expect_refused(dataset, 0);
    dataset_free(dataset);
    unlink(path);
}

Test(mapped_file, a_file_that_grows_or_is_replaced_is_read_on)
{
    write_text();
    char other[sizeof path + 4];
    struct dataset *dataset = open_text();
    struct error error = ERROR_INIT;
    cr_assert_eq(truncate(path, EXAMPLES * CONTEXT * 2), 0);
    cr_expect_eq(read_windows(dataset, EXAMPLES - 2, &error), 0, "%s", error.message);
    snprintf(other, sizeof other, "%s.new", path);
    FILE *file = fopen(other, "wb");
    fclose(file);
    cr_assert_eq(rename(other, path), 0);
    cr_expect_eq(read_windows(dataset, EXAMPLES - 2, &error), 0, "%s", error.message);
    unlink(path);
    cr_expect_eq(read_windows(dataset, EXAMPLES - 2, &error), 0, "%s", error.message);
    dataset_free(dataset);
}

/* Opened again, it is what it is. */
Test(mapped_file, a_place_is_used_again)
{
    write_text();
    for (int i = 0; i < 3; i++) {
        struct dataset *dataset = open_text();
        cr_expect_eq(read_windows(dataset, 0, NULL), 0);
        cr_assert_eq(truncate(path, (EXAMPLES - 1000 * (i + 1)) * CONTEXT), 0);
        expect_refused(dataset, 0);
        dataset_free(dataset);
    }
    unlink(path);
}

/* In a process of its own, since it dies. */
Test(mapped_file, other_mappings_still_end_the_process)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    write_text();
    struct dataset *dataset = open_text();
    pid_t child = fork();
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr); /* a sanitizer would tell of it there */
        FILE *file = tmpfile();
        (void)!ftruncate(fileno(file), 1 << 16);
        volatile char *bytes = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, fileno(file), 0);
        (void)!ftruncate(fileno(file), 0);
        _exit(bytes[1 << 15]);
    }
    int status = 0;
    waitpid(child, &status, 0);
    cr_expect(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    dataset_free(dataset);
    unlink(path);
}
