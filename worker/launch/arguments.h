/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of coxswain-worker. In a pod it is empty: there the
 * environment says everything (identity.h); by hand the options do.
 */
#ifndef COXSWAIN_LAUNCH_ARGUMENTS_H
#define COXSWAIN_LAUNCH_ARGUMENTS_H

#include <stdbool.h>

#include "common/error.h"
#include "common/log.h"

#define ARGUMENT_STORAGES_MAX 32

/* What to do with trained weights in place of training. */
struct inference_arguments {
    const char *prompt;  /* --generate */
    const char *example; /* --predict: a number, or "all" */
    const char *weights; /* --weights; NULL: what the job has left */
    int tokens;          /* --tokens */
    double temperature;  /* --temperature */
    int top_k;           /* --top-k; 0: all */
    int seed;            /* --seed */
};

/* Strings point into argv. */
struct arguments {
    const char *job_file;                        /* --job: YAML or JSON, a job document or a whole TrainingJob */
    const char *storages[ARGUMENT_STORAGES_MAX]; /* --storage name=directory */
    unsigned storage_count;
    const char *checkpoint_directory; /* --checkpoint-dir */
    enum log_format format;           /* --log-format */
    int threads;                      /* --threads; 0: decide */
    int http_port;                    /* --http-port; -1: none, -2: not said */
    bool help, version;
    struct inference_arguments inference;
};

#define HTTP_PORT_UNSAID (-2)

/* ERROR_INVALID names the option. */
int arguments_parse(int count, char **values, struct arguments *ret_arguments, struct error *error);
/* Whether a model is to be used rather than trained. */
bool arguments_use_model(const struct arguments *arguments);
/* The same of a command line that arguments_parse has refused. */
bool arguments_name_use(int count, char **values);
extern const char arguments_usage[];

#endif
