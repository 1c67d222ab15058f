/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_ring.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define NONCE 42
#define MORE_THAN_FITS ((size_t)1 << 20)

static struct shared_ring *near_end, *far_end;
static unsigned char bytes[MORE_THAN_FITS];

static void open_ring(void)
{
    char path[128];
    struct error error = ERROR_INIT;
    cr_assert_eq(shared_ring_create(NONCE, path, sizeof path, &near_end, &error), 0, "%s", error.message);
    cr_assert_eq(shared_ring_open(path, NONCE, &far_end, &error), 0, "%s", error.message);
    shared_ring_unlink(path);
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

/* A peer whose next frame is not wanted yet is not read from, while bytes for it wait for room: it used to sleep on without
 * being woken when room was made. */
Test(shared_ring, who_only_waits_for_room_is_woken)
{
    bool bell;
    fill();
    cr_assert(shared_ring_may_sleep(near_end, false, true));
    cr_assert_gt(shared_ring_read(far_end, bytes, 100, &bell), 0);
    cr_assert(bell);
}

Test(shared_ring, who_waits_for_bytes_is_woken_once)
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
