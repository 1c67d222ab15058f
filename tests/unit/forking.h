/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests that fork a child which then has threads. Criterion's test processes have a thread of Criterion's own, and
 * what forks from a process with threads the thread sanitizer does not follow: it checks nothing in the child or ends
 * it. The same code runs under it in processes of their own (make check-sanitize-thread: tests/sanitizers/test_crew.sh).
 */
#ifndef COXSWAIN_TESTS_FORKING_H
#define COXSWAIN_TESTS_FORKING_H

#include <criterion/criterion.h>

#ifdef __SANITIZE_THREAD__
#define SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED() cr_skip_test("the thread sanitizer does not follow a fork")
#else
#define SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED() ((void)0)
#endif

#endif
