/* SPDX-License-Identifier: Apache-2.0
 *
 * What the members of a crew compute with, as far as bits depend on it:
 * device_arithmetic's words. A processor has the best that it names and all that
 * are below it (avx512 > avx2 > portable); a GPU has its own alone. The same bits
 * from every member need one arithmetic for all of them: the best that all have.
 */
#ifndef COXSWAIN_COORDINATION_ARITHMETIC_H
#define COXSWAIN_COORDINATION_ARITHMETIC_H

#include <stdbool.h>

#define ARITHMETIC_MAX 16 /* bytes of a word, its end included */

/* Whether a device whose best is `best` cannot compute with `wanted`. */
bool arithmetic_is_lacking(const char *best, const char *wanted);
/* The better one that devices with these two have both; NULL: there is none. */
const char *arithmetic_in_common(const char *one, const char *other);

#endif
