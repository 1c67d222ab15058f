/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the runs of `cox run` and `cox demo` on this machine: state directories (common/contract/state_directory.h) below one folder, by
 * default ~/.local/state/coxswain. A directory that is damaged, or not one of ours, is an entry that says so, and does not hide the others.
 */
#ifndef COXSWAIN_CLI_RUN_LIST_H
#define COXSWAIN_CLI_RUN_LIST_H

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "operator/cli/manifest.h"
#include "operator/cli/run_record.h"

/* The folder of `cox demo` below that of all runs: its runs, and the text that it trains on. */
#define RUN_DEMO_FOLDER "demo"

struct run_entry {
    char *directory; /* absolute */
    char *label;     /* by which commands name it: the job's name, or, where several have that, the directory's */
    struct run_record record; /* its state takes into account whether the directory is in use */
    bool in_use;              /* a control plane uses it: that of a running `cox run`, or of a `cox ui` that shows it */
    bool goes_on;             /* its `cox run` has not ended: it is Running, or Suspended for now */
    char *trouble;            /* why there is no record; NULL: there is one */
    bool is_same;             /* run_list_read_again: the record is the one that was read before */
    /* How run_list_read_again recognises that: the file of the record, and the state in it. */
    ino_t file;
    struct timespec file_time;
    enum run_state state_in_file;
};

/* By name of their directories. Zero it first; release with run_list_release. */
struct run_list {
    struct run_entry *entries;
    size_t count;
};

/* Returns ${XDG_STATE_HOME:-~/.local/state}/coxswain; free it with free(). */
char *run_list_folder(void);
/* Returns the state directory in it of a job that is run without --state; free it with free(). */
char *run_list_directory_of(const struct manifest *manifest);

/* `folder`: a state directory, or a folder of them; NULL: run_list_folder. A default folder that does not exist has no runs. */
int run_list_read(const char *folder, struct run_list *list, struct error *error);
/* Reads the list of the default folder again. Records are read only from files that are new or have changed. After a failure the list is
 * as it was. */
int run_list_read_again(struct run_list *list, struct error *error);
void run_list_release(struct run_list *list);

/* Returns the run with that label, job's name, or path of a state directory (also its last parts, such as default-digits). ERROR_NOT_FOUND
 * suggests another name; ERROR_INVALID if several have it. The list owns the result. */
int run_list_find(const struct run_list *list, const char *word, const struct run_entry **ret_entry,
                  struct error *error);

/* Returns the state directory that the word names: the word is the path of a state directory or the name of a run. A folder of that name
 * that is not a state directory is ignored. Free it with free(). NULL: no run has this name (ERROR_NOT_FOUND), or several have it. */
char *run_directory(const char *word, struct error *error);
/* Returns the state directory that the value of --state names, as run_directory does; but a word with a slash, which is a path, is returned
 * as it is, even if there is no such directory yet. Free it with free(). */
char *run_state_directory(const char *word, struct error *error);

/* Returns the name of the sweep to which a trial with this name would belong; free it with free(). NULL: it is not the name of a trial. */
char *run_sweep_of_trial(const char *name);

/* Returns the word that names a state directory: its label in the default folder, otherwise its path. Free it with free(). */
char *run_list_word(const char *directory);

/* Returns the label of a run in the list that was given a directory of `entry` by --volume, or NULL: deleting `entry` would delete its
 * files. Free it with free(). */
char *run_list_user_of(const struct run_list *list, const struct run_entry *entry);

#endif
