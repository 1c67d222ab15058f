/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines macros for the rows of the table of fields (fields.h). A row describes one field of a TrainingJob or TrainingSweep: its name,
 * kind, limits, flags, description, and the member of a C struct that stores it. The parser, the validation, the CRDs and docs/api.md all
 * follow from it. Only the files that hold a part of the table include this header: fields.c for the TrainingJob, sweep_fields.c for the
 * TrainingSweep.
 */
#ifndef COXSWAIN_JOB_FIELD_TABLE_H
#define COXSWAIN_JOB_FIELD_TABLE_H

#include "common/job/fields.h"

#define NAME_MAX_LENGTH 63
#define TEXT_MAX_LENGTH 1024

/* The member of `struct owner` that stores the value. */
#define MEMBER(owner, member) .offset = offsetof(struct owner, member), .size = sizeof(((struct owner *)0)->member)
/* The member that stores a list's number of elements (unsigned), or whether an object is present (bool). */
#define COMPANION(owner, member) .companion = offsetof(struct owner, member)
/* The field has no companion. */
#define LONE .companion = NO_MEMBER
/* No member stores the value: the field is in the CRD only. */
#define SCHEMA_ONLY .offset = NO_MEMBER, .companion = NO_MEMBER
/* Least and greatest value of an integer, number of characters of a string, number of elements of a list. */
#define RANGE(lowest_value, highest_value) .min = (lowest_value), .max = (highest_value)
/* Least and greatest value of a decimal, or of the elements of a list of integers; for a list of strings, the second is the greatest
 * number of characters of an element. */
#define BETWEEN(lowest_value, highest_value) .lowest = (lowest_value), .highest = (highest_value)
#define ONLY_FOR(...)                                                                                                  \
    .only_for = (const char *const[])                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }
#define FORMAT(format_name) .format = STRING_FORMAT_##format_name

#define OBJECT_TYPE(variable, heading, table, ...)                                                                     \
    const struct object_type variable = {                                                                              \
        .title = heading, .fields = table, .field_count = sizeof table / sizeof *table, __VA_ARGS__}

#define COUNTER(field_name, owner, member, words_about_it)                                                             \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_INTEGER, MEMBER(owner, member), LONE, .flags = FIELD_ZERO,                   \
        RANGE(0, INT64_MAX), .description = words_about_it                                                             \
    }
#define NUMBER(field_name, owner, member, words_about_it)                                                              \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_INTEGER, MEMBER(owner, member), LONE, RANGE(0, INT64_MAX),                   \
        .description = words_about_it                                                                                  \
    }
#define TEXT(field_name, owner, member, longest, words_about_it)                                                       \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_STRING, MEMBER(owner, member), LONE, RANGE(0, longest),                      \
        .description = words_about_it                                                                                  \
    }
#define TIME(field_name, owner, member, words_about_it)                                                                \
    {                                                                                                                  \
        .name = field_name, .kind = FIELD_TIME, MEMBER(owner, member), LONE, .description = words_about_it             \
    }

#endif
