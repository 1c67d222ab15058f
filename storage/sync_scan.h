/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks through a folder that is kept in a bucket (sync.h), and decides what may be uploaded now.
 *
 * A unit is what has to be complete before any other program may use it: an entry directly below the folder of the checkpoints, or, for
 * files elsewhere, the first part of their path that is not also part of that folder's path. A unit is a file, or a folder with all files
 * below it. It is ready when none of its files has changed for the settling time, and when it has the file with which its writer marks it
 * as complete, if it is of a kind that has one: a folder with *.distcp needs .metadata (torch.distributed.checkpoint), and a folder
 * checkpoint-… with training_args.bin needs trainer_state.json (the Trainer of Hugging Face).
 *
 * Left out are the folder .coxswain-sync, symbolic links, special files, names with control characters, and everything whose name, or a
 * folder of whose path, is that of something unfinished: .partial-…, tmp-…, ….tmp, and names with ".orbax-checkpoint-tmp" or ".incomplete".
 * Orbax gives a checkpoint its name when it is complete.
 *
 * Logs (….log and names with ".tfevents.") grow all the time. They neither keep a unit from settling nor make it incomplete.
 */
#ifndef COXSWAIN_STORAGE_SYNC_SCAN_H
#define COXSWAIN_STORAGE_SYNC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SYNC_FILES_MAX ((size_t)1000000)

struct sync_file {
    char *path;         /* below the folder */
    size_t unit_length; /* of the part of the path that is its unit's; all of it if the file is a unit */
    int64_t size, modified_ns, changed_ns;
    int64_t waits_since_ns; /* for sync.c: of the first file of a unit, since when it has been changing */
    bool is_log;
    bool stored; /* for sync.c: the bucket has this version of the file */
    bool open;   /* for sync.c: it was uploaded, and its unit is not yet complete */
};

enum sync_state {
    SYNC_READY,
    SYNC_CHANGING,   /* a file has changed within the settling time */
    SYNC_INCOMPLETE, /* the file that marks it as complete is missing */
};

struct sync_unit {
    size_t first, count; /* of its files */
    bool is_folder;
    int64_t changed_ns; /* when one of its files changed last, logs apart; 0: it has only logs */
    enum sync_state state;
};

struct sync_scan {
    struct sync_file *files; /* in the order of their paths */
    struct sync_unit *
        units; /* in the order in which they changed, the oldest first; what was last, such as a file `latest`, comes last */
    size_t file_count, unit_count;
    char *unreadable; /* a folder that cannot be read, so that files are missing; NULL: none */
};

/* `checkpoints` is a path below the folder, or "". A settling time of 0 makes every unit settled, as when nobody writes any more.
 * ERROR_TOO_LARGE for more files than SYNC_FILES_MAX. Release with sync_scan_release also after an error. */
int sync_scan(const char *folder, const char *checkpoints, int64_t now_ns, int64_t settle_ns,
              struct sync_scan *ret_scan, struct error *error);
void sync_scan_release(struct sync_scan *scan);

/* NULL if there is none. */
struct sync_file *sync_scan_find(const struct sync_scan *scan, const char *path);

/* The file of the unit that changed last, logs apart. */
const struct sync_file *sync_scan_newest(const struct sync_scan *scan, const struct sync_unit *unit);
/* Whether a file other than a log is directly in this folder, whose path is not "". */
bool sync_scan_has_folder(const struct sync_scan *scan, const char *folder);
bool sync_scan_is_log(const char *path);

/* Fills in the files of a unit in the order in which they have to be uploaded: as they were written, and files that mark a checkpoint as
 * complete last. `ret_files` has place for unit->count. */
void sync_scan_order(const struct sync_scan *scan, const struct sync_unit *unit, struct sync_file **ret_files);

#endif
