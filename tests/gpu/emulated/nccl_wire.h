/* SPDX-License-Identifier: Apache-2.0
 *
 * The wires of emulated NCCL: between any two ranks a socket of this machine.
 * Whatever waits here looks now and then whether it should stop.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_NCCL_WIRE_H
#define COXSWAIN_TESTS_GPU_EMULATED_NCCL_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define WIRE_RANKS_MAX 64
#define WIRE_NAME_MAX 96

/* The root of a group: listens under a name that it chooses, and tells all who come where the others are. */
bool wire_open_root(char name[WIRE_NAME_MAX]);

/* Meets all others by the root; ret_sockets[own] is -1. False: stopped, or somebody has gone. */
bool wire_meet(const char *root, int rank, int ranks, const _Atomic bool *stop, int ret_sockets[WIRE_RANKS_MAX]);

/* A message to or from a peer; those between two ranks go in order. */
struct wire_message {
    struct wire_message *next;
    int peer;
    bool receives;
    char *bytes;
    size_t length;
    size_t header, done; /* so far, of the length in front and of the bytes */
    size_t announced;
};

/* Until all are through, or it is to stop; false then. *gone: a peer has closed its end, and the rest will never come. A length
 * that the other end does not expect ends the process. */
bool wire_exchange(const int *sockets, int ranks, struct wire_message *messages, const _Atomic bool *stop,
                   _Atomic bool *gone);

#endif
