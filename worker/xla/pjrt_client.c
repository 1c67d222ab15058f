/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <malloc.h>
#include <pjrt_c_api.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/xla/client.h"

#define OLDEST_MINOR 57
#define PLUGIN_WORDS_MAX 600
#define TRIMMED_RUNS 8

struct xla_client {
    const PJRT_Api *api;
    PJRT_Client *client;
    PJRT_Device *const *devices; /* the plugin's */
    unsigned device_count;       /* of those that are used */
    bool shares_memory;
    atomic_ullong runs; /* that have ended */
    char platform[32];
    char description[96];
};

struct xla_executable {
    struct xla_client *client;
    PJRT_LoadedExecutable *loaded;
    unsigned result_count;
    struct xla_memory memory;
};

/* A plugin checks struct_size, by which it knows which members the caller has. */
#define ARGUMENTS(type, ...)                                                                                           \
    (type)                                                                                                             \
    {                                                                                                                  \
        .struct_size = type##_STRUCT_SIZE, __VA_ARGS__                                                                 \
    }

/* ---------------------------------------------------------------- errors */

/* Compilers' messages have many lines; the first ones say what is wrong. */
static void copy_words(char *words, size_t size, const char *message, size_t length)
{
    size_t count = length < size - 1 ? length : size - 1;
    for (size_t i = 0; i < count; i++)
        words[i] = (unsigned char)message[i] < ' ' || message[i] == 0x7f ? ' ' : message[i];
    words[count] = '\0';
}

static enum error_kind kind_of(PJRT_Error_Code code)
{
    switch (code) {
    case PJRT_Error_Code_INVALID_ARGUMENT:
        return ERROR_INVALID;
    case PJRT_Error_Code_RESOURCE_EXHAUSTED:
        return ERROR_NO_SPACE;
    case PJRT_Error_Code_UNIMPLEMENTED:
        return ERROR_UNSUPPORTED;
    default:
        return ERROR_DEVICE;
    }
}

/* Returns 0 if the call went well; else takes the plugin's error over into `error`. */
static int check(const PJRT_Api *api, PJRT_Error *failure, const char *what, struct error *error)
{
    if (failure == NULL)
        return 0;
    char words[PLUGIN_WORDS_MAX];
    PJRT_Error_Message_Args message = ARGUMENTS(PJRT_Error_Message_Args, .error = failure);
    PJRT_Error_GetCode_Args code = ARGUMENTS(PJRT_Error_GetCode_Args, .error = failure);
    api->PJRT_Error_Message(&message);
    PJRT_Error *unknown = api->PJRT_Error_GetCode(&code);
    copy_words(words, sizeof words, message.message, message.message_size);
    api->PJRT_Error_Destroy(&ARGUMENTS(PJRT_Error_Destroy_Args, .error = failure));
    if (unknown != NULL)
        api->PJRT_Error_Destroy(&ARGUMENTS(PJRT_Error_Destroy_Args, .error = unknown));
    return error_set(error, unknown != NULL ? ERROR_DEVICE : kind_of(code.code), "%s: %s", what, words);
}

/* Waits for the event and destroys it. */
static int await(const PJRT_Api *api, PJRT_Event *event, const char *what, struct error *error)
{
    if (event == NULL)
        return 0;
    int result = check(api, api->PJRT_Event_Await(&ARGUMENTS(PJRT_Event_Await_Args, .event = event)), what, error);
    PJRT_Error *failure = api->PJRT_Event_Destroy(&ARGUMENTS(PJRT_Event_Destroy_Args, .event = event));
    return check(api, failure, what, result < 0 ? NULL : error) < 0 ? -1 : result;
}

/* ---------------------------------------------------------------- clients */

static const PJRT_Api *find_api(const char *path, struct error *error)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return error_set(error, ERROR_UNSUPPORTED, "cannot open the PJRT plugin: %s", dlerror()), NULL;
    const PJRT_Api *(*get)(void);
    *(void **)&get = dlsym(library, "GetPjrtApi");
    const PJRT_Api *api = get != NULL ? get() : NULL;
    if (api == NULL)
        return error_set(error, ERROR_UNSUPPORTED, "%s is no PJRT plugin: it has no GetPjrtApi", path), NULL;
    const PJRT_Api_Version *version = &api->pjrt_api_version;
    if (version->major_version != 0 || version->minor_version < OLDEST_MINOR)
        return error_set(error, ERROR_UNSUPPORTED,
                         "%s speaks PJRT %d.%d, and this worker 0.%d or newer; take a newer plugin", path,
                         version->major_version, version->minor_version, OLDEST_MINOR),
               NULL;
    return api;
}

