/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/link.h"

#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>

/* Opens a link; the test is its peer. */
static struct link open_link(int *ret_peer)
{
    int ends[2];
    struct link link;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    link_init(&link);
    link.socket = ends[0];
    *ret_peer = ends[1];
    return link;
}

static bool would_sleep(struct link *link)
{
    struct pollfd wait;
    return link_prepare_poll(link, true, false, &wait) && poll(&wait, 1, 0) == 0;
}

Test(link, a_read_that_took_all_is_not_repeated)
{
    int peer;
    char bytes[16];
    struct link link = open_link(&peer);
    cr_assert_eq(write(peer, "abc", 3), 3);
    cr_expect_eq(link_read(&link, bytes, sizeof bytes), 3);
    cr_assert_eq(write(peer, "de", 2), 2);
    cr_expect_eq(link_read(&link, bytes, sizeof bytes), 0, "nobody asks");
    cr_expect_not(would_sleep(&link), "nor does anybody miss it");
    cr_expect_eq(link_read(&link, bytes, 2), 2);
    cr_assert_eq(write(peer, "f", 1), 1);
    cr_expect_eq(link_read(&link, bytes, 1), 1, "what was full may have left something");
    close(peer);
    link_release(&link);
}

Test(link, the_end_is_seen_behind_the_last_bytes)
{
    int peer;
    char bytes[16];
    struct link link = open_link(&peer);
    cr_assert_eq(write(peer, "abc", 3), 3);
    close(peer);
    cr_expect(link_read(&link, bytes, sizeof bytes) == 3 && !link.closed);
    cr_expect(link_read(&link, bytes, sizeof bytes) == 0 && !would_sleep(&link));
    cr_expect(link_read(&link, bytes, sizeof bytes) == 0 && link.closed);
    link_release(&link);
}
