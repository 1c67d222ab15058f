/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the command line of coxswain-worker. In a pod it is empty, since the environment contains
 * everything (identity.h); a process started by hand is configured by options.
 */
#ifndef COXSWAIN_LAUNCH_ARGUMENTS_H
#define COXSWAIN_LAUNCH_ARGUMENTS_H

#include <stdbool.h>

#include "common/error.h"
#include "common/log.h"

#define ARGUMENT_STORAGES_MAX 32

/* How to use a trained model instead of training one. */
struct inference_arguments {
    const char *prompt;      /* --generate */
    const char *prompt_file; /* --prompt-file */
    const char *example;     /* --predict: a number, or "all" */
    bool outputs;            /* --outputs */
    bool json;               /* --json */
    const char *data;        /* --data: new examples (dataset_open_inputs); NULL: the held-out ones */
    const char *weights;     /* --weights; NULL: the job's export or newest checkpoint */
    int tokens;              /* --tokens */
    double temperature;      /* --temperature */
    int top_k;               /* --top-k; 0: all */
    int seed;                /* --seed */
};

/* Strings point into argv. */
struct arguments {
    char **command_line;                         /* argv */
    const char *job_file;                        /* --job: YAML or JSON, a job document or a whole TrainingJob */
    const char *storages[ARGUMENT_STORAGES_MAX]; /* --storage name=directory */
    unsigned storage_count;
    const char *checkpoint_directory; /* --checkpoint-dir */
    enum log_format format;           /* --log-format */
    int threads;                      /* --threads; 0: choose */
    int http_port;                    /* --http-port; -1: none, -2: not given */
    bool help, version;
    bool describe_model;  /* --describe-model */
    bool check_job;       /* --check-job */
    const char *program;  /* --compile-program; NULL: not to compile one */
    bool compile_model;   /* --compile-model */
    const char *topology; /* --topology; NULL: for the devices of this machine */
    int compiled_on_tpus; /* --compiled-on-tpus; 0: on any device */
    int compiled_to;      /* --compiled-to: a descriptor for the compiled code; -1: none */
    int compiled_batch; /* --compiled-batch: examples of a call of --compile-model; 0: as the job's first crew has them */
    int compiled_for;   /* --compiled-for: a set of enum program_use; 0: all that the program has */
    struct inference_arguments inference;
};

#define HTTP_PORT_UNSAID (-2)

/* Parses the options. ERROR_INVALID names the option that is wrong. */
int arguments_parse(int count, char **values, struct arguments *ret_arguments, struct error *error);
/* Returns whether a text is to be continued. */
bool arguments_generate(const struct inference_arguments *inference);
/* Returns whether a model is to be used or described, or a job checked, rather than trained. */
bool arguments_use_model(const struct arguments *arguments);
/* Returns whether a program or model is to be compiled only. */
bool arguments_compile(const struct arguments *arguments);
/* Returns whether a command line that arguments_parse has refused asks to use a model, so that the error is printed as that of a
 * command and not as that of a training process. */
bool arguments_name_use(int count, char **values);
extern const char arguments_usage[];

#endif
