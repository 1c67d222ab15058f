/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk on which nothing gets done for a while: fsync waits until it is let go.
 */
#ifndef COXSWAIN_TESTS_HELD_DISK_H
#define COXSWAIN_TESTS_HELD_DISK_H

void held_disk_hold(void);
/* Lets the waiting calls continue. */
void held_disk_let_go(void);
/* The plain fsync again, once nobody is in the other. */
void held_disk_end(void);

#endif
