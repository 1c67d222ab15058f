/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the first version of what the page of `cox ui` is sent in parts. A page may outlive its `cox ui`, and ask the next one on the same
 * port for what has changed since a version: that one's versions begin elsewhere, so it sends everything.
 */
#ifndef COXSWAIN_CLI_UI_VERSION_H
#define COXSWAIN_CLI_UI_VERSION_H

#include <stdint.h>

/* Never 0; leaves room to count on below 2^53, up to where JavaScript's integers are exact. */
uint64_t random_version(void);

#endif
