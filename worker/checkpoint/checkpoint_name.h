/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats and parses the name of a checkpoint's directory, such as step-00001200.attempt-1.incarnation-5. The
 * attempt counts how often the whole job has started; the incarnation rises with each process that leads the
 * job (its chief), so that two chiefs never write the same name.
 */
#ifndef COXSWAIN_CHECKPOINT_NAME_H
#define COXSWAIN_CHECKPOINT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define CHECKPOINT_NAME_MAX 96

struct checkpoint_name {
    int64_t step, attempt;
    int64_t incarnation; /* of the chief that wrote it, in the directory's numbering (incarnation_record.h) */
};

void checkpoint_name_format(const struct checkpoint_name *name, char text[CHECKPOINT_NAME_MAX]);
int checkpoint_name_parse(const char *text, struct checkpoint_name *ret_name); /* -1: not a checkpoint's name */
/* Whether `text` is the name of a checkpoint of format 1, which called the incarnation epoch. */
bool checkpoint_name_is_former(const char *text);
bool checkpoint_name_equal(const struct checkpoint_name *a, const struct checkpoint_name *b);

#endif
