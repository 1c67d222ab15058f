/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds what a trained model needs to know of its training files: the means and deviations that data.standardize has measured, whether
 * pixels were divided by 255, the names of a table's columns, their words, and the labels of its classes. These facts are kept with the trained
 * weights (trained_on.h), so that the model can be used on new examples when the training files are gone.
 */
#ifndef COXSWAIN_DATA_TRAINING_FACTS_H
#define COXSWAIN_DATA_TRAINING_FACTS_H

#include "common/json.h"
#include "worker/data/standardization.h"

/* More numbers, or longer lists of names, are not kept, so that they fit in a checkpoint's manifest. */
#define TRAINING_FACTS_NUMBERS_MAX 16384
#define TRAINING_FACTS_LIST_MAX ((size_t)256 << 10)

/* Zero-initialised; what is not known is zero. */
struct training_facts {
    struct standardization standardization;
    int input_scale; /* NPY: 255 if the values are divided by it, else 1; 0: not known */
    struct json
        *columns; /* CSV with a line of names: the names of the columns that are the model's inputs, in their order */
    struct json *classes; /* CSV: the labels, in the order of the classes; ImageFolder: the names of the folders */
    struct json *words;   /* CSV: the words of its columns (csv_columns_words); NULL: all are numbers */
    char *label;          /* CSV with a line of names: that of the label's column; owned */
};

void training_facts_release(struct training_facts *facts);

/* Appends a name to a list of facts, which is created if it is NULL. JSON can hold neither bytes that are not UTF-8 nor NUL: a name with
 * such bytes removes the whole list (*list is NULL then), and the result is false. */
bool training_facts_append(struct json **list, const char *text, size_t length);

/* Returns a copy of a name that JSON can hold, else NULL. */
char *training_facts_name(const char *text, size_t length);

/* Writes the facts as members of `object`. All are strings, such as "[5.8,3.1]", because the metadata of safetensors takes only these. */
void training_facts_write(const struct training_facts *facts, struct json *object);
/* Reads facts that training_facts_write has written. A fact that is missing or malformed stays zero. Release the result. */
void training_facts_read(struct training_facts *ret_facts, const struct json *object);

#endif
