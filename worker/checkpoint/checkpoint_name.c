/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/checkpoint_name.h"

#include <stdio.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"

void checkpoint_name_format(const struct checkpoint_name *name, char text[CHECKPOINT_NAME_MAX])
{
    snprintf(text, CHECKPOINT_NAME_MAX, CHECKPOINT_DIRECTORY_FORMAT, (long long)name->step, (long long)name->attempt,
             (long long)name->incarnation);
}

int checkpoint_name_parse(const char *text, struct checkpoint_name *ret_name)
{
    long long step, attempt, incarnation;
    char again[CHECKPOINT_NAME_MAX];
    if (sscanf(text, "step-%lld.attempt-%lld.incarnation-%lld", &step, &attempt, &incarnation) != 3)
        return -1;
    struct checkpoint_name name = {.step = step, .attempt = attempt, .incarnation = incarnation};
    checkpoint_name_format(&name, again);
    if (strcmp(text, again) != 0 || step < 0 || attempt < 0 || incarnation < 0)
        return -1;
    *ret_name = name;
    return 0;
}

bool checkpoint_name_is_former(const char *text)
{
    long long step, attempt, epoch;
    int end = 0;
    return sscanf(text, "step-%lld.attempt-%lld.epoch-%lld%n", &step, &attempt, &epoch, &end) == 3 && text[end] == '\0';
}

bool checkpoint_name_equal(const struct checkpoint_name *a, const struct checkpoint_name *b)
{
    return a->step == b->step && a->attempt == b->attempt && a->incarnation == b->incarnation;
}
