/* SPDX-License-Identifier: Apache-2.0
 *
 * Much of a large allocation is never touched, for example most of a stream's workspace. So it is one small file, mapped repeatedly, and
 * a page takes memory only when it is written. With the address sanitizer, all allocations are on the heap, because the sanitizer sees
 * accesses beyond the end only there.
 */
#include "tests/gpu/emulated/unwritten.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATTERN_BYTES ((size_t)1 << 20)

#ifdef __SANITIZE_ADDRESS__
static const bool maps = false;
#else
static const bool maps = true;
#endif
static int pattern = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_pattern(void)
{
    static unsigned char bytes[1 << 16];
    memset(bytes, 0xff, sizeof bytes);
    pattern = memfd_create("unwritten", MFD_CLOEXEC);
    for (size_t written = 0; pattern >= 0 && written < PATTERN_BYTES; written += sizeof bytes)
        if (write(pattern, bytes, sizeof bytes) != (ssize_t)sizeof bytes) {
            close(pattern);
            pattern = -1;
        }
}

static bool is_mapped(size_t bytes)
{
    if (!maps || bytes <= PATTERN_BYTES)
        return false;
    pthread_once(&once, make_pattern);
    return pattern >= 0;
}

static void *map(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    for (size_t place = 0; place < bytes; place += PATTERN_BYTES) {
        const size_t left = bytes - place, length = left < PATTERN_BYTES ? left : PATTERN_BYTES;
        if (mmap(memory + place, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, pattern, 0) ==
            MAP_FAILED) {
            munmap(memory, bytes);
            return NULL;
        }
    }
    return memory;
}

void *unwritten_new(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    if (is_mapped(bytes))
        return map(bytes);
    if (posix_memalign(&memory, alignment, bytes > 0 ? bytes : 1) != 0)
        return NULL;
    return memset(memory, 0xff, bytes);
}

void unwritten_free(void *memory, size_t bytes)
{
    if (memory != NULL && is_mapped(bytes))
        munmap(memory, bytes);
    else
        free(memory);
}
