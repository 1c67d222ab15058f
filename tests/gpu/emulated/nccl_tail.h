/* SPDX-License-Identifier: Apache-2.0
 *
 * What a communicator of emulated NCCL has taken off its streams and not sent
 * yet: over a network the library's own threads send on after the GPU's part is
 * done, and an abort drops what they have left.
 */
#ifndef COXSWAIN_TESTS_GPU_EMULATED_NCCL_TAIL_H
#define COXSWAIN_TESTS_GPU_EMULATED_NCCL_TAIL_H

#include "tests/gpu/emulated/nccl_wire.h"

struct wire_tail;

/* Everything goes so many milliseconds late, in order, until *stop. All is borrowed. */
struct wire_tail *wire_tail_new(const int *sockets, int ranks, const _Atomic bool *stop, _Atomic bool *gone,
                                long late_ms);
/* Takes what is sent out of the list, as it is now; what is received stays. */
void wire_tail_take(struct wire_tail *tail, struct wire_message **messages);
/* Once it is to stop; fine for NULL. */
void wire_tail_free(struct wire_tail *tail);

#endif
