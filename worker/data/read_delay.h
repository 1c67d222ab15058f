/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker that is slow without having work for a processor: each reading of a
 * batch takes so many milliseconds longer, asleep, as a file says
 * (COXSWAIN_READ_DELAY). With several numbers there, each is for one reading of
 * the process, and the last for all that follow: "0 0 600000" lets two batches
 * through. The file is looked at all the while. So a proof of what a crew makes of
 * a straggler (tests/stragglers) holds on a machine with fewer processors than
 * workers, and a step can be one that does not end.
 */
#ifndef COXSWAIN_DATA_READ_DELAY_H
#define COXSWAIN_DATA_READ_DELAY_H

/* One a process, before anything is read; the string is borrowed. NULL: no delay. */
void read_delay_follow(const char *path);
/* Sleeps; at once without a file, or when it holds no number of milliseconds. */
void read_delay_sleep(void);

#endif
