/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/mapped_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/lock.h"
#include "common/memory.h"

/* The entries are in a static table, so that the signal handler finds them without a lock. */
struct mapped_file {
    _Atomic(uintptr_t) begin, end; /* of the mapping, whole pages; 0 and 0: the entry is free */
    atomic_bool lost;              /* bytes that are missing were read, or the file was seen to be shorter */
    _Atomic uint64_t round;        /* in which the size was last looked up */
    size_t length;
    char *path;
    dev_t device;
    ino_t inode;
};

static struct mapped_file files[MAPPED_FILES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint used; /* entries that were ever taken have lower indices */
static struct sigaction before;
static uintptr_t page_bytes;
static _Atomic uint64_t last_round;

/* ---------------------------------------------------------------- the signal */

static struct mapped_file *find(uintptr_t address)
{
    unsigned count = atomic_load(&used);
    for (unsigned i = 0; i < count; i++)
        if (address >= atomic_load(&files[i].begin) && address < atomic_load(&files[i].end))
            return &files[i];
    return NULL;
}

/* Maps zeros from the failing page to the end. The instruction that failed runs again when the handler returns. */
static bool blank(struct mapped_file *file, uintptr_t address)
{
    uintptr_t from = address / page_bytes * page_bytes;
    atomic_store(&file->lost, true);
    return mmap((void *)from, atomic_load(&file->end) - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

static void on_bus_error(int number, siginfo_t *information, void *context)
{
    (void)context;
    int saved = errno;
    uintptr_t address = (uintptr_t)information->si_addr;
    struct mapped_file *file = find(address);
    if (file == NULL || !blank(file, address))
        sigaction(number, &before, NULL); /* not ours: the signal comes again, to the handler before */
    errno = saved;
}

static void take_signal(void)
{
    static bool taken;
    if (taken)
        return;
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, &before);
    taken = true;
}

/* ---------------------------------------------------------------- files */

static struct mapped_file *free_place(void)
{
    unsigned count = atomic_load(&used);
    for (unsigned i = 0; i < count; i++)
        if (files[i].path == NULL)
            return &files[i];
    if (count == MAPPED_FILES_MAX)
        return NULL;
    atomic_store(&used, count + 1);
    return &files[count];
}

static int open_locked(int descriptor, const char *path, struct mapped_file **ret_file, struct error *error)
{
    struct stat status;
    take_signal();
    struct mapped_file *file = free_place();
    if (file == NULL)
        return error_set(error, ERROR_TOO_LARGE,
                         "%s: a process can map at most %d files at a time; put the data into fewer files", path,
                         MAPPED_FILES_MAX);
    if (fstat(descriptor, &status) < 0)
        return error_set_errno(error, "cannot read the size of %s", path);
    size_t length = (size_t)status.st_size;
    void *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, "cannot map %zu bytes", length);
    file->length = length;
    file->path = memory_copy_string(path);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    atomic_store(&file->lost, false);
    atomic_store(&file->end, (uintptr_t)bytes + (length + page_bytes - 1) / page_bytes * page_bytes);
    atomic_store(&file->begin, (uintptr_t)bytes);
    *ret_file = file;
    return 0;
}

int mapped_file_open(int descriptor, const char *path, struct mapped_file **ret_file, struct error *error)
{
    SCOPED_LOCK(&lock);
    return open_locked(descriptor, path, ret_file, error);
}

void mapped_file_close(struct mapped_file *file)
{
    if (file == NULL)
        return;
    SCOPED_LOCK(&lock);
    munmap((void *)atomic_load(&file->begin), file->length);
    atomic_store(&file->end, 0);
    atomic_store(&file->begin, 0);
    free(file->path);
    file->path = NULL;
}

const uint8_t *mapped_file_bytes(const struct mapped_file *file)
{
    return (const uint8_t *)atomic_load(&file->begin);
}

size_t mapped_file_length(const struct mapped_file *file)
{
    return file->length;
}

/* Missing bytes of the last page read as zeros without a signal, so the size has to be compared. If another file has the name now,
 * the mapped one is unharmed. */
static void check_size(struct mapped_file *file)
{
    struct stat status;
    if (stat(file->path, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode &&
        (size_t)status.st_size < file->length)
        atomic_store(&file->lost, true);
}

int mapped_file_check(struct mapped_file *file, uint64_t round, struct error *error)
{
    if (atomic_exchange(&file->round, round) != round)
        check_size(file);
    if (!atomic_load(&file->lost))
        return 0;
    return error_set(error, ERROR_NOT_FOUND,
                     "%s no longer has the %zu bytes that it had when it was opened, or its storage fails; restore the "
                     "whole file, and replace such files by renaming a new one over them, not by writing into them",
                     file->path, file->length);
}

uint64_t mapped_file_round(void)
{
    return atomic_fetch_add(&last_round, 1) + 1;
}