static const PJRT_Api *open_plugin(const char *path, struct error *error)
{
    if (*path == '\0')
        return error_set(error, ERROR_UNSUPPORTED,
                         "this job needs a PJRT plugin: set devices.plugin or COXSWAIN_PJRT_PLUGIN to the path of "
                         "one, or take an image that has one"),
               NULL;
    const PJRT_Api *api = find_api(path, error);
    if (api == NULL)
        return NULL;
    PJRT_Error *failure = api->PJRT_Plugin_Initialize(&ARGUMENTS(PJRT_Plugin_Initialize_Args, .extension_start = NULL));
    return check(api, failure, "start the PJRT plugin", error) < 0 ? NULL : api;
}

static bool is_for_tpus(const struct xla_options *wanted)
{
    return strcmp(xla_options_platform(wanted), "tpu") == 0;
}

static bool is_for_gpus(const struct xla_options *wanted)
{
    return strcmp(xla_options_platform(wanted), "cuda") == 0;
}

/* A CPU's plugin has a thread for each of its devices at least, and four devices unless it is told otherwise. One for CUDA takes three
 * quarters of each GPU's memory at once unless it is told otherwise. Other plugins may not know these options. */
#define CREATE_OPTIONS_MAX 2
static unsigned create_options(const struct xla_options *wanted, PJRT_NamedValue ret_options[CREATE_OPTIONS_MAX])
{
    if (is_for_tpus(wanted))
        return 0;
    if (is_for_gpus(wanted)) {
        ret_options[0] = ARGUMENTS(PJRT_NamedValue, .name = "preallocate", .name_size = 11,
                                   .type = PJRT_NamedValue_kBool, .bool_value = false, .value_size = 1);
        ret_options[1] = ARGUMENTS(PJRT_NamedValue, .name = "memory_fraction", .name_size = 15,
                                   .type = PJRT_NamedValue_kFloat, .float_value = 0.9F, .value_size = 1);
        return 2;
    }
    ret_options[0] =
        ARGUMENTS(PJRT_NamedValue, .name = "cpu_device_count", .name_size = 16, .type = PJRT_NamedValue_kInt64,
                  .int64_value = wanted->cpu_devices > 0 ? wanted->cpu_devices : 1, .value_size = 1);
    return 1;
}

/* A plugin says in words of its own that there is no GPU. */
static int blame_machine(const struct xla_options *wanted, struct error *error)
{
    SCOPED_BUFFER gpus = BUFFER_INIT(4096);
    if (!is_for_gpus(wanted))
        return -1;
    xla_append_gpus(&gpus);
    if (gpus.length > 0)
        return -1;
    error->kind = ERROR_UNSUPPORTED;
    return error_wrap(error, "the job is for GPUs, and this machine has none; choose nodes that have some");
}

static int create(struct xla_client *client, const struct xla_options *wanted, struct error *error)
{
    const PJRT_Api *api = client->api;
    PJRT_NamedValue options[CREATE_OPTIONS_MAX];
    unsigned count = create_options(wanted, options);
    PJRT_Client_Create_Args arguments =
        ARGUMENTS(PJRT_Client_Create_Args, .create_options = options, .num_options = count);
    if (count == 0 || check(api, api->PJRT_Client_Create(&arguments), "", NULL) < 0) {
        arguments = ARGUMENTS(PJRT_Client_Create_Args, .extension_start = NULL);
        if (check(api, api->PJRT_Client_Create(&arguments), "open the PJRT plugin's devices", error) < 0)
            return blame_machine(wanted, error);
    }
    client->client = arguments.client;
    return 0;
}

