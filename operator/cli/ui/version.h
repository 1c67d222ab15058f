/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws a random first version number for the lists and curves of which the page of `cox ui` gets only the changes since a version. An open
 * page may ask a `cox ui` that was started later on the same port for changes since a version of the earlier one. As the numbers of the two
 * differ, the later one recognises that, and sends everything.
 */
#ifndef COXSWAIN_CLI_UI_VERSION_H
#define COXSWAIN_CLI_UI_VERSION_H

#include <stdint.h>

/* Never 0; leaves room to count on below 2^53, up to where JavaScript's integers are exact. */
uint64_t random_version(void);

#endif
