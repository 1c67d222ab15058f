/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages that a communicator of emulated NCCL has taken from its streams and not sent yet. Over a network, NCCL's own threads go on
 * sending after the GPU's part is done, and an abort drops the rest.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_NCCL_TAIL_H
#define COXSWAIN_TESTS_GPU_EMULATED_NCCL_TAIL_H

#include "tests/gpu/emulated/nccl_wire.h"

struct wire_tail;

/* Sends everything `late_ms` late, in order, until *stop. Borrows its arguments. */
struct wire_tail *wire_tail_new(const int *sockets, int ranks, const _Atomic bool *stop, _Atomic bool *gone,
                                long late_ms);
/* Moves the messages to be sent out of the list and copies their bytes; messages to be received stay. */
void wire_tail_take(struct wire_tail *tail, struct wire_message **messages);
/* Call it once *stop is set; fine for NULL. */
void wire_tail_free(struct wire_tail *tail);

#endif
