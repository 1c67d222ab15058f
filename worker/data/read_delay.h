/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a worker slow, for tests of stragglers (tests/stragglers): each read of a batch sleeps for
 * as many milliseconds as a file says (COXSWAIN_READ_DELAY). If the file has several numbers, each
 * is for one read of the process, and the last one for all further reads: "0 0 600000" lets two
 * batches through. A sleeping read notices changes of the file. Since the worker sleeps, the tests
 * also hold on machines with fewer processors than workers.
 */
#ifndef COXSWAIN_DATA_READ_DELAY_H
#define COXSWAIN_DATA_READ_DELAY_H

/* Sets the file. To be called once in a process, before anything is read; the string is borrowed.
 * NULL: no delay. */
void read_delay_follow(const char *path);
/* Sleeps. Returns at once if there is no file, or no number in it. */
void read_delay_sleep(void);

#endif
