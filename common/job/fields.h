/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the table of fields: one row for each field of a TrainingJob, a TrainingSweep and a job document (the part of a TrainingJob that
 * a worker gets). Everything else about fields is derived from the rows: the parser (field_read.h), the defaults (field_default.h), the
 * validation (field_check.h), the JSON that is written (field_write.h), the CustomResourceDefinitions and docs/api.md
 * (common/job/generate). A new field is one row in fields.c or sweep_fields.c and one member of a struct; a constraint between several
 * fields is a row in rules.c.
 */
#ifndef COXSWAIN_JOB_FIELDS_H
#define COXSWAIN_JOB_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/string_format.h"

enum field_kind {
    FIELD_STRING,       /* const char *                                                     */
    FIELD_INTEGER,      /* int64_t                                                          */
    FIELD_DECIMAL,      /* a number, or one in a string -> double                           */
    FIELD_BOOLEAN,      /* bool                                                             */
    FIELD_ENUM,         /* one of `words` -> its position, in an enum or a bool             */
    FIELD_TIME,         /* RFC 3339 -> int64_t milliseconds since 1970                      */
    FIELD_OBJECT,       /* of `type`, embedded by value; `companion`: bool, is it there     */
    FIELD_LIST,         /* of `type`; T * in the arena, or T[max] with FIELD_INLINE         */
    FIELD_STRING_LIST,  /* const char *[max], or const char ** in the arena with FIELD_APART */
    FIELD_INTEGER_LIST, /* int64_t[max], each element from `lowest` to `highest`            */
    FIELD_SCALAR_LIST,  /* numbers, strings and booleans -> const struct json *, the list   */
    FIELD_OPAQUE,       /* an object with members not in the table -> const struct json * */
    FIELD_VOLUME, /* as FIELD_OPAQUE, but wrapped in an object with the field's name -> const struct json * {name: {…}} */
};

enum field_flag {
    FIELD_REQUIRED = 1,
    FIELD_MUTABLE = 2, /* may change after creation; so may what is inside an object with FIELD_MUTABLE_INSIDE */
    FIELD_MUTABLE_INSIDE = 4,
    FIELD_ZERO = 8,                /* an integer that is 0 rather than FIELD_UNSET when absent */
    FIELD_INLINE = 16,             /* the list is an array in the struct itself */
    FIELD_OPEN = 32,               /* an enum that later releases may extend: the CRD accepts other words, too */
    FIELD_PRECISE = 64,            /* a time with fractions of a second */
    FIELD_APART = 256,             /* the list of strings is not in the struct itself */
    FIELD_MUTABLE_SUSPENDED = 128, /* may change while the job is suspended and has no pods */
};

/* The `offset` of fields that are not stored in a struct: they are only in the schema. */
#define NO_MEMBER SIZE_MAX

/* The longest decimal string, and the longest elements of lists of strings and of scalars. */
#define DECIMAL_TEXT_MAX 32
#define LIST_TEXT_MAX 63
#define SCALAR_TEXT_MAX 1024

struct object_type;

struct field {
    const char *name; /* in JSON */
    const char *description;
    enum field_kind kind;
    unsigned flags; /* enum field_flag */

    size_t offset;    /* of the member in the enclosing object's struct */
    size_t size;      /* of the member */
    size_t companion; /* lists: offset of the count (unsigned); objects: of a bool; else NO_MEMBER */

    int64_t min, max; /* integers: value; strings: characters; lists: elements */
    /* Decimals and elements of integer lists. `highest` of a list of strings: characters of an element; 0: LIST_TEXT_MAX. */
    double lowest, highest;
    bool above, below; /* the value must be above `lowest`, or below `highest` */

    enum string_format format;
    /* A check of a string, or of each element of a list of strings, that a CRD cannot express; NULL: none. Its message of ERROR_INVALID is
     * written after the text in quotes: "has no named group". */
    int (*check)(const char *text, struct error *error);
    const char *const *words;       /* enums */
    const struct object_type *type; /* objects and lists */
    const char *fallback;           /* static default as text ("{}" for objects), NULL: none */
    const char *const *only_for;    /* kinds of the object that it belongs to (belonging.h); NULL: all of them */
};

struct object_type {
    const char *title; /* heading in docs/api.md */
    const struct field *fields;
    unsigned field_count;
    size_t size;                    /* of its struct; for lists */
    const char *map_key;            /* the field that tells elements of a list apart, or NULL */
    const struct object_type *base; /* its fields belong to this object as well */
    size_t base_offset;             /* the member into which the base's fields are read */
    const char *kind_field; /* the field whose value is the kind of an object (belonging.h); NULL: there are no kinds */
    const char *unnamed;    /* in messages: the kind of an object without that field; in `only_for` it is "" */
};

/* The most characters of an element of a list of strings. */
static inline int64_t field_list_text_max(const struct field *field)
{
    return field->highest > 0 ? (int64_t)field->highest : LIST_TEXT_MAX;
}

extern const struct object_type training_job_spec_type;   /* of struct training_job */
extern const struct object_type training_job_status_type; /* of struct job_status */
extern const struct object_type job_document_type;        /* of struct job_document */
/* The section of our own worker, which the job document consists of, and the parts that rules are about. */
extern const struct object_type coxswain_type, training_type, model_type, program_type, layer_type_type, data_type,
    checkpoint_type, init_type, export_type, storage_type, download_source_type, workers_type, strategy_type,
    failure_rule_type, gang_type, foreign_progress_type, condition_type;
extern const struct object_type training_class_spec_type;   /* of no struct: training_class.h */
extern const struct object_type training_sweep_spec_type;   /* of struct training_sweep */
extern const struct object_type training_sweep_status_type; /* of struct sweep_status */
extern const struct object_type sweep_parameter_type, sweep_integers_type, sweep_range_type, sweep_log_range_type;

/* Each field of `object`, the base's first:
 *     for (struct field_cursor at = field_first(&type); at.field; field_next(&at)) */
struct field_cursor {
    const struct field *field;
    size_t shift; /* add to field->offset and field->companion */
    const struct object_type *object;
    unsigned left;
    const struct object_type *after;
};
struct field_cursor field_first(const struct object_type *object);
void field_next(struct field_cursor *cursor);
const struct field *field_find(const struct object_type *object, const char *name);
/* Returns the name of the field that a misspelt `name` probably means; NULL: none is similar. */
const char *field_nearest(const struct object_type *object, const char *name);

#endif
