/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/exit_code.h"

#include <stddef.h>

const char *exit_code_meaning(int code)
{
    switch (code) {
#define X(name, number, class, meaning)                                                                                \
    case number:                                                                                                       \
        return meaning;
        EXIT_CODES(X)
#undef X
    default:
        return NULL;
    }
}
