/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates one document, a TrainingJob of v1alpha1 or a job of Kubeflow, into a TrainingJob of the current version, for `cox migrate`.
 * migration.c has what all kinds of documents share; migration_v1alpha1.c, migration_kubeflow.c and migration_train_job.c have the tables
 * that say where each field goes. Each field is removed from the document as it is translated. The fields that remain have no counterpart,
 * and a note for the user names each of them.
 */
#ifndef COXSWAIN_CLI_MIGRATION_H
#define COXSWAIN_CLI_MIGRATION_H

#include "common/job/training_job.h"

/* Translates a document. Returns false if it is not a job of v1alpha1 or of Kubeflow, or is a job of Kubeflow that cannot be
 * translated, which adds a note. Appends to the array `notes` an object {"field": path, "message": text} for each field that was left out,
 * and for each violation of the new job. */
bool migration_translate(const struct json *document, struct json **ret_job, struct json *notes);

/* Returns whether a document is a PyTorchJob, TFJob or JAXJob of kubeflow.org/v1. */
bool migration_is_kubeflow(const struct json *document);
/* Returns whether a document is a TrainJob of trainer.kubeflow.org/v1alpha1 whose runtime is for a framework of TrainingJobs. */
bool migration_is_train_job(const struct json *document);

/* ---------------------------------------------------------------- for the translations of each kind */

struct migration {
    struct json *old;    /* the document, without what has been translated */
    struct json *job;    /* the new job */
    const char *section; /* of its spec: "pytorch" */
    struct json *notes;
};

/* The notes for a field that no table has, and for a value of the wrong type. */
#define MIGRATION_NO_FIELD "a TrainingJob has no such field"
#define MIGRATION_WRONG "it has the wrong type"

/* Says where in the new job a field of the document is put. */
struct migration_row {
    const char *from;     /* path in the document */
    const char *to;       /* path in the new job, "*" is its section; NULL: nowhere */
    const char *instead;  /* without `to`: why, and what to use */
    const char *harmless; /* nothing is lost with this value, which goes nowhere; NULL: there is none */
};
#define MOVED_UNLESS(harmless, from, to)                                                                               \
    {                                                                                                                  \
        from, to, NULL, harmless                                                                                       \
    }
#define MOVED(from, to) MOVED_UNLESS(NULL, from, to)
#define SAME(path) MOVED(path, path)
#define GONE(from, instead, harmless)                                                                                  \
    {                                                                                                                  \
        from, NULL, instead, harmless                                                                                  \
    }
#define ROWS_END MOVED(NULL, NULL)

/* Translates all fields that the table `rows` has. If several rows name a field, the first one is used. */
void migration_apply(struct migration *migration, const struct migration_row *rows);

/* Removes the value at `path` from the document and returns it; NULL: it is absent or null. The caller owns it. */
struct json *migration_take(struct migration *migration, const char *path);
/* Takes the list at `path`, as migration_take. A value of another type is left out, with a note, and the result is NULL. */
struct json *migration_take_list(struct migration *migration, const char *path);
/* Returns the element of a list whose name is `name`; NULL: there is none. */
struct json *migration_find(const struct json *list, const char *name);
/* Puts `value`, of which it takes ownership, at the path `to` of the new job; if an object is there already, merges `value` into it. Enum
 * words get the spelling of this version. Members that a TrainingJob does not have are left out, with a note that names them below
 * `from`. */
void migration_put(struct migration *migration, const char *to, struct json *value, const char *from);
/* Adds a note "left out: `instead`", where `instead` says why, or what to use. `path` is the place of `value` in the document. For an
 * object, adds a note for each scalar and each list in it, at any depth, with its own path. Nulls get no note. Removes nothing from the
 * document. */
void migration_leave_out(struct migration *migration, const struct json *value, const char *path, const char *instead);
void migration_note(struct migration *migration, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void migration_from_v1alpha1(struct migration *migration);
void migration_from_kubeflow(struct migration *migration, const struct json *document);
void migration_from_train_job(struct migration *migration, const struct json *document);

#endif
