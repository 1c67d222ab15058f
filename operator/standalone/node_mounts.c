/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_mounts.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"

DEFINE_SCOPE_FREE(DIR *, closedir)

/* A plan in the making: which directories of the container lie on a tmpfs of its own. */
struct planner {
    struct mount_plan *plan;
    char **own;
    size_t own_count;
};

static void step_add(struct mount_plan *plan, enum mount_step_kind kind, const char *source, const char *path)
{
    plan->steps = memory_resize(plan->steps, plan->step_count + 1, sizeof *plan->steps);
    plan->steps[plan->step_count++] = (struct mount_step){
        .kind = kind, .source = memory_copy_string(source), .target = memory_format("%s%s", plan->root, path)};
}

static bool is_own(const struct planner *planner, const char *path)
{
    for (size_t i = 0; i < planner->own_count; i++) {
        if (strcmp(planner->own[i], path) == 0)
            return true;
    }
    return false;
}

static void own_add(struct planner *planner, const char *path)
{
    planner->own = memory_resize(planner->own, planner->own_count + 1, sizeof *planner->own);
    planner->own[planner->own_count++] = memory_copy_string(path);
}

/* The machine's /dev without consoles, disks and loops. */
static bool is_container_device(const char *name)
{
    static const char *const wanted[] = {"null",   "zero",  "full", "random", "urandom", "tty", "ptmx", "pts",  "shm",
                                         "mqueue", "stdin", "fd",   "stdout", "stderr",  "dri", "kfd",  "fuse", "core"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (strcmp(name, wanted[i]) == 0)
            return true;
    }
    return strncmp(name, "nvidia", strlen("nvidia")) == 0;
}

static void mirror_entry(struct planner *planner, const char *path)
{
    struct stat about;
    char target[PATH_MAX];
    if (lstat(path, &about) < 0)
        return;
    if (S_ISLNK(about.st_mode)) {
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            return;
        target[length] = '\0';
        step_add(planner->plan, MAKE_SYMLINK, target, path);
        return;
    }
    step_add(planner->plan, S_ISDIR(about.st_mode) ? MAKE_DIRECTORY : MAKE_FILE, NULL, path);
    step_add(planner->plan, MOUNT_BIND, path, path);
}

/* Makes `directory` ("" is the root) a tmpfs that shows what the machine's shows. */
static void mirror(struct planner *planner, const char *directory)
{
    if (is_own(planner, directory))
        return;
    own_add(planner, directory);
    step_add(planner->plan, MOUNT_TMPFS, NULL, directory);
    SCOPED(closedir_scope) DIR *entries = opendir(*directory ? directory : "/");
    if (!entries)
        return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (strcmp(directory, "/dev") == 0 && !is_container_device(entry->d_name))
            continue;
        SCOPED_FREE char *path = memory_format("%s/%s", directory, entry->d_name);
        mirror_entry(planner, path);
    }
}

/* Where a path really lies on the machine: links in the part that exists are followed. */
static char *resolve_existing(const char *path)
{
    char resolved[PATH_MAX];
    SCOPED_FREE char *head = memory_copy_string(path);
    size_t length = strlen(head);
    while (length > 1 && head[length - 1] == '/')
        head[--length] = '\0';
    SCOPED_FREE char *whole = memory_copy_string(head);
    while (length > 0 && !realpath(head, resolved)) {
        while (length > 0 && head[length - 1] != '/')
            length--;
        while (length > 0 && head[length - 1] == '/')
            length--;
        head[length] = '\0';
    }
    if (length == 0)
        return memory_copy_string(whole);
    return memory_format("%s%s", strcmp(resolved, "/") == 0 ? "" : resolved, whole + length);
}

/* The length of the longest part of `path` that the machine has; 0 is the root. */
static size_t existing_prefix(const char *path)
{
    size_t best = 0;
    for (size_t i = 1; path[i - 1]; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        SCOPED_FREE char *head = memory_copy_bytes(path, i);
        struct stat about;
        if (lstat(head, &about) < 0)
            return best;
        best = i;
        if (!path[i])
            return best;
    }
    return best;
}

