/* SPDX-License-Identifier: Apache-2.0
 *
 * A switch that is far away: Ethernet frames between TAP devices, each handed on a
 * fixed time after it came. The kernel's netem would do the same where it is
 * built in; many kernels have it as a module that nobody may load.
 *
 *     delay_line DELAY_US TAP...      makes the devices in its network namespace; runs until it is killed
 *
 * Frames to 02:00:00:00:00:NN go to device NN (from 1), all others to every device but their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"

#define DEVICES_MAX 64
#define FRAME_MAX 9216
#define FRAMES_MAX 65536 /* under way; what comes beyond is dropped, as a switch does */
#define READS_MAX 64     /* frames of one device before the next one's turn */

struct frame {
    int64_t due_ns;
    unsigned from, length;
    unsigned char *bytes;
};

static struct frame frames[FRAMES_MAX]; /* a ring; all wait equally long, so the oldest is due first */
static uint64_t first, end;
static int devices[DEVICES_MAX];
static unsigned device_count;

static void fail(const char *what)
{
    fprintf(stderr, "delay_line: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_tap(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &request) < 0)
        fail(name);
    return tap;
}

static void take(unsigned from, const unsigned char *bytes, unsigned length, int64_t delay_ns)
{
    if (end - first == FRAMES_MAX)
        return;
    struct frame *frame = &frames[end++ % FRAMES_MAX];
    unsigned char *copy = malloc(length);
    if (!copy)
        fail("memory");
    memcpy(copy, bytes, length);
    *frame = (struct frame){clock_monotonic_ns() + delay_ns, from, length, copy};
}

static void read_all(unsigned device, int64_t delay_ns)
{
    unsigned char bytes[FRAME_MAX];
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t length = read(devices[device], bytes, sizeof(bytes));
        if (length < 14)
            return;
        take(device, bytes, (unsigned)length, delay_ns);
    }
}

/* A device that takes no more drops it. */
static void hand_on(const struct frame *frame)
{
    static const unsigned char ours[] = {2, 0, 0, 0, 0};
    bool known = memcmp(frame->bytes, ours, sizeof(ours)) == 0;
    for (unsigned device = 0; device < device_count; device++)
        if (device != frame->from && (!known || frame->bytes[5] == device + 1))
            (void)!write(devices[device], frame->bytes, frame->length);
}

static void hand_on_due(void)
{
    for (int64_t now = clock_monotonic_ns(); first != end && frames[first % FRAMES_MAX].due_ns <= now; first++) {
        hand_on(&frames[first % FRAMES_MAX]);
        free(frames[first % FRAMES_MAX].bytes);
    }
}

static void wait_for_frames(struct pollfd *polls)
{
    struct timespec pause, *patience = NULL;
    if (first != end) {
        int64_t left = frames[first % FRAMES_MAX].due_ns - clock_monotonic_ns();
        left = left > 0 ? left : 0;
        pause = (struct timespec){left / 1000000000, left % 1000000000};
        patience = &pause;
    }
    if (ppoll(polls, device_count, patience, NULL) < 0 && errno != EINTR)
        fail("poll");
}

int main(int argc, char **argv)
{
    struct pollfd polls[DEVICES_MAX];
    if (argc < 4 || argc - 2 > DEVICES_MAX) {
        fprintf(stderr, "usage: delay_line DELAY_US TAP TAP...   (2 to %d)\n", DEVICES_MAX);
        return 2;
    }
    int64_t delay_ns = strtol(argv[1], NULL, 10) * 1000;
    for (int i = 2; i < argc; i++, device_count++) {
        devices[device_count] = open_tap(argv[i]);
        polls[device_count] = (struct pollfd){.fd = devices[device_count], .events = POLLIN};
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        wait_for_frames(polls);
        for (unsigned i = 0; i < device_count; i++)
            if (polls[i].revents & POLLIN)
                read_all(i, delay_ns);
        hand_on_due();
    }
}
