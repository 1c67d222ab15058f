/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles StableHLO programs and runs them through a PJRT plugin, for worker/model/program.c. A PJRT plugin is the shared
 * library through which XLA drives CPUs, GPUs and TPUs (openxla/xla, xla/pjrt/c/pjrt_c_api.h). No other code calls PJRT.
 *
 * Arguments and results are dense row-major arrays in host memory. Any thread may call any function; several threads may run one
 * executable at a time.
 *
 * Life cycle: xla_options_init -> xla_client_open -> xla_executable_compile, xla_kept_new … xla_kept_free, xla_executable_free ->
 * xla_client_close. A plugin that was opened stays in the process, because plugins cannot be unloaded safely.
 *
 * One process at a time can open a machine's TPUs, and keeps them until it ends. Several can share a GPU.
 *
 * In a build without XLA=1, every function that can fail does so with ERROR_UNSUPPORTED.
 */
#ifndef COXSWAIN_XLA_CLIENT_H
#define COXSWAIN_XLA_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

#define XLA_RANK_MAX 8
/* Most arguments, and most results, of one executable. */
#define XLA_VALUES_MAX 65536
/* A CPU's plugin reads arguments at multiples of this where they are, and copies others first. */
#define XLA_ALIGNMENT 64

struct xla_client;
struct xla_executable;
struct xla_kept;

enum xla_type { XLA_FLOAT32, XLA_INT32, XLA_UINT32 }; /* each of four bytes */

/* An argument or a result. `data` holds the product of `shape`, in values; a scalar has rank 0. */
struct xla_value {
    enum xla_type type;
    unsigned rank;
    int64_t shape[XLA_RANK_MAX];
    void *data;
};
int64_t xla_value_elements(const struct xla_value *value);

/* Sets how many GPUs XLA computes with in this process and in those that it starts; 0: none. `same_bits`: functions must be compiled to
 * the same code each time, and the code must give the same bits. XLA otherwise chooses a GPU's kernels by timing them, and some add in
 * the order in which their threads come. Changes the environment: call this from main before any thread starts. */
void xla_set_gpus(unsigned gpus, bool same_bits);
/* Sets how many threads a CPU's plugin computes with, which it takes from the environment. The bits of a program depend
 * on the number, and so does compiled code. The environment is not thread-safe: call this from main before any thread
 * starts. */
void xla_set_environment(int threads);
/* Makes malloc keep the memory that a CPU's plugin frees. The plugin allocates the temporary values of each run anew; otherwise
 * malloc would return them to the kernel, which clears each page again in the next run. What the heap keeps without use is
 * returned after each of a client's first 8 runs, then after runs 16, 32, 64 and so on. Call this from main before any
 * thread starts. */
void xla_keep_freed_memory(void);

#define XLA_PATH_MAX 4096
#define XLA_DEVICES_MAX 64
/* Selects the plugin, and how many of its devices are used. */
struct xla_options {
    char plugin[XLA_PATH_MAX]; /* its path; "": there is none */
    unsigned tpus, gpus; /* of this process, one of them 0; both 0: a plugin of any kind, whose first device is used */
    /* For tests. Not 0: a CPU's plugin has so many devices, and may take the place of TPUs or GPUs. */
    unsigned cpu_devices;
};
/* Without TPUs, GPUs are used as xla_set_gpus says. `plugin` NULL or "": for TPUs, libtpu.so is searched for where TPU_LIBRARY_PATH says,
 * and where images of Google and Python's package have it; for GPUs, xla_cuda_plugin.so where our image and Python's packages
 * jax-cuda12-pjrt and jax-cuda13-pjrt have it. */
void xla_options_init(struct xla_options *options, const char *plugin, unsigned tpus, unsigned cpu_devices);
/* Returns for which platform a program's functions must have been exported, as program.json names it: "tpu", "cuda", or "cpu" if the job
 * is for neither TPUs nor GPUs or a CPU's plugin takes their place. */
const char *xla_options_platform(const struct xla_options *options);
/* Appends the number and PCI device ID of this machine's TPUs, which distinguish kinds of machines: "2 x 0x0063". Appends nothing if there
 * are none. */
void xla_append_tpus(struct buffer *text);
/* The same for GPUs of NVIDIA. */
void xla_append_gpus(struct buffer *text);

/* Appends which instructions this machine's processor has for compilers to use, and its kind where that is ARM's, from a file like
 * /proc/cpuinfo. What kernels add to its flags for other purposes does not count. */
void xla_append_processor(const char *path, struct buffer *text);
/* Appends the values of the environment variables that are settings of XLA's compilers (XLA_FLAGS, LIBTPU_INIT_ARGS). */
void xla_append_settings(struct buffer *text);

