/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a folder in a bucket, for programs that know only files: `coxswain-storage restore` fills the folder before they start, and
 * `coxswain-storage sync` uploads what they write, until SIGTERM. The object PREFIX/PATH is the file PATH of the folder.
 *
 * Only complete checkpoints are restored. sync_scan.h says when a unit, such as the folder of one checkpoint, may be uploaded. Units are
 * uploaded in the order in which they changed, one after the other, so a file such as `latest` follows what it names. Before files
 * of a folder are uploaded, the object PREFIX/.coxswain-sync/pending/UNIT is written; it lists the folders of these files. It is removed
 * when all of them are there and none has changed meanwhile; folders that an earlier process has begun, and of which this one has no file,
 * stay in it. Before the objects of a whole folder are removed, it is listed in the same way. A restore leaves out the files of the folders
 * that such an object lists. A single file needs none: its object is replaced as a whole.
 *
 * There is one writer for a prefix. Each claims it by an object PREFIX/.coxswain-sync/writers/NUMBER-NAME with a number above all others,
 * and looks before each unit, and before it declares one complete, whether there is a higher one. So a pod that a successor has replaced
 * stops uploading, and ends with an error. No conditional writes are needed.
 *
 * Objects are removed only with `delete_removed`, and only those whose files this process has seen in the folder before; they are removed
 * when everything that changed is uploaded.
 */
#ifndef COXSWAIN_STORAGE_SYNC_H
#define COXSWAIN_STORAGE_SYNC_H

#include "storage/fetch.h"

#define SYNC_OBJECTS ".coxswain-sync/"

/* Strings are borrowed. */
struct sync_options {
    const char *folder;
    const char *prefix;      /* without a slash at its end; "": the whole bucket */
    const char *checkpoints; /* path below the folder, or "": see sync_scan.h */
    const char *writer;      /* a name that only this pod has; NULL: a random one */
    int64_t settle_ms;
    unsigned connections;
    bool delete_removed;
};

struct sync_result {
    size_t files, removed; /* uploaded, and objects that were removed */
    int64_t bytes;         /* uploaded */
    size_t waiting;        /* units that are changing */
    /* The file that has kept a unit from settling for twenty settling times, until the next round; NULL: none. */
    const char *restless;
    const char *incomplete; /* one that lacks its last file, until the next round; NULL: none */
    bool superseded;        /* there is a newer writer: nothing is uploaded any more */
};

struct sync;

/* Claims the prefix. */
int sync_start(struct s3_client *client, const struct sync_options *options, struct sync **ret_sync,
               struct error *error);
void sync_free(struct sync *sync);

/* Uploads what is ready. ERROR_INVALID if a file cannot be read or the server refuses it; everything else is uploaded then. `final`: no
 * other program writes to the folder any more, so everything counts as settled. After an error the next round goes on where this one has
 * ended; ret_result is set in any case. */
int sync_round(struct sync *sync, bool final, struct sync_result *ret_result, struct error *error);

/* Fetches what is complete below the prefix, which may be nothing: what was there at one moment, even if it is written or removed
 * meanwhile. `request` has no paths. */
int sync_restore(struct s3_client *client, const struct fetch_request *request, struct fetch_result *ret_result,
                 struct error *error);

#endif
