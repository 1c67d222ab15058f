/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections of emulated NCCL: a local socket between any two ranks. Every wait here checks regularly whether it should stop.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_NCCL_WIRE_H
#define COXSWAIN_TESTS_GPU_EMULATED_NCCL_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define WIRE_RANKS_MAX 64
#define WIRE_NAME_MAX 96

/* Opens the root of a group: it listens under a name that it chooses, and tells all ranks where the others listen. */
bool wire_open_root(char name[WIRE_NAME_MAX]);

/* Connects to all other ranks through the root; ret_sockets[own] is -1. Returns false if it was stopped or a rank has gone. */
bool wire_meet(const char *root, int rank, int ranks, const _Atomic bool *stop, int ret_sockets[WIRE_RANKS_MAX]);

/* A message to or from a peer; messages between two ranks arrive in order. */
struct wire_message {
    struct wire_message *next;
    int peer;
    bool receives;
    char *bytes;
    size_t length;
    size_t header, done; /* bytes moved so far, of the length and of the message */
    size_t announced;
};

/* Returns true once all messages are through, and false if it was stopped. Sets *gone if a peer has closed its end; then it waits until
 * it is stopped. A message of another length than the receiver expects ends the process. */
bool wire_exchange(const int *sockets, int ranks, struct wire_message *messages, const _Atomic bool *stop,
                   _Atomic bool *gone);

#endif
