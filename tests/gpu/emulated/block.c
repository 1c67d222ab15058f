/* SPDX-License-Identifier: Apache-2.0 */
#undef _FORTIFY_SOURCE /* whose longjmp takes a jump to another stack for a mistake */
#include "tests/gpu/emulated/block.h"
#include "worker/device/float16.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES (128 << 10)

enum fiber_state { FIBER_READY, FIBER_AT_BLOCK_BARRIER, FIBER_AT_WARP_BARRIER, FIBER_DONE };

/* What the address sanitizer is told of it: it would else take a jump to another stack for one across all of its own. */
struct stack {
    const void *bottom;
    size_t bytes;
    void *kept; /* the sanitizer's, while somebody else runs */
};

struct fiber {
    jmp_buf there; /* where it goes on */
    struct stack stack;
    enum fiber_state state;
    struct emulated_place place;
    uint64_t words[2]; /* what it hands to its warp, in turns: who is late still reads the one before */
    unsigned turn;
    struct factors {
        uint32_t left[4], right[2];
    } factors[2]; /* likewise */
};

/* What the thread that plays blocks has: fibers are made once and run many kernels' threads. */
struct player {
    struct fiber fibers[EMULATED_THREADS_MAX];
    unsigned made, count; /* of this block */
    struct fiber *running;
    jmp_buf back;
    struct stack stack; /* of the thread */
    const struct emulated_grid *grid;
};
static __thread struct player *player;

__thread struct emulated_place threadIdx, blockIdx, blockDim, gridDim;
/* `extern __shared__ float shared[]` of the kernels. */
_Alignas(16) _Thread_local float shared[EMULATED_SHARED_BYTES_MAX / sizeof(float)];

static _Noreturn void undefined(const char *what)
{
    fprintf(stderr, "emulated GPU: block (%u, %u, %u), thread (%u, %u, %u): %s\n", blockIdx.x, blockIdx.y, blockIdx.z,
            threadIdx.x, threadIdx.y, threadIdx.z, what);
    abort();
}

/* ---------------------------------------------------------------- fibers */

static void about_to_leave(struct stack *from, const struct stack *to)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->kept, to->bottom, to->bytes);
#else
    (void)from, (void)to;
#endif
}

static void arrived(struct stack *here, struct stack *before)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(here->kept, before ? &before->bottom : NULL, before ? &before->bytes : NULL);
#else
    (void)here, (void)before;
#endif
}

/* _setjmp and _longjmp between stacks: unlike swapcontext they ask nothing of the kernel. */
static void yield(enum fiber_state state)
{
    struct fiber *self = player->running;
    self->state = state;
    about_to_leave(&self->stack, &player->stack);
    if (_setjmp(self->there) == 0)
        _longjmp(player->back, 1);
    arrived(&self->stack, NULL);
}

static void fiber_main(void)
{
    arrived(&player->running->stack, &player->stack);
    for (;;) {
        yield(FIBER_DONE);
        player->grid->run(player->grid->context);
    }
}

static void go_on(struct fiber *fiber)
{
    player->running = fiber;
    threadIdx = fiber->place;
    about_to_leave(&player->stack, &fiber->stack);
    if (_setjmp(player->back) == 0)
        _longjmp(fiber->there, 1);
    arrived(&player->stack, NULL);
}

/* A fiber's first run ends at once, in yield: from then on it only needs to be woken. */
static void make_fiber(struct fiber *fiber)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_stack.ss_sp =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (context.uc_stack.ss_sp == MAP_FAILED)
        undefined("no memory for its stack");
    context.uc_link = NULL;
    makecontext(&context, fiber_main, 0);
    fiber->stack = (struct stack){.bottom = context.uc_stack.ss_sp, .bytes = STACK_BYTES};
    player->running = fiber;
    about_to_leave(&player->stack, &fiber->stack);
    if (_setjmp(player->back) == 0)
        setcontext(&context);
    arrived(&player->stack, NULL);
}

static void prepare(unsigned count)
{
    if (!player && !(player = calloc(1, sizeof *player)))
        undefined("no memory for its block");
    for (; player->made < count; player->made++)
        make_fiber(&player->fibers[player->made]);
    player->count = count;
}

void emulated_release_fibers(void)
{
    for (unsigned i = 0; player && i < player->made; i++)
        munmap((void *)player->fibers[i].stack.bottom, STACK_BYTES);
    free(player);
    player = NULL;
}

/* ---------------------------------------------------------------- barriers */

static unsigned number_of(const struct fiber *fiber)
{
    return (unsigned)(fiber - player->fibers);
}

static bool runs_backward(void)
{
    static int backward = -1;
    if (backward < 0) {
        const char *order = getenv("EMULATED_ORDER");
        backward = order && strcmp(order, "backward") == 0;
    }
    return backward;
}

static unsigned count_in(enum fiber_state state, unsigned first, unsigned end)
{
    unsigned count = 0;
    for (unsigned i = first; i < end; i++)
        count += player->fibers[i].state == state;
    return count;
}

static void release(unsigned first, unsigned end, enum fiber_state state)
{
    for (unsigned i = first; i < end; i++)
        if (player->fibers[i].state == state)
            player->fibers[i].state = FIBER_READY;
}

