/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/heap_trim.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"

#define PIECES 200000
#define PIECE_BYTES 200
#define KEPT_EACH 500

static size_t resident_bytes(void)
{
    size_t total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%zu %zu", &total, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

Test(heap_trim, holes_of_a_burst_go_back_to_the_system, .timeout = 60)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    cr_skip_test("a sanitizer has a heap of its own");
#endif
    static void *pieces[PIECES];
    struct event_loop *loop;
    struct error error = ERROR_INIT;
    cr_assert_eq(event_loop_new(&loop, &error), 0, "%s", error.message);
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = memset(memory_allocate(1, PIECE_BYTES), 1, PIECE_BYTES);
    for (size_t i = 0; i < PIECES; i++)
        if (i % KEPT_EACH != 0)
            free(pieces[i]);
    size_t before = resident_bytes();
    struct heap_trim *trim = heap_trim_start(loop, 1);
    for (int turn = 0; turn < 10; turn++)
        cr_assert_eq(event_loop_turn(loop, 10, &error), 0);
    size_t after = resident_bytes();
    cr_expect_lt(after, before - (size_t)PIECES * PIECE_BYTES / 2, "%zu bytes, %zu before", after, before);
    heap_trim_end(trim);
    event_loop_free(loop);
    for (size_t i = 0; i < PIECES; i += KEPT_EACH)
        free(pieces[i]);
}