static int find_devices(struct xla_client *client, const struct xla_options *wanted, struct error *error)
{
    PJRT_Client_AddressableDevices_Args devices =
        ARGUMENTS(PJRT_Client_AddressableDevices_Args, .client = client->client);
    if (check(client->api, client->api->PJRT_Client_AddressableDevices(&devices), "list devices", error) < 0)
        return -1;
    if (devices.num_addressable_devices == 0)
        return error_set(error, ERROR_UNSUPPORTED, "the PJRT plugin finds no device on this machine");
    unsigned count = wanted->tpus + wanted->gpus;
    if (devices.num_addressable_devices < count)
        return error_set(error, ERROR_UNSUPPORTED,
                         "the job wants %u %s for each worker, and this one finds %zu; lower devices.count, or take "
                         "a node that has them",
                         count, wanted->tpus > 0 ? "TPUs" : "GPUs", devices.num_addressable_devices);
    client->devices = devices.addressable_devices;
    client->device_count = count > 0 ? count : 1;
    return 0;
}

/* A job for CPUs may have any plugin. */
static int check_kind(const struct xla_client *client, const struct xla_options *wanted, struct error *error)
{
    bool tpus = is_for_tpus(wanted);
    if ((!tpus && !is_for_gpus(wanted)) || strcmp(client->platform, xla_options_platform(wanted)) == 0)
        return 0;
    return error_set(
        error, ERROR_UNSUPPORTED,
        "the job is for %s, and the PJRT plugin %s is for %s; leave COXSWAIN_PJRT_PLUGIN out, or set it to "
        "the path of %s",
        tpus ? "TPUs" : "GPUs", wanted->plugin, client->platform, tpus ? "libtpu.so" : "xla_cuda_plugin.so");
}

static int describe(struct xla_client *client, const struct xla_options *wanted, struct error *error)
{
    PJRT_Client_PlatformName_Args name = ARGUMENTS(PJRT_Client_PlatformName_Args, .client = client->client);
    if (check(client->api, client->api->PJRT_Client_PlatformName(&name), "ask for the platform", error) < 0)
        return -1;
    char number[32] = "";
    snprintf(client->platform, sizeof client->platform, "%.*s", (int)name.platform_name_size, name.platform_name);
    client->shares_memory = strcmp(client->platform, "cpu") == 0;
    if (check_kind(client, wanted, error) < 0)
        return -1;
    if (client->device_count > 1)
        snprintf(number, sizeof number, "%u devices of ", client->device_count);
    snprintf(client->description, sizeof client->description, "%s%s by PJRT %d.%d", number, client->platform,
             client->api->pjrt_api_version.major_version, client->api->pjrt_api_version.minor_version);
    return 0;
}

static int check_gpus(const struct xla_options *wanted, struct error *error)
{
    if (!is_for_gpus(wanted) || *wanted->plugin != '\0')
        return 0;
    return error_set(error, ERROR_UNSUPPORTED,
                     "the job is for GPUs by XLA, and xla_cuda_plugin.so is not in this image; build it in "
                     "(docs/programs.md), or set devices.plugin to its path");
}

/* Says so before libtpu is opened, which looks for TPUs for minutes. */
static int check_tpus(const struct xla_options *wanted, struct error *error)
{
    SCOPED_BUFFER tpus = BUFFER_INIT(4096);
    if (!is_for_tpus(wanted))
        return 0;
    if (*wanted->plugin == '\0')
        return error_set(error, ERROR_UNSUPPORTED,
                         "the job is for TPUs, and libtpu.so is not in this image; build it in (docs/tpus.md), or set "
                         "TPU_LIBRARY_PATH to its path");
    xla_append_tpus(&tpus);
    if (tpus.length == 0)
        return error_set(error, ERROR_UNSUPPORTED,
                         "the job is for TPUs, and this machine has none; choose nodes that have some in the worker's "
                         "template (docs/tpus.md)");
    return 0;
}

int xla_client_open(const struct xla_options *options, struct xla_client **ret_client, struct error *error)
{
    if (check_tpus(options, error) < 0 || check_gpus(options, error) < 0)
        return -1;
    const PJRT_Api *api = open_plugin(options->plugin, error);
    if (api == NULL)
        return -1;
    struct xla_client *client = memory_allocate(1, sizeof *client);
    *client = (struct xla_client){.api = api};
    if (create(client, options, error) < 0) {
        free(client);
        return -1;
    }
    if (find_devices(client, options, error) < 0 || describe(client, options, error) < 0) {
        xla_client_close(client);
        return -1;
    }
    *ret_client = client;
    return 0;
}

void xla_client_close(struct xla_client *client)
{
    if (client == NULL)
        return;
    (void)check(client->api,
                client->api->PJRT_Client_Destroy(&ARGUMENTS(PJRT_Client_Destroy_Args, .client = client->client)), "",
                NULL);
    free(client);
}