static bool release_warps(void)
{
    bool released = false;
    for (unsigned first = 0; first < player->count; first += EMULATED_WARP) {
        const unsigned end = first + EMULATED_WARP < player->count ? first + EMULATED_WARP : player->count;
        const unsigned waiting = count_in(FIBER_AT_WARP_BARRIER, first, end);
        if (waiting == 0)
            continue;
        if (waiting < end - first)
            undefined("lanes of its warp exchange words, but not all of them take part");
        release(first, end, FIBER_AT_WARP_BARRIER);
        released = true;
    }
    return released;
}

/* Runs all that can run; then opens the barriers that all have reached. False: all are done. */
static bool advance(void)
{
    for (unsigned i = 0; i < player->count; i++) {
        struct fiber *fiber = &player->fibers[runs_backward() ? player->count - 1 - i : i];
        if (fiber->state == FIBER_READY)
            go_on(fiber);
    }
    const unsigned done = count_in(FIBER_DONE, 0, player->count);
    if (done == player->count)
        return false;
    if (!release_warps())
        release(0, player->count, FIBER_AT_BLOCK_BARRIER);
    return true;
}

/* ---------------------------------------------------------------- blocks */

static void run_block(const struct emulated_grid *grid, struct emulated_place block)
{
    blockIdx = block;
    memset(shared, 0xff, grid->shared_bytes); /* not a number, until it is written */
    for (unsigned i = 0; i < player->count; i++) {
        struct fiber *fiber = &player->fibers[i];
        const struct emulated_place *size = &grid->threads;
        fiber->place = (struct emulated_place){i % size->x, i / size->x % size->y, i / size->x / size->y};
        fiber->state = FIBER_READY;
        fiber->turn = 0;
    }
    while (advance())
        ;
}

void emulated_run_grid(const struct emulated_grid *grid)
{
    prepare(grid->threads.x * grid->threads.y * grid->threads.z);
    player->grid = grid;
    blockDim = grid->threads;
    gridDim = grid->blocks;
    struct emulated_place block;
    for (block.z = 0; block.z < grid->blocks.z; block.z++)
        for (block.y = 0; block.y < grid->blocks.y; block.y++)
            for (block.x = 0; block.x < grid->blocks.x; block.x++)
                run_block(grid, block);
}

/* ---------------------------------------------------------------- in kernels */

void emulated_block_barrier(void)
{
    yield(FIBER_AT_BLOCK_BARRIER);
}

unsigned emulated_lane(void)
{
    return number_of(player->running) % EMULATED_WARP;
}

static _Atomic uint64_t exchanges;

uint64_t emulated_exchanges(void)
{
    return exchanges;
}

uint64_t emulated_exchange(unsigned lanes, uint64_t word, unsigned from)
{
    struct fiber *self = player->running;
    struct fiber *warp = self - emulated_lane();
    if (lanes != ~0u || from >= EMULATED_WARP || number_of(warp) + from >= player->count)
        undefined("an exchange with a lane that is not there");
    const unsigned turn = self->turn++ % 2;
    self->words[turn] = word;
    exchanges++;
    yield(FIBER_AT_WARP_BARRIER);
    return warp[from].words[turn];
}

unsigned emulated_ballot(unsigned lanes, bool predicate)
{
    struct fiber *self = player->running;
    const struct fiber *warp = self - emulated_lane();
    const unsigned turn = self->turn % 2;
    (void)emulated_exchange(lanes, predicate, emulated_lane());
    unsigned votes = 0;
    for (unsigned lane = 0; lane < EMULATED_WARP && number_of(warp) + lane < player->count; lane++)
        votes |= (unsigned)warp[lane].words[turn] << lane;
    return votes;
}

/* Neighbours along the inner axis share a word, the first in its lower half. */
static float half_of(uint32_t word, unsigned half, bool is_float16)
{
    if (is_float16)
        return float16_unpack((uint16_t)(half ? word >> 16 : word));
    const uint32_t bits = half ? word & 0xffff0000 : word << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float left_at(const struct fiber *warp, unsigned turn, unsigned row, unsigned k, bool is_float16)
{
    const struct factors *factors = &warp[row % 8 * 4 + k % 8 / 2].factors[turn];
    return half_of(factors->left[row / 8 + k / 8 * 2], k % 2, is_float16);
}

static float right_at(const struct fiber *warp, unsigned turn, unsigned k, unsigned column, bool is_float16)
{
    const struct factors *factors = &warp[column * 4 + k % 8 / 2].factors[turn];
    return half_of(factors->right[k / 8], k % 2, is_float16);
}

void emulated_multiply_tile(float sums[4], const uint32_t left[4], const uint32_t right[2], const char *types)
{
    struct fiber *self = player->running;
    const unsigned lane = emulated_lane(), turn = self->turn++ % 2;
    const struct fiber *warp = self - lane;
    const bool is_float16 = types[0] == 'f';
    if (number_of(warp) + EMULATED_WARP > player->count)
        undefined("a product of tiles without a whole warp");
    memcpy(self->factors[turn].left, left, sizeof self->factors[turn].left);
    memcpy(self->factors[turn].right, right, sizeof self->factors[turn].right);
    yield(FIBER_AT_WARP_BARRIER);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < 16; k++)
            sums[i] += left_at(warp, turn, lane / 4 + i / 2 * 8, k, is_float16) *
                       right_at(warp, turn, k, lane % 4 * 2 + i % 2, is_float16);
}
