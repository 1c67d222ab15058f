/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/sweep_descent.h"

#include "common/memory.h"

char *sweep_descent_folder(const struct training_sweep *sweep, const char *trial)
{
    return memory_format("%s%s%.8s", trial, sweep->uid[0] ? "-" : "", sweep->uid);
}

void sweep_descent_put_folder(struct json *spec, const char *folder)
{
    struct json *checkpoint = json_member(json_member(spec, "coxswain"), "checkpoint");
    if (checkpoint)
        json_set_string(checkpoint, "path", folder);
}

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
