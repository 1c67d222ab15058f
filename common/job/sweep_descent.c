/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_descent.h"

static void lengthen(struct json *training, const char *name, int64_t generations)
{
    int64_t length = json_integer_at(training, name, 0);
    if (length > 0 && length <= INT64_MAX / generations)
        json_set_integer(training, name, length * generations);
}

void sweep_descent_put(struct json *spec, const char *parent, int64_t generations)
{
    struct json *worker = json_member(spec, "coxswain"), *training = json_member(worker, "training");
    struct json *init = json_set(worker, "init", json_new_object());
    json_set_string(init, "storage", json_string_at(worker, "checkpoint.storage", NULL));
    json_set_string(init, "path", parent);
    lengthen(training, "steps", generations);
    lengthen(training, "epochs", generations);
}