const char *xla_client_description(const struct xla_client *client)
{
    return client->description;
}

const char *xla_client_platform(const struct xla_client *client)
{
    return client->platform;
}

bool xla_client_shares_memory(const struct xla_client *client)
{
    return client->shares_memory;
}

int64_t xla_client_free_memory(const struct xla_client *client)
{
    int64_t least = -1;
    for (unsigned i = 0; i < client->device_count && !client->shares_memory; i++) {
        PJRT_Device_MemoryStats_Args memory = ARGUMENTS(PJRT_Device_MemoryStats_Args, .device = client->devices[i]);
        if (check(client->api, client->api->PJRT_Device_MemoryStats(&memory), "", NULL) < 0 ||
            !memory.bytes_limit_is_set)
            return -1;
        int64_t left = memory.bytes_limit - memory.bytes_in_use;
        least = least < 0 || left < least ? left : least;
    }
    return least;
}

/* ---------------------------------------------------------------- executables */

/* A CompileOptionsProto whose executable_build_options (field 3) say num_replicas (4) = num_partitions (5) = 1, with
 * compile_portable_executable (4): such code runs on each device of the client. */
static const char compile_options[] = {0x1a, 0x04, 0x20, 0x01, 0x28, 0x01, 0x20, 0x01};

static int get_executable(const struct xla_client *client, PJRT_LoadedExecutable *loaded,
                          PJRT_Executable **ret_executable, struct error *error)
{
    PJRT_LoadedExecutable_GetExecutable_Args get =
        ARGUMENTS(PJRT_LoadedExecutable_GetExecutable_Args, .loaded_executable = loaded);
    int result =
        check(client->api, client->api->PJRT_LoadedExecutable_GetExecutable(&get), "look at the program", error);
    if (result == 0)
        *ret_executable = get.executable;
    return result;
}

static void release_executable(const PJRT_Api *api, PJRT_Executable *executable)
{
    PJRT_Executable_Destroy_Args destroy = ARGUMENTS(PJRT_Executable_Destroy_Args, .executable = executable);
    (void)check(api, api->PJRT_Executable_Destroy(&destroy), "", NULL);
}

/* All 0 if the plugin does not say. */
static struct xla_memory ask_memory(const PJRT_Api *api, PJRT_Executable *executable)
{
    PJRT_Executable_GetCompiledMemoryStats_Args memory =
        ARGUMENTS(PJRT_Executable_GetCompiledMemoryStats_Args, .executable = executable);
    if (check(api, api->PJRT_Executable_GetCompiledMemoryStats(&memory), "", NULL) < 0)
        return (struct xla_memory){0};
    return (struct xla_memory){.arguments = memory.argument_size_in_bytes,
                               .results = memory.output_size_in_bytes,
                               .workspace = memory.temp_size_in_bytes + memory.generated_code_size_in_bytes,
                               .code = memory.generated_code_size_in_bytes};
}

/* Reads what the plugin says of the compiled program. */
static int inspect(struct xla_executable *executable, struct error *error)
{
    const struct xla_client *client = executable->client;
    PJRT_Executable *program;
    if (get_executable(client, executable->loaded, &program, error) < 0)
        return -1;
    PJRT_Executable_NumOutputs_Args outputs = ARGUMENTS(PJRT_Executable_NumOutputs_Args, .executable = program);
    int result =
        check(client->api, client->api->PJRT_Executable_NumOutputs(&outputs), "count the program's results", error);
    executable->memory = ask_memory(client->api, program);
    release_executable(client->api, program);
    if (result == 0 && outputs.num_outputs > XLA_VALUES_MAX)
        return error_set(error, ERROR_INVALID, "a program with %zu results; at most %d are possible",
                         outputs.num_outputs, XLA_VALUES_MAX);
    executable->result_count = result == 0 ? (unsigned)outputs.num_outputs : 0;
    return result;
}

/* Takes `loaded` over, also when it fails. */
static int wrap(struct xla_client *client, PJRT_LoadedExecutable *loaded, struct xla_executable **ret_executable,
                struct error *error)
{
    struct xla_executable *executable = memory_allocate(1, sizeof *executable);
    *executable = (struct xla_executable){.client = client, .loaded = loaded};
    if (inspect(executable, error) < 0) {
        xla_executable_free(executable);
        return -1;
    }
    *ret_executable = executable;
    return 0;
}

