/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds what the training files have told about the meaning of numbers: means and deviations (data.standardize), the names of a table's
 * columns, and the labels of its classes. It is kept with trained weights (trained_on.h), so that new examples can be given to the model
 * without the training files.
 */
#ifndef COXSWAIN_DATA_TRAINING_FACTS_H
#define COXSWAIN_DATA_TRAINING_FACTS_H

#include "common/json.h"
#include "worker/data/standardization.h"

/* More numbers, or longer lists, are not kept: a manifest has to hold them. */
#define TRAINING_FACTS_NUMBERS_MAX 16384
#define TRAINING_FACTS_LIST_MAX ((size_t)256 << 10)

/* Zero-initialised; what is not known is zero. */
struct training_facts {
    struct standardization standardization;
    int input_scale;      /* NPY: 255 if the values are divided by it, else 1; 0: not known */
    struct json *columns; /* CSV with a line of names: those of the model's inputs, in their order */
    struct json *classes; /* CSV: the labels, in the order of the classes */
};

void training_facts_release(struct training_facts *facts);

/* Appends a text to a list, which it makes if it is NULL. What JSON cannot hold as it is, bytes that are not UTF-8 and NUL, makes the whole
 * list unknown: false. */
bool training_facts_append(struct json **list, const char *text, size_t length);

/* Sets members of `object` that are strings of JSON, such as "[5.8,3.1]", for the metadata of safetensors, too. */
void training_facts_write(const struct training_facts *facts, struct json *object);
/* Takes what is well-formed; the rest stays unknown. */
void training_facts_read(struct training_facts *ret_facts, const struct json *object);

#endif
