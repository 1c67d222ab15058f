/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests whose many rounds differ only in values. A sanitizer multiplies the time of each round, and what it looks for is in the code
 * that all of them run: under one a few rounds are enough. The ordinary build (make test) checks the values of all.
 */
#ifndef COXSWAIN_TESTS_SANITIZED_H
#define COXSWAIN_TESTS_SANITIZED_H

#include <stdbool.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* One thread: the thread sanitizer has nothing to look for. */
#ifdef __SANITIZE_THREAD__
#define SKIP_ONE_THREAD() cr_skip_test("one thread computes long under the thread sanitizer")
#else
#define SKIP_ONE_THREAD() ((void)0)
#endif

#endif