/* Compilers say INTERNAL, and UNIMPLEMENTED, of artifacts that they cannot read. */
static int blame_artifact(struct error *error)
{
    if (error != NULL && (error->kind == ERROR_DEVICE || error->kind == ERROR_UNSUPPORTED))
        error->kind = ERROR_INVALID;
    return -1;
}

static PJRT_Program program_of(const void *artifact, size_t bytes)
{
    return ARGUMENTS(PJRT_Program, .code = (char *)artifact, .code_size = bytes, .format = "mlir", .format_size = 4);
}

int xla_executable_compile(struct xla_client *client, const void *artifact, size_t bytes,
                           struct xla_executable **ret_executable, struct error *error)
{
    PJRT_Program program = program_of(artifact, bytes);
    PJRT_Client_Compile_Args compile =
        ARGUMENTS(PJRT_Client_Compile_Args, .client = client->client, .program = &program,
                  .compile_options = compile_options, .compile_options_size = sizeof compile_options);
    if (check(client->api, client->api->PJRT_Client_Compile(&compile), "compile", error) < 0)
        return blame_artifact(error);
    return wrap(client, compile.executable, ret_executable, error);
}

int xla_executable_serialise(const struct xla_executable *executable, struct buffer *code, struct error *error)
{
    const struct xla_client *client = executable->client;
    PJRT_Executable *program;
    if (get_executable(client, executable->loaded, &program, error) < 0)
        return -1;
    PJRT_Executable_Serialize_Args serialise = ARGUMENTS(PJRT_Executable_Serialize_Args, .executable = program);
    int result = check(client->api, client->api->PJRT_Executable_Serialize(&serialise), "serialise the program", error);
    if (result == 0) {
        result = buffer_append(code, serialise.serialized_bytes, serialise.serialized_bytes_size, error);
        serialise.serialized_executable_deleter(serialise.serialized_executable);
    }
    release_executable(client->api, program);
    return result;
}

int xla_executable_load(struct xla_client *client, const void *code, size_t bytes,
                        struct xla_executable **ret_executable, struct error *error)
{
    PJRT_Executable_DeserializeAndLoad_Args load =
        ARGUMENTS(PJRT_Executable_DeserializeAndLoad_Args, .client = client->client, .serialized_executable = code,
                  .serialized_executable_size = bytes);
    if (check(client->api, client->api->PJRT_Executable_DeserializeAndLoad(&load), "load the compiled program", error) <
        0)
        return -1;
    return wrap(client, load.loaded_executable, ret_executable, error);
}

void xla_executable_free(struct xla_executable *executable)
{
    if (executable == NULL)
        return;
    const PJRT_Api *api = executable->client->api;
    PJRT_LoadedExecutable_Destroy_Args destroy =
        ARGUMENTS(PJRT_LoadedExecutable_Destroy_Args, .executable = executable->loaded);
    (void)check(api, api->PJRT_LoadedExecutable_Destroy(&destroy), "", NULL);
    free(executable);
}

unsigned xla_executable_result_count(const struct xla_executable *executable)
{
    return executable->result_count;
}

struct xla_memory xla_executable_memory(const struct xla_executable *executable)
{
    return executable->memory;
}

/* ---------------------------------------------------------------- runs */

static const PJRT_Buffer_Type types[] = {
    [XLA_FLOAT32] = PJRT_Buffer_Type_F32, [XLA_INT32] = PJRT_Buffer_Type_S32, [XLA_UINT32] = PJRT_Buffer_Type_U32};

static void destroy_buffer(const PJRT_Api *api, PJRT_Buffer *buffer)
{
    if (buffer != NULL)
        (void)check(api, api->PJRT_Buffer_Destroy(&ARGUMENTS(PJRT_Buffer_Destroy_Args, .buffer = buffer)), "", NULL);
}

struct xla_kept {
    struct xla_client *client;
    PJRT_Device *device;
    unsigned count;
    PJRT_Buffer **buffers;
    PJRT_Event **released; /* once the plugin no longer reads host memory */
};

