/* SPDX-License-Identifier: Apache-2.0
 *
 * Criterion shares memory with its test processes at an address that it draws with rand_r. The thread sanitizer
 * reserves nearly all of those addresses for itself, so under it the draw comes from the range that it leaves free
 * (0x550000000000 to 0x568000000000; Criterion's start at 0x200000000000, in steps of 16 MiB).
 */
#include <stdlib.h>

enum { FIRST = 0x350000, COUNT = 0x18000 };

int rand_r(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return FIRST + (int)((*seed >> 8) % COUNT);
}
