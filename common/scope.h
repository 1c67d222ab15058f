/* SPDX-License-Identifier: Apache-2.0
 *
 * Releases a variable when it leaves its scope. `SCOPED(buffer_release) struct buffer text = …;`
 * calls buffer_release(&text) when `text` leaves its scope, on every path out of it. Types that
 * are pointers declare a `…_scope_free(T **)` with DEFINE_SCOPE_FREE.
 */
#ifndef COXSWAIN_COMMON_SCOPE_H
#define COXSWAIN_COMMON_SCOPE_H

#include <stdlib.h>
#include <unistd.h>

#define SCOPED(release) __attribute__((cleanup(release)))

/* Defines `free_function##_scope`, which frees the pointer that leaves its scope. */
#define DEFINE_SCOPE_FREE(type, free_function)                                                                         \
    static inline void free_function##_scope(type *pointer)                                                            \
    {                                                                                                                  \
        if (*pointer)                                                                                                  \
            free_function(*pointer);                                                                                   \
    }

static inline void free_scope(void *pointer)
{
    free(*(void **)pointer);
}

/* Closes a descriptor that is not negative. */
static inline void close_scope(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
}

/* A string or block from malloc, freed when it leaves its scope. */
#define SCOPED_FREE SCOPED(free_scope)
/* An int descriptor (-1: none), closed when it leaves its scope. */
#define SCOPED_CLOSE SCOPED(close_scope)

#endif
