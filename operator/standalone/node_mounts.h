/* SPDX-License-Identifier: Apache-2.0
 *
 * What a container sees as its file system: this machine's own root, and on it
 * the pod's mounts, wherever their paths lie, without touching the machine. The
 * new root is a tmpfs with one bind mount for each entry of "/"; where a mount path
 * does not exist below a directory of the machine, that directory becomes a tmpfs
 * with bind mounts of its entries as well, which is then free to be added to.
 * /dev keeps only what containers have.
 *
 * A plan is a list of steps, worked out beforehand; applying it allocates nothing.
 */
#ifndef COXSWAIN_STANDALONE_NODE_MOUNTS_H
#define COXSWAIN_STANDALONE_NODE_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum mount_step_kind {
    MOUNT_TMPFS,     /* on target */
    MOUNT_BIND,      /* source on target, with what is mounted below it */
    MOUNT_READ_ONLY, /* target */
    MOUNT_PROC,      /* on target; kept as it is where the kernel refuses */
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
    const char *path;   /* absolute, where the container sees it */
    bool read_only;
};

/* Looks at the machine's directories. ERROR_INVALID for a path that is not absolute, is "/" or holds "..". */
int mount_plan_make(const char *root, const struct mount_point *points, size_t point_count, struct mount_plan *ret_plan,
                    struct error *error);
void mount_plan_release(struct mount_plan *plan);

/* In a fresh mount namespace: does the steps and makes the plan's root the root. -1 with errno set and the name of what
 * failed in `ret_failed`. Makes system calls only. */
int mount_plan_apply(const struct mount_plan *plan, const char **ret_failed);

#endif