static void make_missing(struct planner *planner, const char *path, bool is_directory)
{
    size_t length = strlen(path);
    for (size_t i = existing_prefix(path) + 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        SCOPED_FREE char *head = memory_copy_bytes(path, i);
        if (is_own(planner, head))
            continue;
        bool last = i == length;
        step_add(planner->plan, last && !is_directory ? MAKE_FILE : MAKE_DIRECTORY, NULL, head);
        if (!last || is_directory)
            own_add(planner, head);
    }
}

static int point_check(const struct mount_point *point, struct error *error)
{
    if (point->path[0] != '/' || strspn(point->path, "/") == strlen(point->path))
        return error_set(error, ERROR_INVALID, "mount path \"%s\": write an absolute path below \"/\"", point->path);
    if (strstr(point->path, "/../") || strstr(point->path, "/./") || strstr(point->path, "//"))
        return error_set(error, ERROR_INVALID, "mount path \"%s\": write it without \".\", \"..\" and \"//\"",
                         point->path);
    return 0;
}

/* A point with its path resolved, and the directory of the machine that has to be mirrored for it. */
struct placed_point {
    const struct mount_point *point;
    char *path;
    size_t mirrored; /* length of that part of the path */
    bool is_directory;
};

static int by_mirrored(const void *left, const void *right)
{
    const struct placed_point *a = left, *b = right;
    return a->mirrored < b->mirrored ? -1 : a->mirrored > b->mirrored;
}

static int by_length(const void *left, const void *right)
{
    const struct placed_point *a = left, *b = right;
    size_t a_length = strlen(a->path), b_length = strlen(b->path);
    return a_length < b_length ? -1 : a_length > b_length;
}

static void place(struct planner *planner, struct placed_point *placed, size_t count)
{
    qsort(placed, count, sizeof *placed, by_mirrored);
    for (size_t i = 0; i < count; i++) {
        if (placed[i].path[placed[i].mirrored] == '\0')
            continue;
        SCOPED_FREE char *directory = memory_copy_bytes(placed[i].path, placed[i].mirrored);
        mirror(planner, directory);
    }
    qsort(placed, count, sizeof *placed, by_length);
    for (size_t i = 0; i < count; i++)
        make_missing(planner, placed[i].path, placed[i].is_directory);
    for (size_t i = 0; i < count; i++) {
        step_add(planner->plan, MOUNT_BIND, placed[i].point->source, placed[i].path);
        if (placed[i].point->read_only)
            step_add(planner->plan, MOUNT_READ_ONLY, NULL, placed[i].path);
    }
}

int mount_plan_make(const char *root, const struct mount_point *points, size_t point_count, struct mount_plan *ret_plan,
                    struct error *error)
{
    for (size_t i = 0; i < point_count; i++) {
        if (point_check(&points[i], error) < 0)
            return -1;
    }
    struct mount_plan plan = {.root = memory_copy_string(root)};
    struct planner planner = {.plan = &plan};
    struct placed_point *placed = memory_allocate(point_count + 1, sizeof *placed);
    for (size_t i = 0; i < point_count; i++) {
        struct stat about;
        placed[i].point = &points[i];
        placed[i].path = resolve_existing(points[i].path);
        placed[i].mirrored = existing_prefix(placed[i].path);
        placed[i].is_directory = stat(points[i].source, &about) < 0 || S_ISDIR(about.st_mode);
    }
    mirror(&planner, "");
    place(&planner, placed, point_count);
    step_add(&plan, MOUNT_PROC, NULL, "/proc");
    for (size_t i = 0; i < point_count; i++)
        free(placed[i].path);
    free(placed);
    for (size_t i = 0; i < planner.own_count; i++)
        free(planner.own[i]);
    free(planner.own);
    *ret_plan = plan;
    return 0;
}

void mount_plan_release(struct mount_plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        free(plan->steps[i].source);
        free(plan->steps[i].target);
    }
    free(plan->steps);
    free(plan->root);
    *plan = (struct mount_plan){.root = NULL};
}
