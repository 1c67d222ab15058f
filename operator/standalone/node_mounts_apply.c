/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs in a supervisor, between clone and exec: system calls only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "operator/standalone/node_mounts.h"

static int make_file(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    return file < 0 ? -1 : close(file);
}

/* struct mount_attr and MOUNT_ATTR_RDONLY of <linux/mount.h>, which does not go together with <sys/mount.h> in every glibc. */
struct mount_attributes {
    uint64_t set, clear, propagation, user_namespace;
};
#define ATTRIBUTE_READ_ONLY 1

/* mount(2)'s remount would have to repeat flags that a user namespace may not drop; this changes one. */
static int make_read_only(const char *path)
{
    struct mount_attributes attributes = {.set = ATTRIBUTE_READ_ONLY};
    return (int)syscall(SYS_mount_setattr, AT_FDCWD, path, (unsigned)AT_RECURSIVE, &attributes, sizeof attributes);
}

static int step_apply(const struct mount_step *step)
{
    switch (step->kind) {
    case MOUNT_TMPFS:
        return mount("tmpfs", step->target, "tmpfs", MS_NOSUID, "mode=0755");
    case MOUNT_BIND:
        return mount(step->source, step->target, NULL, MS_BIND | MS_REC, NULL);
    case MOUNT_READ_ONLY:
        return make_read_only(step->target);
    case MOUNT_PROC:
        (void)!mount("proc", step->target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        return 0;
    case MAKE_DIRECTORY:
        return mkdir(step->target, 0755) < 0 && errno != EEXIST ? -1 : 0;
    case MAKE_FILE:
        return make_file(step->target);
    case MAKE_SYMLINK:
        return symlink(step->source, step->target) < 0 && errno != EEXIST ? -1 : 0;
    }
    errno = EINVAL;
    return -1;
}

int mount_plan_apply(const struct mount_plan *plan, const char **ret_failed)
{
    *ret_failed = "/";
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -1;
    for (size_t i = 0; i < plan->step_count; i++) {
        *ret_failed = plan->steps[i].target;
        if (step_apply(&plan->steps[i]) < 0)
            return -1;
        /* So that binding the directory that holds it does not drag the new root along. */
        if (i == 0 && mount(NULL, plan->root, NULL, MS_UNBINDABLE, NULL) < 0)
            return -1;
    }
    *ret_failed = plan->root;
    if (chdir(plan->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return -1;
    return umount2(".", MNT_DETACH) < 0 ? -1 : chdir("/");
}