/* A plugin that reads host memory where it is does so until the buffer is destroyed. */
void xla_kept_free(struct xla_kept *kept)
{
    if (kept == NULL)
        return;
    for (unsigned i = 0; i < kept->count; i++)
        destroy_buffer(kept->client->api, kept->buffers[i]);
    for (unsigned i = 0; i < kept->count; i++)
        (void)await(kept->client->api, kept->released[i], "", NULL);
    free(kept->buffers);
    free(kept->released);
    free(kept);
}

static int bring(struct xla_kept *kept, const struct xla_value *arguments, struct error *error)
{
    const PJRT_Api *api = kept->client->api;
    for (unsigned i = 0; i < kept->count; i++) {
        PJRT_Client_BufferFromHostBuffer_Args bringing =
            ARGUMENTS(PJRT_Client_BufferFromHostBuffer_Args, .client = kept->client->client, .data = arguments[i].data,
                      .type = types[arguments[i].type], .dims = arguments[i].shape, .num_dims = arguments[i].rank,
                      .host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy, .device = kept->device);
        if (check(api, api->PJRT_Client_BufferFromHostBuffer(&bringing), "bring an argument", error) < 0)
            return error_wrap(error, "argument %u", i);
        kept->buffers[i] = bringing.buffer;
        kept->released[i] = bringing.done_with_host_buffer;
    }
    return 0;
}

static int bring_to(struct xla_client *client, PJRT_Device *device, const struct xla_value *arguments,
                    unsigned argument_count, struct xla_kept **ret_kept, struct error *error)
{
    struct xla_kept *kept = memory_allocate(1, sizeof *kept);
    *kept = (struct xla_kept){.client = client,
                              .device = device,
                              .count = argument_count,
                              .buffers = memory_allocate(argument_count + 1, sizeof(PJRT_Buffer *)),
                              .released = memory_allocate(argument_count + 1, sizeof(PJRT_Event *))};
    if (bring(kept, arguments, error) < 0) {
        xla_kept_free(kept);
        return -1;
    }
    *ret_kept = kept;
    return 0;
}

/* The caller may change the values once a device with memory of its own has them. */
static int settle(struct xla_kept *kept, struct error *error)
{
    for (unsigned i = 0; i < kept->count && !kept->client->shares_memory; i++) {
        PJRT_Event *released = kept->released[i];
        kept->released[i] = NULL;
        if (await(kept->client->api, released, "bring an argument", error) < 0)
            return error_wrap(error, "argument %u", i);
    }
    return 0;
}

int xla_kept_new(struct xla_client *client, unsigned device, const struct xla_value *arguments, unsigned argument_count,
                 struct xla_kept **ret_kept, struct error *error)
{
    struct xla_kept *kept;
    if (device >= client->device_count)
        return error_set(error, ERROR_INTERNAL, "internal error: a program is run on device %u of %u", device,
                         client->device_count);
    if (bring_to(client, client->devices[device], arguments, argument_count, &kept, error) < 0)
        return -1;
    if (settle(kept, error) < 0) {
        xla_kept_free(kept);
        return -1;
    }
    *ret_kept = kept;
    return 0;
}

/* A small allocation may take a part of what a run has freed. The next run's values then do not fit there, and the pages are kept
 * without use (xla_keep_freed_memory). This happens in the first runs, until such small blocks have been set aside. */
static void trim_heap(struct xla_client *client)
{
    unsigned long long runs = atomic_fetch_add(&client->runs, 1) + 1;
    if (client->shares_memory && (runs <= TRIMMED_RUNS || (runs & (runs - 1)) == 0))
        malloc_trim(0);
}

struct xla_run {
    struct xla_executable *executable;
    const struct xla_kept *kept;
    struct xla_kept *own; /* the arguments of this run alone */
    PJRT_Buffer **arguments, **results;
    PJRT_Event *done;
    PJRT_Event **copied; /* by result: once it is in host memory */
};

void xla_run_free(struct xla_run *run)
{
    if (run == NULL)
        return;
    const PJRT_Api *api = run->executable->client->api;
    unsigned result_count = run->executable->result_count;
    (void)await(api, run->done, "", NULL);
    for (unsigned i = 0; i < result_count; i++)
        (void)await(api, run->copied[i], "", NULL);
    xla_kept_free(run->own);
    for (unsigned i = 0; i < result_count; i++)
        destroy_buffer(api, run->results[i]);
    free(run->arguments);
    free(run->results);
    free(run->copied);
    trim_heap(run->executable->client);
    free(run);
}

