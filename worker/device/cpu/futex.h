/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for a 32-bit word to change: spins briefly, then sleeps (futex(2)). The CPU's streams,
 * events and team wait this way. A hand-over between threads within microseconds then costs no
 * system call, and a longer wait uses no CPU time that another pod could use.
 */
#ifndef COXSWAIN_DEVICE_CPU_FUTEX_H
#define COXSWAIN_DEVICE_CPU_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About 10 to 20 microseconds. */
#define SPIN_ROUNDS 256

static inline void processor_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps while the word is `seen`; may return early. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static inline void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Spins for a while as long as the word is `seen`. Returns its last value. */
static inline uint32_t spin_while(_Atomic uint32_t *word, uint32_t seen)
{
    uint32_t now = atomic_load(word);
    for (int round = 0; now == seen && round < SPIN_ROUNDS; round++) {
        processor_pause();
        now = atomic_load(word);
    }
    return now;
}

#endif
