/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

Test(memory, allocates_zeroed)
{
    char *memory = memory_allocate(100, 3);
    for (int i = 0; i < 300; i++)
        cr_expect(memory[i] == 0);
    memory = memory_resize(memory, 1000, 1);
    memory[999] = 1;
    free(memory);
    free(memory_allocate(0, 0));
}

Test(memory, copies_and_formats)
{
    char *copy = memory_copy_string("text"), *part = memory_copy_bytes("text", 2),
         *made = memory_format("%d-%s", 7, "x");
    cr_expect_str_eq(copy, "text");
    cr_expect_str_eq(part, "te");
    cr_expect_str_eq(made, "7-x");
    cr_expect(memory_copy_string(NULL) == NULL);
    free(copy);
    free(part);
    free(made);
}

/* Sanitizers end the program on their own at such a size. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
Test(memory, ends_the_program_in_words_when_there_is_none, .exit_code = 70)
{
    volatile size_t much = SIZE_MAX / 2;
    free(memory_allocate(much, 1));
}
#endif
