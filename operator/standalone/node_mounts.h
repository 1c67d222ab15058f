/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the file system of a container: the machine's own root with the pod's
 * volumes mounted on it. The machine itself is not changed. The new root is a tmpfs
 * with one bind mount for each entry of "/". Where a mount path does not exist in a
 * directory of the machine, that directory is replaced by a tmpfs with bind mounts of
 * its entries, in which the path can be made. /dev has only the devices that
 * containers have.
 *
 * A plan is a list of steps that is made before the fork; applying it allocates
 * nothing.
 */
#ifndef COXSWAIN_STANDALONE_NODE_MOUNTS_H
#define COXSWAIN_STANDALONE_NODE_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum mount_step_kind {
    MOUNT_TMPFS,     /* on target */
    MOUNT_BIND,      /* source on target, recursively */
    MOUNT_READ_ONLY, /* target */
    MOUNT_PROC,      /* on target; not an error where the kernel refuses it */
    MAKE_DIRECTORY,
    MAKE_FILE,
    MAKE_SYMLINK, /* target -> source */
};

struct mount_step {
    enum mount_step_kind kind;
    char *source;
    char *target; /* below the plan's root */
};

struct mount_plan {
    char *root; /* an empty directory of the machine */
    struct mount_step *steps;
    size_t step_count;
};

struct mount_point {
    const char *source; /* a directory or file of the machine */
    const char *path;   /* absolute path in the container */
    bool read_only;
};

/* Makes a plan, for which it reads the machine's directories. ERROR_INVALID for a path that is not
 * absolute, is "/" or holds "..". */
int mount_plan_make(const char *root, const struct mount_point *points, size_t point_count, struct mount_plan *ret_plan,
                    struct error *error);
void mount_plan_release(struct mount_plan *plan);

/* Does the steps in a new mount namespace and makes the plan's root the root directory. On failure
 * returns -1 with errno set, and the failed step or path in `ret_failed`. Makes system calls only.
 * */
int mount_plan_apply(const struct mount_plan *plan, const char **ret_failed);

#endif
