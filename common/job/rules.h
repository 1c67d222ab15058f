/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the table of rules: the constraints that involve several fields of a TrainingJob, TrainingSweep or job document. Each row of the
 * table (rules.c) has the rule's name, the type of object, a CEL expression for the CRD, the message, the field to blame, and a C function.
 * Kubernetes' API server evaluates the CEL; the operator, the worker, `cox` and the embedded control plane call the C function. Both must
 * give the same verdict. A rule without CEL is checked by the C function only.
 */
#ifndef COXSWAIN_JOB_RULES_H
#define COXSWAIN_JOB_RULES_H

#include "common/job/fields.h"
#include "common/json.h"

struct rule {
    const char *name;
    const struct object_type *about; /* the type of `self` */
    const char *cel;                 /* over self (and oldSelf); NULL: only the C function checks */
    const char *field;               /* path in the object; NULL: the object itself */
    const char *message;
    bool on_update; /* compares with the object before the update */
    /* The rule is about a job's spec and applies to job documents, too. A document has the members of spec.coxswain at its top level. */
    bool in_documents;
    bool (*holds)(const struct json *self, const struct json *old_self);
};

/* Ends with a rule without name. */
extern const struct rule rules[];

/* A job's name is part of labels and host names: <job>-evaluator-<index>-<incarnation> must fit in 63 characters. */
#define JOB_NAME_MAX 40
#define JOB_NAME_MESSAGE                                                                                               \
    "the name must be at most 40 lower-case letters, digits and '-', begin with a letter and end with a letter or "    \
    "digit"
bool job_name_holds(const char *name);

#endif
