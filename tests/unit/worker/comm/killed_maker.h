/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory whose maker is killed while the memory still has a name.
 */
#ifndef COXSWAIN_TESTS_KILLED_MAKER_H
#define COXSWAIN_TESTS_KILLED_MAKER_H

#include <stdbool.h>

#include "worker/comm/shared_file.h"

/* `make`, in a process of its own, gives it a name; `sweep` must leave it alone as long as that process lives, and remove it after. */
void killed_maker_expect_swept(bool (*make)(char path[SHARED_FILE_PATH_MAX]), void (*sweep)(void));

#endif
