/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the command line of coxswain-operator, for main.c. An invalid argument fails with
 * ERROR_INVALID, and the program ends before it has contacted the API server.
 */
#ifndef COXSWAIN_CONTROLLER_OPTIONS_H
#define COXSWAIN_CONTROLLER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/log.h"

#define OPTION_ADDRESS_MAX 64

struct options {
    const char *kubeconfig;      /* NULL: as kubectl would find it, or the pod's service account */
    const char *name_space;      /* NULL: all */
    const char *controller_name; /* spec.managedBy of its jobs and sweeps */
    const char *worker_image;
    const char *coscheduling_scheduler;
    int64_t certificate_period_ms; /* 0: the default */
    const char *lease_namespace;   /* NULL: the namespace of the credentials */
    const char *lease_name;
    bool leader_elect;
    int64_t machine_gpus; /* 0: none, or a cluster */
    char metrics_address[OPTION_ADDRESS_MAX];
    uint16_t metrics_port;                     /* 0: any free one */
    char progress_address[OPTION_ADDRESS_MAX]; /* "": scripts cannot send their progress */
    uint16_t progress_port;
    const char *progress_service;  /* NULL: none */
    const char *notification_sink; /* NULL: none */
    int64_t sick_node_ms;          /* 0: sick nodes get no taint */
    enum log_format log_format;
    enum log_level log_level;
    bool help, version;
};

/* Parses the arguments; strings are borrowed from them. ERROR_INVALID names the option and the
 * values it accepts. */
int options_parse(int count, char **arguments, struct options *ret_options, struct error *error);

extern const char *const options_usage;

#endif
