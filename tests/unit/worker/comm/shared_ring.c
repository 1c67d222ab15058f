/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_ring.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/worker/comm/killed_maker.h"

#define NONCE 42
#define CAPACITY ((size_t)512 << 10)
#define MORE_THAN_FITS ((size_t)1 << 20)

static struct shared_ring *near_end, *far_end;
static unsigned char bytes[MORE_THAN_FITS];

static void open_ring(void)
{
    char path[SHARED_FILE_PATH_MAX];
    struct error error = ERROR_INIT;
    cr_assert_eq(shared_ring_create(NONCE, CAPACITY, path, &near_end, &error), 0, "%s", error.message);
    cr_assert_eq(shared_ring_open(path, NONCE, CAPACITY, &far_end, &error), 0, "%s", error.message);
    shared_ring_withdraw(near_end, path);
}

static void close_ring(void)
{
    shared_ring_free(near_end);
    shared_ring_free(far_end);
}

TestSuite(shared_ring, .init = open_ring, .fini = close_ring);

static size_t fill(void)
{
    bool bell;
    return shared_ring_write(near_end, bytes, sizeof bytes, &bell);
}

Test(shared_ring, a_full_ring_takes_no_more)
{
    bool bell;
    size_t taken = fill();
    cr_assert_gt(taken, 0);
    cr_assert_lt(taken, sizeof bytes);
    cr_assert_eq(shared_ring_write(near_end, bytes, 1, &bell), 0);
}

/* While bytes wait for room, nothing is read from a peer whose next frame is not wanted yet. It must be woken when there is room. */
Test(shared_ring, a_writer_that_waits_for_room_is_woken)
{
    bool bell;
    fill();
    cr_assert(shared_ring_may_sleep(near_end, false, true));
    cr_assert_gt(shared_ring_read(far_end, bytes, 100, &bell), 0);
    cr_assert(bell);
}

Test(shared_ring, a_reader_that_waits_for_bytes_is_woken_once)
{
    bool bell;
    cr_assert(shared_ring_may_sleep(far_end, true, false));
    shared_ring_write(near_end, bytes, 10, &bell);
    cr_assert(bell);
    shared_ring_write(near_end, bytes, 10, &bell);
    cr_assert_not(bell);
}

Test(shared_ring, nobody_sleeps_when_there_is_something_to_do)
{
    bool bell;
    shared_ring_write(near_end, bytes, 10, &bell);
    cr_assert_not(shared_ring_may_sleep(far_end, true, false));
    cr_assert_not(shared_ring_may_sleep(near_end, false, true));
    cr_assert(shared_ring_may_sleep(far_end, false, false));
    shared_ring_write(near_end, bytes, 10, &bell);
    cr_assert_not(bell, "nobody waits for these bytes");
}

Test(shared_ring, both_ends_agree_on_its_capacity)
{
    char path[SHARED_FILE_PATH_MAX];
    struct error error = ERROR_INIT;
    struct shared_ring *ring, *other;
    cr_assert_eq(shared_ring_create(NONCE + 3, CAPACITY, path, &ring, &error), 0, "%s", error.message);
    cr_expect_eq(shared_ring_open(path, NONCE + 3, CAPACITY / 2, &other, &error), -1);
    cr_expect_eq(error.kind, ERROR_UNSUPPORTED, "%s", error.message);
    shared_ring_withdraw(ring, path);
    shared_ring_free(ring);
}

/* ---- where there is little memory, and what is left of the dead */

/* Tries to make a ring in a process whose /dev/shm holds only half of one. Returns 0 if that is refused, 1 if the ring is made and can be
 * filled without harm, 2 if the test is not possible. */
static int try_in_a_small_room(void)
{
    char path[SHARED_FILE_PATH_MAX];
    struct error error = ERROR_INIT;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=512k") < 0)
        return 2;
    if (shared_ring_create(NONCE + 1, CAPACITY, path, &near_end, &error) < 0)
        return error.kind == ERROR_UNSUPPORTED ? 0 : 3;
    fill();
    return 1;
}

Test(shared_ring, where_there_is_no_room_for_it_there_is_none)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(try_in_a_small_room());
    cr_assert(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        cr_skip_test("nothing can be mounted here");
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x: a later write ends the process", status);
}

static bool publish_one(char path[SHARED_FILE_PATH_MAX])
{
    struct shared_ring *ring;
    return shared_ring_create(NONCE + 2, CAPACITY, path, &ring, NULL) == 0;
}

Test(shared_ring, what_a_killed_process_leaves_is_swept_away)
{
    killed_maker_expect_swept(publish_one, shared_file_sweep);
}
