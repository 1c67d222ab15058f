/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/emulated/block.h"
#include "worker/device/float16.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES (128 << 10)
/* Stacks begin at different offsets in their pages. Otherwise what all threads touch would fall into the same few cache sets. */
#define STACK_SHIFT 448
#define STACK_SHIFTS 73

/* Where a thread of the processor continues, with __builtin_setjmp and __builtin_longjmp: a switch takes a dozen instructions. */
struct spot {
    void *words[5];
};

/* A stack on which a thread of the block runs. The address sanitizer must be told of it, since it would take a jump to another stack for
 * one across its own. */
struct stack {
    struct stack *next; /* that is free */
    struct spot idle;   /* where it takes a thread that has not begun */
    const void *bottom;
    size_t bytes;
    void *kept; /* the sanitizer's, while another stack runs */
};

enum fiber_state { FIBER_NEW, FIBER_READY, FIBER_AT_BLOCK_BARRIER, FIBER_AT_WARP_BARRIER, FIBER_DONE };

typedef float four __attribute__((vector_size(4 * sizeof(float))));

/* A thread's outstanding asynchronous copies. */
#define COPIES_MAX 128
struct copies {
    struct copy {
        void *to;
        const void *from; /* NULL: zeros */
        unsigned bytes;
    } list[COPIES_MAX];
    unsigned count, closed;
};

struct fiber {
    struct spot there;   /* where it goes on */
    struct stack *stack; /* from its first step to its last */
    enum fiber_state state;
    struct emulated_place place;
    uint64_t words[2]; /* given to the warp, alternating: a late lane still reads the previous one */
    unsigned turn;
};

