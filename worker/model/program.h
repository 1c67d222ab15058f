/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and runs a program: a model as StableHLO functions. The job gives them in a folder with program.json and the files that it
 * names (docs/programs.md), or they are written from the job's layers (lowering.h). The trainer opens it; a graph then runs
 * it through XLA (graph_options.program), and code that uses the graph sees no difference.
 *
 * A program may have functions to train, to evaluate, to predict and to compute the first values of its parameters. A process reads and
 * compiles only those that it uses.
 *
 * Life cycle: program_open reads the document, or program_from_layers translates a model; program_open_engine opens the PJRT
 * plugin; program_compile or program_load makes the functions ready, once, before the first pass; program_free last, after the
 * graphs that use it. Between these, any number of threads may call program_run.
 */
#ifndef COXSWAIN_MODEL_PROGRAM_H
#define COXSWAIN_MODEL_PROGRAM_H

#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/hmac.h"
#include "worker/device/operations.h"
#include "worker/model/graph.h"
#include "worker/model/parameter_layout.h"

#define PROGRAM_DOCUMENT_MAX (4u << 20)
#define PROGRAM_ARTIFACT_MAX ((size_t)256 << 20)
#define PROGRAM_TENSORS_MAX 16384
/* A program whose functions take more examples in one call is refused. */
#define PROGRAM_BATCH_MAX 65536

struct program;
struct xla_kept;
struct xla_options;

/* The functions of a program; a set of them is the sum of these bits. */
enum program_use { PROGRAM_TRAINS = 1, PROGRAM_EVALUATES = 2, PROGRAM_PREDICTS = 4, PROGRAM_INITIALISES = 8 };
#define PROGRAM_USES_MAX 15
#define PROGRAM_USES_ALL 0 /* all that the program has */

/* Reads and checks program.json in `folder`, and reads the files of the functions in the set `uses`, from which PROGRAM_INITIALISES is left
 * out if the program has no such function, or has weights to start from. If the document names files for
 * `platform` ("cpu", "tpu", "cuda"; it must outlive the program), these are read; if not, the files that it names first. ERROR_INVALID says
 * which member of program.json is wrong and what it should be. */
int program_open(const char *folder, unsigned uses, const char *platform, struct program **ret_program,
                 struct error *error);
/* Parses a document alone; no function can be run then. For tests and fuzzing. */
int program_parse(const char *text, size_t length, struct program **ret_program, struct error *error);
/* Makes a program of a model of layers (lowering.h), in calls of up to `batch` examples. `uses`: PROGRAM_EVALUATES, and perhaps
 * PROGRAM_TRAINS. It has the graph's layout and examples, and the graph may be freed. Errors: those of lowering_write. */
int program_from_layers(const struct graph *graph, enum precision precision, int64_t batch, unsigned uses,
                        struct program **ret_program, struct error *error);
bool program_is_of_layers(const struct program *program);
void program_free(struct program *program);

/* Returns the layout of the program's tensors: its state (such as running statistics) first, then its parameters, each in the order of
 * program.json. */
const struct parameter_layout *program_layout(const struct program *program);
const struct example_format *program_example_format(const struct program *program);
/* Returns how many examples one call takes at most. */
int64_t program_batch(const struct program *program);
/* Returns the format of the results of the function that predicts; NULL if the program has no such function. */
const struct output_format *program_output_format(const struct program *program);
/* Returns the functions that program_open has read. */
unsigned program_uses(const struct program *program);
/* Returns whether the program says with which values its parameters start: it has weights, or a function that computes them. */
bool program_has_start(const struct program *program);
/* Returns the name, relative to the folder, of the safetensors file with the initial values; NULL if there is none. */
const char *program_weights(const struct program *program);

/* Sets with how many threads a CPU's plugin computes (xla_set_environment), and that its memory is kept from run to run
 * (xla_keep_freed_memory). Call it from main, before any thread starts. */
void program_set_environment(int threads);
/* Opens the plugin and its devices (xla_client_open); does nothing the second time. ERROR_UNSUPPORTED without a plugin; ERROR_INVALID if
 * the devices are of another platform than program_open was told, for which the document names other files. */