/* Opens the plugin and its devices. ERROR_UNSUPPORTED: there is no such plugin, the file is none, its version is too old
 * (before 0.57, where the order of the interface's functions changed), or the machine has too few TPUs or GPUs; ERROR_DEVICE: the
 * plugin cannot open its devices, such as TPUs that another process has.
 *
 * A plugin for GPUs allocates their memory when it is needed, up to 90 % of it, so that several processes can share a GPU. */
int xla_client_open(const struct xla_options *options, struct xla_client **ret_client, struct error *error);
/* Closes the devices. The caller must have freed all executables. Does nothing for NULL. */
void xla_client_close(struct xla_client *client);
/* Describes the plugin for people: "cpu by PJRT 0.115", "4 devices of tpu by PJRT 0.117". */
const char *xla_client_description(const struct xla_client *client);
/* Returns the platform of the devices, as the plugin names it: "cpu", "cuda", "tpu". */
const char *xla_client_platform(const struct xla_client *client);
/* Returns whether the devices compute in the host's memory. */
bool xla_client_shares_memory(const struct xla_client *client);

/* Returns how many bytes of their own memory the device with the least has free; -1: they compute in the host's, or the plugin does not
 * say. */
int64_t xla_client_free_memory(const struct xla_client *client);

/* Compiles StableHLO, a portable artifact or text, for any device of the client. ERROR_INVALID, with the plugin's own words, if it
 * cannot be compiled; ERROR_NO_SPACE if it does not fit into a device's memory. */
int xla_executable_compile(struct xla_client *client, const void *artifact, size_t bytes,
                           struct xla_executable **ret_executable, struct error *error);
void xla_executable_free(struct xla_executable *executable);
/* Appends the compiled code, which the same plugin loads on the same kind of processor. ERROR_UNSUPPORTED: the plugin
 * cannot give it. */
int xla_executable_serialise(const struct xla_executable *executable, struct buffer *code, struct error *error);
/* Loads compiled code from xla_executable_serialise. It is machine code, so the caller must trust its source. */
int xla_executable_load(struct xla_client *client, const void *code, size_t bytes,
                        struct xla_executable **ret_executable, struct error *error);
unsigned xla_executable_result_count(const struct xla_executable *executable);
/* The bytes of device memory that a run needs; each is 0 if the plugin does not report it. */
struct xla_memory {
    int64_t arguments;
    int64_t results;   /* until they have been copied to the caller */
    int64_t workspace; /* temporary values, and the code */
    int64_t code;
};
struct xla_memory xla_executable_memory(const struct xla_executable *executable);

/* Brings arguments to device number `device` of the client, from 0, where any number of runs may use them. A CPU's plugin may read them
 * where they are: they must stay as they are until the last of these runs has ended. */
int xla_kept_new(struct xla_client *client, unsigned device, const struct xla_value *arguments, unsigned argument_count,
                 struct xla_kept **ret_kept, struct error *error);
void xla_kept_free(struct xla_kept *kept);

/* One run of an executable, on the device of `kept`, which has its first arguments; `arguments` are the others.
 *
 * Life cycle: xla_run_new begins to bring the arguments to the device, and returns before they are there; xla_run_start lets the device
 * compute; xla_run_finish returns once all results have been written; xla_run_free. The arguments and `kept` must stay until then. While a
 * run computes, another one may be made: its arguments travel meanwhile.
 *
 * ERROR_INVALID: the number, type or shape of arguments or results is not that of the program. */
struct xla_run;
int xla_run_new(struct xla_executable *executable, const struct xla_kept *kept, const struct xla_value *arguments,
                unsigned argument_count, struct xla_run **ret_run, struct error *error);
int xla_run_start(struct xla_run *run, struct error *error);
int xla_run_finish(struct xla_run *run, const struct xla_value *results, unsigned result_count, struct error *error);
/* Waits until the device has ended. Does nothing for NULL. */
void xla_run_free(struct xla_run *run);

/* A slice of TPUs that this machine does not have, for which programs can be compiled but not run. */
struct xla_topology;
/* Opens a topology. `name` is a kind of TPU and the number of TPUs in each direction, such as "v5e:2x2". Sets an environment variable that
 * libtpu needs, so call it before any thread starts. ERROR_INVALID, with the plugin's message, if the plugin does not know the name. */
int xla_topology_open(const char *plugin, const char *name, struct xla_topology **ret_topology, struct error *error);
void xla_topology_free(struct xla_topology *topology);
unsigned xla_topology_device_count(const struct xla_topology *topology);
/* Compiles an artifact as xla_executable_compile does, for any device of the topology, and returns the memory that it needs. Errors:
 * those of xla_executable_compile. */
int xla_topology_compile(const struct xla_topology *topology, const void *artifact, size_t bytes,
                         struct xla_memory *ret_memory, struct error *error);

#endif
