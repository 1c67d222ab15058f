/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses TF_CONFIG, the environment variable that describes a TensorFlow cluster. crew.c uses it if the job
 * document does not list the job's processes:
 *
 *     {"cluster":{"chief":["host:port"],"worker":["host:port",…],"ps":[…]},
 *      "task":{"type":"worker","index":0},"environment":"cloud"}
 *
 * TensorFlow's sparse form, {"worker":{"1":"host:port"}}, is accepted too.
 */
#ifndef COXSWAIN_LAUNCH_TF_CONFIG_H
#define COXSWAIN_LAUNCH_TF_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define TF_CONFIG_MAX (128 * 1024)
#define TF_CONFIG_TASKS_MAX 4096

struct tf_task {
    char *role, *host;
    unsigned index;
    uint16_t port;
};

struct tf_config {
    struct tf_task *tasks;
    unsigned task_count;
    char *role; /* this process's */
    int64_t index;
};

/* Parses `text`. Fails with ERROR_INVALID or ERROR_TOO_LARGE and an explanation. */
int tf_config_parse(const char *text, size_t length, struct tf_config *ret_config, struct error *error);
void tf_config_release(struct tf_config *config);

#endif