/* Those that are kept come first. */
int xla_run_new(struct xla_executable *executable, const struct xla_kept *kept, const struct xla_value *arguments,
                unsigned argument_count, struct xla_run **ret_run, struct error *error)
{
    unsigned all = kept->count + argument_count, result_count = executable->result_count;
    struct xla_run *run = memory_allocate(1, sizeof *run);
    *run = (struct xla_run){.executable = executable,
                            .kept = kept,
                            .arguments = memory_allocate(all + 1, sizeof(PJRT_Buffer *)),
                            .results = memory_allocate(result_count + 1, sizeof(PJRT_Buffer *)),
                            .copied = memory_allocate(result_count + 1, sizeof(PJRT_Event *))};
    if (bring_to(executable->client, kept->device, arguments, argument_count, &run->own, error) < 0) {
        xla_run_free(run);
        return -1;
    }
    for (unsigned i = 0; i < all; i++)
        run->arguments[i] = i < kept->count ? kept->buffers[i] : run->own->buffers[i - kept->count];
    *ret_run = run;
    return 0;
}

int xla_run_start(struct xla_run *run, struct error *error)
{
    PJRT_ExecuteOptions options = ARGUMENTS(PJRT_ExecuteOptions, .extension_start = NULL);
    PJRT_Buffer *const *argument_list = run->arguments;
    PJRT_Buffer **result_list = run->results;
    PJRT_LoadedExecutable_Execute_Args arguments = ARGUMENTS(
        PJRT_LoadedExecutable_Execute_Args, .executable = run->executable->loaded, .options = &options,
        .argument_lists = &argument_list, .num_devices = 1, .num_args = run->kept->count + run->own->count,
        .output_lists = &result_list, .device_complete_events = &run->done, .execute_device = run->kept->device);
    const PJRT_Api *api = run->executable->client->api;
    return check(api, api->PJRT_LoadedExecutable_Execute(&arguments), "run", error);
}

static int check_result(const PJRT_Api *api, PJRT_Buffer *buffer, const struct xla_value *expected, struct error *error)
{
    PJRT_Buffer_Dimensions_Args shape = ARGUMENTS(PJRT_Buffer_Dimensions_Args, .buffer = buffer);
    PJRT_Buffer_ElementType_Args type = ARGUMENTS(PJRT_Buffer_ElementType_Args, .buffer = buffer);
    if (check(api, api->PJRT_Buffer_Dimensions(&shape), "ask for a shape", error) < 0 ||
        check(api, api->PJRT_Buffer_ElementType(&type), "ask for a type", error) < 0)
        return -1;
    if (type.type != types[expected->type])
        return error_set(error, ERROR_INVALID,
                         "does not have the type that program.json says; export the program again");
    if (shape.num_dims != expected->rank || memcmp(shape.dims, expected->shape, shape.num_dims * sizeof(int64_t)) != 0)
        return error_set(error, ERROR_INVALID,
                         "does not have the shape that program.json says; export the program again");
    return 0;
}

/* Begins to copy the results, all at a time: a thread of the plugin copies each, and waking one takes longer than to copy
 * a small result. */
static int begin_fetch(struct xla_run *run, const struct xla_value *results, struct error *error)
{
    const PJRT_Api *api = run->executable->client->api;
    int64_t row_major[XLA_RANK_MAX];
    for (unsigned i = 0; i < run->executable->result_count; i++) {
        unsigned rank = results[i].rank;
        for (unsigned d = 0; d < rank; d++)
            row_major[d] = rank - 1 - d;
        PJRT_Buffer_MemoryLayout layout =
            ARGUMENTS(PJRT_Buffer_MemoryLayout, .type = PJRT_Buffer_MemoryLayout_Type_Tiled);
        layout.tiled =
            ARGUMENTS(PJRT_Buffer_MemoryLayout_Tiled, .minor_to_major = row_major, .minor_to_major_size = rank);
        PJRT_Buffer_ToHostBuffer_Args copy =
            ARGUMENTS(PJRT_Buffer_ToHostBuffer_Args, .src = run->results[i], .host_layout = rank > 0 ? &layout : NULL,
                      .dst = results[i].data, .dst_size = (size_t)xla_value_elements(&results[i]) * sizeof(float));
        if (check_result(api, run->results[i], &results[i], error) < 0 ||
            check(api, api->PJRT_Buffer_ToHostBuffer(&copy), "copy", error) < 0)
            return error_wrap(error, "result %u", i);
        run->copied[i] = copy.event;
    }
    return 0;
}