/* The state of a thread that plays blocks. Stacks are made once and used for many kernels. */
struct player {
    struct fiber fibers[EMULATED_THREADS_MAX];
    struct copies copies[EMULATED_THREADS_MAX]; /* of `fibers` */
    struct stack stacks[EMULATED_THREADS_MAX], *free;
    unsigned made, count;      /* stacks; threads of this block */
    unsigned turn, first, end; /* next turn in the running warp, and its range of threads */
    struct fiber *running;
    struct spot back;
    struct stack stack; /* of the thread */
    struct factors {
        four left[16][4], right[8][4]; /* [row][k], [column][k] */
    } factors[2];                      /* of the running warp, alternating as well */
    const struct emulated_grid *grid;
    uint64_t exchanges; /* of this grid */
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

static struct copies *copies_of(const struct fiber *fiber)
{
    return &player->copies[fiber - player->fibers];
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

/* Returns the warp's next thread that can run; NULL if all have had their turn. */
static struct fiber *whose_turn(void)
{
    while (player->turn < player->end - player->first) {
        const unsigned turn = player->turn++;
        struct fiber *fiber = &player->fibers[runs_backward() ? player->end - 1 - turn : player->first + turn];
        if (fiber->state <= FIBER_READY) {
            player->running = fiber;
            threadIdx = fiber->place;
            return fiber;
        }
    }
    return NULL;
}

/* Leaves `stack` for the next thread; a new thread gets a free stack. The callers have called setjmp, because the builtins must not be
 * used in one function together. */
__attribute__((noinline)) static _Noreturn void pass_on(struct stack *stack)
{
    struct fiber *next = whose_turn();
    struct spot *there = &player->back;
    struct stack *to = &player->stack;
    if (next && next->state == FIBER_NEW) {
        to = next->stack = player->free;
        player->free = to->next;
        there = &to->idle;
    } else if (next) {
        to = next->stack;
        there = &next->there;
    }
    about_to_leave(stack, to);
    __builtin_longjmp(there->words, 1);
}

static void yield(enum fiber_state state)
{
    struct fiber *self = player->running;
    self->state = state;
    if (__builtin_setjmp(self->there.words) == 0)
        pass_on(self->stack);
    arrived(player->running->stack, NULL);
}

/* Waits until a thread needs this stack: often the one after the thread that has just ended on it. */
static void rest(struct stack *stack)
{
    stack->next = player->free;
    player->free = stack;
    if (__builtin_setjmp(stack->idle.words) == 0)
        pass_on(stack);
    arrived(stack, NULL);
}

static void stack_main(void)
{
    struct stack *stack = &player->stacks[player->made];
    arrived(stack, &player->stack);
    for (;;) {
        rest(stack);
        player->grid->run(player->grid->context);
        if (copies_of(player->running)->count > 0)
            undefined("it ends before what it copies ahead has come");
        player->running->state = FIBER_DONE;
    }
}

/* The first run of the stack ends at once, in rest(). */
static void make_stack(struct stack *stack)
{
    ucontext_t context;
    getcontext(&context);
    char *bottom = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bottom == MAP_FAILED)
        undefined("no memory for its stack");
    *stack = (struct stack){.bottom = bottom, .bytes = STACK_BYTES - player->made % STACK_SHIFTS * STACK_SHIFT};
    context.uc_stack.ss_sp = bottom;
    context.uc_stack.ss_size = stack->bytes;
    context.uc_link = NULL;
    makecontext(&context, stack_main, 0);
    about_to_leave(&player->stack, stack);
    if (__builtin_setjmp(player->back.words) == 0)
        setcontext(&context);
    arrived(&player->stack, NULL);
}

static void prepare(unsigned count)
{
    if (!player && !(player = calloc(1, sizeof *player)))
        undefined("no memory for its block");
    player->turn = player->first = player->end = 0;
    for (; player->made < count; player->made++)
        make_stack(&player->stacks[player->made]);
    player->count = count;
}

void emulated_release_fibers(void)
{
    for (unsigned i = 0; player && i < player->made; i++)
        munmap((void *)player->stacks[i].bottom, STACK_BYTES);
    free(player);
    player = NULL;
}

/* ---------------------------------------------------------------- barriers */

static unsigned number_of(const struct fiber *fiber)
{
    return (unsigned)(fiber - player->fibers);
}

/* Lets the threads that wait at this barrier continue. Returns their number. */
static unsigned release(unsigned first, unsigned end, enum fiber_state barrier)
{
    unsigned count = 0;
    for (unsigned i = first; i < end; i++)
        if (player->fibers[i].state == barrier) {
            player->fibers[i].state = FIBER_READY;
            count++;
        }
    return count;
}

/* Gives each thread of the warp one turn. */
static void play_turns(unsigned first, unsigned end)
{
    player->turn = 0;
    player->first = first;
    player->end = end;
    if (__builtin_setjmp(player->back.words) == 0)
        pass_on(&player->stack);
    arrived(&player->stack, NULL);
}

/* Runs the warp until each of its threads is done or waits at the block's barrier. */
static void run_warp(unsigned first)
{
    const unsigned end = first + EMULATED_WARP < player->count ? first + EMULATED_WARP : player->count;
    unsigned waiting;
    do {
        play_turns(first, end);
        waiting = release(first, end, FIBER_AT_WARP_BARRIER);
        if (waiting > 0 && waiting < end - first)
            undefined("lanes of its warp exchange words, but not all of them take part");
    } while (waiting > 0);
}

/* ---------------------------------------------------------------- blocks */

static void run_block(const struct emulated_grid *grid, struct emulated_place block)
{
    blockIdx = block;
    memset(shared, 0xff, grid->shared_bytes); /* NaN until it is written */
    for (unsigned i = 0; i < player->count; i++) {
        struct fiber *fiber = &player->fibers[i];
        const struct emulated_place *size = &grid->threads;
        fiber->place = (struct emulated_place){i % size->x, i / size->x % size->y, i / size->x / size->y};
        fiber->state = FIBER_NEW;
        fiber->turn = 0;
        player->copies[i].count = player->copies[i].closed = 0;
    }
    const unsigned warps = (player->count + EMULATED_WARP - 1) / EMULATED_WARP;
    do {
        for (unsigned i = 0; i < warps; i++)
            run_warp((runs_backward() ? warps - 1 - i : i) * EMULATED_WARP);
    } while (release(0, player->count, FIBER_AT_BLOCK_BARRIER) > 0);
}

/* Words that lanes have given on all streams. */
static _Atomic uint64_t exchanges;

void emulated_run_grid(const struct emulated_grid *grid)
{
    prepare(grid->threads.x * grid->threads.y * grid->threads.z);
    player->grid = grid;
    player->exchanges = 0;
    blockDim = grid->threads;
    gridDim = grid->blocks;
    struct emulated_place block;
    for (block.z = 0; block.z < grid->blocks.z; block.z++)
        for (block.y = 0; block.y < grid->blocks.y; block.y++)
            for (block.x = 0; block.x < grid->blocks.x; block.x++)
                run_block(grid, block);
    exchanges += player->exchanges;
}

uint64_t emulated_exchanges(void)
{
    return exchanges;
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

uint64_t emulated_exchange(unsigned lanes, uint64_t word, unsigned from)
{
    struct fiber *self = player->running;
    struct fiber *warp = self - emulated_lane();
    if (lanes != ~0u || from >= EMULATED_WARP || number_of(warp) + from >= player->count)
        undefined("an exchange with a lane that is not there");
    const unsigned turn = self->turn++ % 2;
    self->words[turn] = word;
    player->exchanges++;
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
static void unpack(float pair[2], uint32_t word, bool is_float16)
{
    const uint32_t bits[] = {word << 16, word & 0xffff0000};
    memcpy(pair, bits, sizeof bits); /* bfloat16: the upper half of a float */
    if (is_float16) {
        pair[0] = float16_unpack((uint16_t)word);
        pair[1] = float16_unpack((uint16_t)(word >> 16));
    }
}

/* A GPU may sum in another order. */
static float inner_product(const four a[4], const four b[4])
{
    const four sums = (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void emulated_multiply_tile(float sums[4], const uint32_t left[4], const uint32_t right[2], const char *types)
{
    struct fiber *self = player->running;
    const unsigned lane = emulated_lane(), row = lane / 4, pair = lane % 4 * 2;
    struct factors *all = &player->factors[self->turn++ % 2];
    const bool is_float16 = types[0] == 'f';
    if (number_of(self) - lane + EMULATED_WARP > player->count)
        undefined("a product of tiles without a whole warp");
    for (unsigned i = 0; i < 4; i++)
        unpack((float *)all->left[row + i % 2 * 8] + pair + i / 2 * 8, left[i], is_float16);
    for (unsigned i = 0; i < 2; i++)
        unpack((float *)all->right[row] + pair + i * 8, right[i], is_float16);
    yield(FIBER_AT_WARP_BARRIER);
    for (unsigned i = 0; i < 4; i++)
        sums[i] += inner_product(all->left[row + i / 2 * 8], all->right[pair + i % 2]);
}

/* ---------------------------------------------------------------- of shared memory */

static bool is_shared(const void *place, unsigned bytes)
{
    const uintptr_t offset = (uintptr_t)place - (uintptr_t)shared;
    return offset % bytes == 0 && offset + bytes <= player->grid->shared_bytes;
}

void emulated_read_matrices(uint32_t parts[4], const void *row, bool turned)
{
    struct fiber *self = player->running;
    const unsigned lane = emulated_lane(), turn = self->turn++ % 2;
    const struct fiber *warp = self - lane;
    if (number_of(warp) + EMULATED_WARP > player->count)
        undefined("matrices are read without a whole warp");
    if (!is_shared(row, 16))
        undefined("a row of a matrix is not 16 bytes of shared memory at a multiple of 16");
    self->words[turn] = (uintptr_t)row;
    yield(FIBER_AT_WARP_BARRIER);
    for (unsigned i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (unsigned k = 0; k < 2; k++) {
            const unsigned at_row = turned ? lane % 4 * 2 + k : lane / 4, at = turned ? lane / 4 : lane % 4 * 2 + k;
            memcpy(&pair[k], (const char *)(uintptr_t)warp[i * 8 + at_row].words[turn] + at * sizeof *pair,
                   sizeof *pair);
        }
        memcpy(&parts[i], pair, sizeof pair);
    }
}

static void come(const struct copy *copy)
{
    if (copy->from)
        memcpy(copy->to, copy->from, copy->bytes);
    else
        memset(copy->to, 0, copy->bytes);
}

void emulated_copy_ahead(void *to, const void *from, unsigned bytes, bool there)
{
    struct copies *copies = copies_of(player->running);
    if (!is_shared(to, bytes) || (there && (uintptr_t)from % bytes != 0))
        undefined("a copy ahead to or from a place that is no multiple of its length");
    if (copies->count == COPIES_MAX)
        undefined("more copies ahead than are played");
    struct copy *copy = &copies->list[copies->count++];
    *copy = (struct copy){to, there ? from : NULL, bytes};
    if (!runs_backward())
        return;
    come(copy);
    copy->bytes = 0;
}

void emulated_close_copies(void)
{
    struct copies *copies = copies_of(player->running);
    copies->closed = copies->count;
}

void emulated_await_copies(void)
{
    struct copies *copies = copies_of(player->running);
    for (unsigned i = 0; i < copies->closed; i++)
        come(&copies->list[i]);
    copies->count -= copies->closed;
    memmove(copies->list, copies->list + copies->closed, copies->count * sizeof *copies->list);
    copies->closed = 0;
}