int program_open_engine(struct program *program, const struct xla_options *options, struct error *error);
/* Describes the plugin for people; "" before program_open_engine. */
const char *program_engine(const struct program *program);
/* Compiles the functions and calls each once, with zeros, so that a document that does not match them is refused here,
 * before training. ERROR_NO_SPACE: the devices have too little memory of their own for the parameters and the largest call. */
int program_compile(struct program *program, struct error *error);
/* Appends the compiled functions to `code`, for program_load in another process. */
int program_serialise(const struct program *program, struct buffer *code, struct error *error);
/* Loads compiled functions from program_serialise, instead of program_compile. They are machine code: the caller must
 * trust their source. If it fails, program_compile may still be called. Errors: those of xla_executable_load, and ERROR_NO_SPACE as in
 * program_compile. */
int program_load(struct program *program, const void *code, size_t length, struct error *error);
#define PROGRAM_CODE_MAX ((size_t)1 << 30)
/* Frees the functions' StableHLO, which is not needed once they are compiled. */
void program_drop_artifacts(struct program *program);
/* Fills `ret_digest` with a digest of the functions (StableHLO) that are used. Call it before program_drop_artifacts. */
void program_digest(const struct program *program, unsigned char ret_digest[HMAC_BYTES]);
/* Returns the bytes of host memory that the largest call allocates: copies of its arguments and, if the device has no memory of its own,
 * its temporary values and the results before they are copied to the caller's arrays. */
int64_t program_call_bytes(const struct program *program);

/* Compiles the functions for TPUs of the kind and number that `topology` names (xla_topology_open), with the plugin at the path `plugin`.
 * Appends a table of the memory that each function needs on one TPU. The machine needs no TPU. ERROR_NO_SPACE: a function does not fit. */
int program_compile_for(const struct program *program, const char *plugin, const char *topology, struct buffer *text,
                        struct error *error);

/* One call: up to program_batch() examples. It predicts if there are `outputs`, trains if there are `gradients`, else
 * evaluates. */
struct program_call {
    unsigned device;         /* number of one of the plugin's devices, from 0 */
    const float *parameters; /* program_layout()->elements */
    /* NULL: the parameters are brought to the device for this call alone. If *kept is NULL, the call keeps them there; if not, *kept is of
     * an earlier call with this device and the same parameters, which have not changed since. */
    struct xla_kept **kept;
    const void *inputs, *targets; /* as program_example_format() has them; predictions need no targets */
    int64_t examples;             /* at least 1 */
    /* For dropout, read by training calls only: the run's seed, the step, and the first example's number in the global batch. */
    uint64_t seed;
    int64_t step, first_example;
    float *gradients;   /* program_layout()->elements; for state, the new values */
    float *loss, *hits; /* sums over the targets of the examples; not written if the call predicts */
    float *counted;     /* how many of these targets count; only written if program_example_format() ignores some */
    void *outputs;      /* `examples` of program_output_format() */
};
int program_run(struct program *program, const struct program_call *call, struct error *error);
/* The same in steps: program_begin begins to bring the examples to the device; program_start lets it compute; program_finish returns once
 * gradients, sums and outputs are there; then program_pending_free. While one call computes, the next one may begin. What the call points
 * to must stay until it has been freed. */
struct program_pending;
int program_begin(struct program *program, const struct program_call *call, struct program_pending **ret_pending,
                  struct error *error);
int program_start(struct program_pending *pending, struct error *error);
int program_finish(const struct program *program, struct program_pending *pending, struct error *error);
/* Waits until the device has ended. Does nothing for NULL. */
void program_pending_free(struct program_pending *pending);
/* Returns whether it helps to begin a call while another one computes: the devices have memory of their own. */
bool program_overlaps(const struct program *program);
/* Frees the parameters that calls have kept on a device; *kept is NULL afterwards. Before the program is freed. */
void program_drop_kept(struct xla_kept **kept);

/* Computes the first values of parameters and state from a seed: program_layout()->elements. The program must have been opened for
 * PROGRAM_INITIALISES, and compiled. */
int program_initialise(struct program *program, uint64_t seed, float *ret_values, struct error *error);

#endif
