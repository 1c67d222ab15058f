/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces pjrt_client.c in a build without XLA=1.
 */
#include "worker/xla/client.h"

#define REFUSAL "this worker was built without XLA (make XLA=1), which programs, TPUs and devices.plugin need"

int xla_client_open(const struct xla_options *options, struct xla_client **ret_client, struct error *error)
{
    (void)options, (void)ret_client;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

void xla_client_close(struct xla_client *client)
{
    (void)client;
}

const char *xla_client_description(const struct xla_client *client)
{
    (void)client;
    return "";
}

const char *xla_client_platform(const struct xla_client *client)
{
    (void)client;
    return "";
}

bool xla_client_shares_memory(const struct xla_client *client)
{
    (void)client;
    return true;
}

int64_t xla_client_free_memory(const struct xla_client *client)
{
    (void)client;
    return -1;
}

int xla_executable_compile(struct xla_client *client, const void *artifact, size_t bytes,
                           struct xla_executable **ret_executable, struct error *error)
{
    (void)client, (void)artifact, (void)bytes, (void)ret_executable;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

void xla_executable_free(struct xla_executable *executable)
{
    (void)executable;
}

int xla_executable_serialise(const struct xla_executable *executable, struct buffer *code, struct error *error)
{
    (void)executable, (void)code;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

int xla_executable_load(struct xla_client *client, const void *code, size_t bytes,
                        struct xla_executable **ret_executable, struct error *error)
{
    (void)client, (void)code, (void)bytes, (void)ret_executable;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

unsigned xla_executable_result_count(const struct xla_executable *executable)
{
    (void)executable;
    return 0;
}

struct xla_memory xla_executable_memory(const struct xla_executable *executable)
{
    (void)executable;
    return (struct xla_memory){0};
}

int xla_kept_new(struct xla_client *client, unsigned device, const struct xla_value *arguments, unsigned argument_count,
                 struct xla_kept **ret_kept, struct error *error)
{
    (void)client, (void)device, (void)arguments, (void)argument_count, (void)ret_kept;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

void xla_kept_free(struct xla_kept *kept)
{
    (void)kept;
}

int xla_run_new(struct xla_executable *executable, const struct xla_kept *kept, const struct xla_value *arguments,
                unsigned argument_count, struct xla_run **ret_run, struct error *error)
{
    (void)executable, (void)kept, (void)arguments, (void)argument_count, (void)ret_run;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

int xla_run_start(struct xla_run *run, struct error *error)
{
    (void)run;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

int xla_run_finish(struct xla_run *run, const struct xla_value *results, unsigned result_count, struct error *error)
{
    (void)run, (void)results, (void)result_count;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

void xla_run_free(struct xla_run *run)
{
    (void)run;
}

int xla_topology_open(const char *plugin, const char *name, struct xla_topology **ret_topology, struct error *error)
{
    (void)plugin, (void)name, (void)ret_topology;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}

void xla_topology_free(struct xla_topology *topology)
{
    (void)topology;
}

unsigned xla_topology_device_count(const struct xla_topology *topology)
{
    (void)topology;
    return 0;
}

int xla_topology_compile(const struct xla_topology *topology, const void *artifact, size_t bytes,
                         struct xla_memory *ret_memory, struct error *error)
{
    (void)topology, (void)artifact, (void)bytes, (void)ret_memory;
    return error_set(error, ERROR_UNSUPPORTED, REFUSAL);
}
