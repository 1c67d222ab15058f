/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses on this machine for the hosts that a test plays: those of a process are no other's.
 */
#ifndef COXSWAIN_UNIT_LOOPBACK_H
#define COXSWAIN_UNIT_LOOPBACK_H

#include <stdio.h>
#include <unistd.h>

#define LOOPBACK_HOST_MAX 32

static inline void loopback_host(char ret_host[LOOPBACK_HOST_MAX], unsigned number)
{
    unsigned process = (unsigned)getpid();
    snprintf(ret_host, LOOPBACK_HOST_MAX, "127.%u.%u.%u", 1 + (process >> 8) % 250, (process + number / 250) & 0xff,
             1 + number % 250);
}

#endif
