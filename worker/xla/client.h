/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles StableHLO programs and runs them through a PJRT plugin, for worker/model/program.c. A PJRT plugin is the shared
 * library through which XLA drives CPUs, GPUs and TPUs (openxla/xla, xla/pjrt/c/pjrt_c_api.h). No other code calls PJRT.
 *
 * Arguments and results are dense row-major arrays in host memory. Calls are synchronous: a run returns once all
 * results have been written. Any thread may call any function; several threads may run one executable at a time.
 *
 * Life cycle: xla_client_open -> xla_executable_compile … xla_executable_free -> xla_client_close. A plugin that was
 * opened stays in the process, because plugins cannot be unloaded safely.
 *
 * In a build without XLA=1, every function that can fail does so with ERROR_UNSUPPORTED.
 */
#ifndef COXSWAIN_XLA_CLIENT_H
#define COXSWAIN_XLA_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

#define XLA_RANK_MAX 8
/* Arguments, and results, of one executable. */
#define XLA_VALUES_MAX 65536
/* A CPU's plugin reads arguments at multiples of this where they are, and copies others first. */
#define XLA_ALIGNMENT 64

struct xla_client;
struct xla_executable;

enum xla_type { XLA_FLOAT32, XLA_INT32, XLA_UINT32 }; /* each of four bytes */

/* An argument or a result. `data` holds the product of `shape`, in values; a scalar has rank 0. */
struct xla_value {
    enum xla_type type;
    unsigned rank;
    int64_t shape[XLA_RANK_MAX];
    void *data;
};
int64_t xla_value_elements(const struct xla_value *value);

/* Sets how many threads a CPU's plugin computes with, which it takes from the environment. The bits of a program depend
 * on the number, and so does compiled code. The environment is not thread-safe: call this from main before any thread
 * starts. */
void xla_set_environment(int threads);

/* Opens the plugin at `path` and its first device. ERROR_UNSUPPORTED: the file is no PJRT plugin, or its version is too
 * old (before 0.57, where the order of the interface's functions changed); ERROR_DEVICE: it has no device. */
int xla_client_open(const char *path, struct xla_client **ret_client, struct error *error);
/* The caller has freed its executables. NULL is fine. */
void xla_client_close(struct xla_client *client);
/* Describes the plugin for people: "cpu by PJRT 0.115". */
const char *xla_client_description(const struct xla_client *client);

/* Compiles a portable StableHLO artifact. ERROR_INVALID, with the plugin's own words, if it cannot be compiled. */
int xla_executable_compile(struct xla_client *client, const void *artifact, size_t bytes,
                           struct xla_executable **ret_executable, struct error *error);
void xla_executable_free(struct xla_executable *executable);
/* Appends the compiled code, which the same plugin loads on the same kind of processor. ERROR_UNSUPPORTED: the plugin
 * cannot give it. */
int xla_executable_serialise(const struct xla_executable *executable, struct buffer *code, struct error *error);
/* Loads what xla_executable_serialise has given. It is machine code: the caller knows who wrote it. */
int xla_executable_load(struct xla_client *client, const void *code, size_t bytes,
                        struct xla_executable **ret_executable, struct error *error);
unsigned xla_executable_result_count(const struct xla_executable *executable);
/* Bytes of device memory of a run, each 0 if the plugin does not say. */
struct xla_memory {
    int64_t arguments;
    int64_t results; /* until they have been copied to the caller */
    int64_t workspace;
};
struct xla_memory xla_executable_memory(const struct xla_executable *executable);

/* Runs it once. ERROR_INVALID: number, type or shape of arguments or results are not those of the program. */
int xla_executable_run(struct xla_executable *executable, const struct xla_value *arguments, unsigned argument_count,
                       const struct xla_value *results, unsigned result_count, struct error *error);

#endif
