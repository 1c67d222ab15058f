/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/averaging.h"

#include <stdio.h>

int averaging_begin(struct trainer *trainer, struct error *error)
{
    unsigned of;
    if (strategy_average_begin(trainer->strategy, error) < 0)
        return -1;
    trainer->averaged = true;
    unsigned count = strategy_averaged(trainer->strategy, &of);
    if (of > 0)
        report_replicas_missing(trainer->report, of - count);
    return 0;
}

void averaging_end(struct trainer *trainer)
{
    trainer->averaged = false;
    strategy_average_end(trainer->strategy);
}

void averaging_describe(const struct trainer *trainer, struct json *model)
{
    unsigned of = 0, count = trainer->strategy != NULL ? strategy_averaged(trainer->strategy, &of) : 0;
    char text[32];
    if (of == 0)
        return;
    snprintf(text, sizeof text, "%u of %u", count, of);
    json_set_string(model, "replicas", text);
}