/* The plugin may write to `results` until the run is freed, if this fails. */
static int fetch(struct xla_run *run, const struct xla_value *results, struct error *error)
{
    const PJRT_Api *api = run->executable->client->api;
    if (begin_fetch(run, results, error) < 0)
        return -1;
    for (unsigned i = 0; i < run->executable->result_count; i++) {
        PJRT_Event *copied = run->copied[i];
        run->copied[i] = NULL;
        if (await(api, copied, "copy", error) < 0)
            return error_wrap(error, "result %u", i);
    }
    return 0;
}

int xla_run_finish(struct xla_run *run, const struct xla_value *results, unsigned result_count, struct error *error)
{
    struct xla_executable *executable = run->executable;
    if (result_count != executable->result_count)
        return error_set(error, ERROR_INVALID, "the program has %u results, and its document says %u",
                         executable->result_count, result_count);
    PJRT_Event *done = run->done;
    run->done = NULL;
    if (await(executable->client->api, done, "run", error) < 0 || fetch(run, results, error) < 0)
        return -1;
    return 0;
}

/* ---------------------------------------------------------------- topologies */

struct xla_topology {
    const PJRT_Api *api;
    PJRT_TopologyDescription *description;
    unsigned device_count;
};

static int count_devices(struct xla_topology *topology, struct error *error)
{
    const PJRT_Api *api = topology->api;
    PJRT_TopologyDescription_GetDeviceDescriptions_Args devices =
        ARGUMENTS(PJRT_TopologyDescription_GetDeviceDescriptions_Args, .topology = topology->description);
    if (check(api, api->PJRT_TopologyDescription_GetDeviceDescriptions(&devices), "list the slice's devices", error) <
        0)
        return -1;
    topology->device_count = (unsigned)devices.num_descriptions;
    return 0;
}

int xla_topology_open(const char *plugin, const char *name, struct xla_topology **ret_topology, struct error *error)
{
    (void)setenv("TPU_SKIP_MDS_QUERY", "1", 0); /* libtpu would ask Google's metadata server which machine this is */
    (void)setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
    (void)setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4", 0); /* of this process, whatever it compiles for */
    (void)setenv("TPU_MIN_LOG_LEVEL", "3", 0);
    const PJRT_Api *api = open_plugin(plugin, error);
    if (api == NULL)
        return -1;
    char what[64];
    PJRT_TopologyDescription_Create_Args create =
        ARGUMENTS(PJRT_TopologyDescription_Create_Args, .topology_name = name, .topology_name_size = strlen(name));
    snprintf(what, sizeof what, "topology %s", name);
    if (check(api, api->PJRT_TopologyDescription_Create(&create), what, error) < 0)
        return blame_artifact(error);
    struct xla_topology *topology = memory_allocate(1, sizeof *topology);
    *topology = (struct xla_topology){.api = api, .description = create.topology};
    if (count_devices(topology, error) < 0) {
        xla_topology_free(topology);
        return -1;
    }
    *ret_topology = topology;
    return 0;
}

void xla_topology_free(struct xla_topology *topology)
{
    if (topology == NULL)
        return;
    PJRT_TopologyDescription_Destroy_Args destroy =
        ARGUMENTS(PJRT_TopologyDescription_Destroy_Args, .topology = topology->description);
    (void)check(topology->api, topology->api->PJRT_TopologyDescription_Destroy(&destroy), "", NULL);
    free(topology);
}

unsigned xla_topology_device_count(const struct xla_topology *topology)
{
    return topology->device_count;
}

int xla_topology_compile(const struct xla_topology *topology, const void *artifact, size_t bytes,
                         struct xla_memory *ret_memory, struct error *error)
{
    PJRT_Program program = program_of(artifact, bytes);
    PJRT_Compile_Args compile =
        ARGUMENTS(PJRT_Compile_Args, .topology = topology->description, .program = &program,
                  .compile_options = compile_options, .compile_options_size = sizeof compile_options);
    if (check(topology->api, topology->api->PJRT_Compile(&compile), "compile", error) < 0)
        return blame_artifact(error);
    *ret_memory = ask_memory(topology->api, compile.executable);
    release_executable(topology->api, compile.executable);
    return 0;
}
