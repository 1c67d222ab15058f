/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/shared_ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"

#define KIND "ring"
#define CACHE_LINE 64

/* One direction, in shared memory; its bytes are behind both. Positions only grow; the difference is what is in flight. */
struct direction {
    _Alignas(CACHE_LINE) _Atomic uint64_t written;
    _Alignas(CACHE_LINE) _Atomic uint64_t read;
    _Alignas(CACHE_LINE) _Atomic uint32_t reader_sleeps;
    _Alignas(CACHE_LINE) _Atomic uint32_t writer_sleeps;
};

struct shared_directions {
    uint64_t nonce;
    struct direction directions[2]; /* 0: from the creator, 1: to it */
};
#define HEAD_BYTES 4096
_Static_assert(sizeof(struct shared_directions) <= HEAD_BYTES, "what is in front of the bytes has a page");

struct shared_ring {
    struct shared_directions *file;
    int descriptor; /* of the creator, which has the file locked while it has a name; -1 */
    struct direction *out, *in;
    unsigned char *bytes_out, *bytes_in;
    /* Kept out of shared memory, so that a peer cannot make us read or write out of bounds. */
    size_t capacity;
    uint64_t written, read;
};

static size_t file_bytes(size_t capacity)
{
    return HEAD_BYTES + 2 * capacity;
}

static int map_file(int descriptor, size_t capacity, bool creator, struct shared_ring **ret_ring, struct error *error)
{
    void *memory = mmap(NULL, file_bytes(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(error, "map shared memory");
    struct shared_ring *ring = memory_allocate(1, sizeof(*ring));
    unsigned char *bytes = (unsigned char *)memory + HEAD_BYTES;
    ring->file = memory;
    ring->capacity = capacity;
    ring->descriptor = -1;
    ring->out = &ring->file->directions[creator ? 0 : 1];
    ring->in = &ring->file->directions[creator ? 1 : 0];
    ring->bytes_out = bytes + (creator ? 0 : capacity);
    ring->bytes_in = bytes + (creator ? capacity : 0);
    *ret_ring = ring;
    return 0;
}

static void unlock(struct shared_ring *ring)
{
    if (ring->descriptor >= 0)
        close(ring->descriptor);
    ring->descriptor = -1;
}

void shared_ring_free(struct shared_ring *ring)
{
    if (ring == NULL)
        return;
    unlock(ring);
    munmap(ring->file, file_bytes(ring->capacity));
    free(ring);
}

int shared_ring_create(uint64_t nonce, size_t capacity, char path[SHARED_FILE_PATH_MAX], struct shared_ring **ret_ring,
                       struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    struct shared_ring *ring;
    if (shared_file_create(file_bytes(capacity), &descriptor, error) < 0 ||
        map_file(descriptor, capacity, true, &ring, error) < 0)
        return -1;
    ring->file->nonce = nonce;
    if (shared_file_publish(descriptor, KIND, nonce, path, error) < 0) {
        shared_ring_free(ring);
        return -1;
    }
    ring->descriptor = descriptor;
    descriptor = -1;
    *ret_ring = ring;
    return 0;
}

int shared_ring_open(const char *path, uint64_t nonce, size_t capacity, struct shared_ring **ret_ring,
                     struct error *error)
{
    SCOPED_CLOSE int descriptor = -1;
    struct shared_ring *ring;
    if (shared_file_open(path, KIND, file_bytes(capacity), &descriptor, error) < 0 ||
        map_file(descriptor, capacity, false, &ring, error) < 0)
        return -1;
    if (ring->file->nonce != nonce) {
        shared_ring_free(ring);
        return error_set(error, ERROR_UNSUPPORTED, "%s is another file", path);
    }
    *ret_ring = ring;
    return 0;
}

void shared_ring_withdraw(struct shared_ring *ring, const char *path)
{
    shared_file_withdraw(path);
    unlock(ring);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The fence orders the new position before the look at the flag; the sleeper does it the other way round. */
static bool take_flag(_Atomic uint32_t *flag)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(flag, memory_order_relaxed) != 0 && atomic_exchange(flag, 0) != 0;
}

size_t shared_ring_write(struct shared_ring *ring, const void *bytes, size_t length, bool *ret_bell)
{
    *ret_bell = false;
    uint64_t in_flight = ring->written - atomic_load_explicit(&ring->out->read, memory_order_acquire);
    if (in_flight >= ring->capacity || length == 0)
        return 0;
    size_t size = smaller(length, ring->capacity - in_flight);
    size_t at = ring->written & (ring->capacity - 1);
    size_t first = smaller(size, ring->capacity - at);
    memcpy(ring->bytes_out + at, bytes, first);
    memcpy(ring->bytes_out, (const unsigned char *)bytes + first, size - first);
    ring->written += size;
    atomic_store_explicit(&ring->out->written, ring->written, memory_order_release);
    *ret_bell = take_flag(&ring->out->reader_sleeps);
    return size;
}

size_t shared_ring_read(struct shared_ring *ring, void *bytes, size_t length, bool *ret_bell)
{
    *ret_bell = false;
    uint64_t available = atomic_load_explicit(&ring->in->written, memory_order_acquire) - ring->read;
    if (available == 0 || available > ring->capacity || length == 0)
        return 0;
    size_t size = smaller(length, available);
    size_t at = ring->read & (ring->capacity - 1);
    size_t first = smaller(size, ring->capacity - at);
    memcpy(bytes, ring->bytes_in + at, first);
    memcpy((unsigned char *)bytes + first, ring->bytes_in, size - first);
    ring->read += size;
    atomic_store_explicit(&ring->in->read, ring->read, memory_order_release);
    *ret_bell = take_flag(&ring->in->writer_sleeps);
    return size;
}

bool shared_ring_readable(const struct shared_ring *ring)
{
    return atomic_load_explicit(&ring->in->written, memory_order_acquire) != ring->read;
}

static bool writable(const struct shared_ring *ring)
{
    return ring->written - atomic_load_explicit(&ring->out->read, memory_order_acquire) < ring->capacity;
}

bool shared_ring_may_sleep(struct shared_ring *ring, bool reads, bool writes)
{
    atomic_store(&ring->in->reader_sleeps, reads);
    atomic_store(&ring->out->writer_sleeps, writes);
    atomic_thread_fence(memory_order_seq_cst);
    if (!(reads && shared_ring_readable(ring)) && !(writes && writable(ring)))
        return true;
    atomic_store(&ring->in->reader_sleeps, 0);
    atomic_store(&ring->out->writer_sleeps, 0);
    return false;
}
