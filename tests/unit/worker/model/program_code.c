/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled functions of a program, with a plugin that computes nothing: what of them is kept, and what a call holds.
 */
#include "worker/model/program.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "worker/xla/client.h"

/* ---- a plugin */

struct xla_client {
    int open;
    bool has_own_memory;
    const char *platform;
    int64_t free_memory;
};
struct xla_executable {
    struct xla_memory memory;
};
struct xla_kept {
    unsigned device, count;
};
static int kept, brought; /* how many are kept, and have been */
static unsigned arguments_of_last;
static struct xla_client plugin = {.platform = "cpu", .free_memory = -1};
static int executables;            /* that have not been freed */
static int loads, loads_that_work; /* how many of them, from the first one on */
static struct xla_memory memory_of_next[3];
static unsigned next_memory;
static unsigned device_of_last;   /* call */
static char artifact_of_last[16]; /* compilation */
static uint32_t seed_of_last[2];  /* of a run whose only argument is kept */

int xla_client_open(const struct xla_options *options, struct xla_client **ret_client, struct error *error)
{
    (void)options, (void)error;
    plugin.open++;
    *ret_client = &plugin;
    return 0;
}

void xla_client_close(struct xla_client *client)
{
    if (client != NULL)
        client->open--;
}

const char *xla_client_description(const struct xla_client *client)
{
    (void)client;
    return "plugin of a test";
}

const char *xla_client_platform(const struct xla_client *client)
{
    return client->platform;
}

bool xla_client_shares_memory(const struct xla_client *client)
{
    return !client->has_own_memory;
}

int64_t xla_client_free_memory(const struct xla_client *client)
{
    return client->free_memory;
}

int xla_executable_compile(struct xla_client *client, const void *artifact, size_t bytes,
                           struct xla_executable **ret_executable, struct error *error)
{
    (void)client, (void)error;
    snprintf(artifact_of_last, sizeof artifact_of_last, "%.*s", (int)bytes, (const char *)artifact);
    *ret_executable = memory_allocate(1, sizeof **ret_executable);
    (*ret_executable)->memory = memory_of_next[next_memory++ % 3];
    executables++;
    return 0;
}

void xla_executable_free(struct xla_executable *executable)
{
    if (executable == NULL)
        return;
    executables--;
    free(executable);
}

int xla_executable_serialise(const struct xla_executable *executable, struct buffer *code, struct error *error)
{
    (void)executable;
    return buffer_append(code, "code", 4, error);
}

int xla_executable_load(struct xla_client *client, const void *code, size_t bytes,
                        struct xla_executable **ret_executable, struct error *error)
{
    if (loads++ >= loads_that_work)
        return error_set(error, ERROR_CORRUPT, "no code of this plugin");
    return xla_executable_compile(client, code, bytes, ret_executable, error);
}

unsigned xla_executable_result_count(const struct xla_executable *executable)
{
    (void)executable;
    return 0;
}

struct xla_memory xla_executable_memory(const struct xla_executable *executable)
{
    return executable->memory;
}

int xla_kept_new(struct xla_client *client, unsigned device, const struct xla_value *arguments, unsigned argument_count,
                 struct xla_kept **ret_kept, struct error *error)
{
    (void)client, (void)error;
    if (argument_count == 1 && arguments[0].type == XLA_UINT32 && xla_value_elements(&arguments[0]) == 2)
        memcpy(seed_of_last, arguments[0].data, sizeof seed_of_last);
    *ret_kept = memory_allocate(1, sizeof **ret_kept);
    **ret_kept = (struct xla_kept){.device = device, .count = argument_count};
    kept++;
    brought++;
    return 0;
}

void xla_kept_free(struct xla_kept *what)
{
    if (what != NULL)
        kept--; /* other suites' threads pass NULL */
    free(what);
}

/* What runs have done: N brings the arguments, S starts, F ends, and each has a letter for its run, from a on. */
static char course[32];
static unsigned runs;

struct xla_run {
    char letter;
};

static void note(char what, const struct xla_run *run)
{
    size_t length = strlen(course);
    snprintf(course + length, sizeof course - length, "%c%c", what, run->letter);
}

int xla_run_new(struct xla_executable *executable, const struct xla_kept *first, const struct xla_value *arguments,
                unsigned argument_count, struct xla_run **ret_run, struct error *error)
{
    (void)executable, (void)arguments, (void)error;
    device_of_last = first->device;
    arguments_of_last = first->count + argument_count;
    *ret_run = memory_allocate(1, sizeof **ret_run);
    (*ret_run)->letter = (char)('a' + runs++ % 26);
    note('N', *ret_run);
    return 0;
}

int xla_run_start(struct xla_run *run, struct error *error)
{
    (void)error;
    note('S', run);
    return 0;
}

int xla_run_finish(struct xla_run *run, const struct xla_value *results, unsigned result_count, struct error *error)
{
    (void)error;
    for (unsigned i = 0; i < result_count && result_count == 3;
         i++) /* of the tests' initialise, and of evaluate with a count */
        for (int64_t value = 0; value < xla_value_elements(&results[i]); value++)
            ((float *)results[i].data)[value] = (float)(i + 1);
    note('F', run);
    return 0;
}

void xla_run_free(struct xla_run *run)
{
    free(run);
}

int xla_topology_open(const char *path, const char *name, struct xla_topology **ret_topology, struct error *error)
{
    (void)path, (void)name, (void)ret_topology;
    return error_set(error, ERROR_UNSUPPORTED, "no topologies");
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
    return error_set(error, ERROR_UNSUPPORTED, "no topologies");
}

/* ---- a program */

#define DOCUMENT                                                                                                       \
    "{\"format\":\"coxswain-program/1\",\"batch\":4,"                                                                  \
    "\"parameters\":[{\"name\":\"kernel\",\"shape\":[6,3]},{\"name\":\"scale\",\"shape\":[]}],"                        \
    "\"state\":[{\"name\":\"mean\",\"shape\":[3]}],"                                                                   \
    "\"input\":{\"type\":\"float32\",\"shape\":[6]},\"target\":{\"type\":\"int32\",\"shape\":[],\"classes\":3},"       \
    "\"entries\":{\"lossAndGradients\":{\"file\":\"code\"},\"evaluate\":{\"file\":\"code\"}}}"

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    fclose(file);
}

static void remove_file(const char *folder, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static struct program *open_program(void)
{
    char folder[] = "/tmp/program-XXXXXX";
    struct program *program;
    struct error error = ERROR_INIT;
    cr_assert_not_null(mkdtemp(folder));
    write_file(folder, "program.json", DOCUMENT);
    write_file(folder, "code", "artifact");
    cr_assert_eq(program_open(folder, PROGRAM_TRAINS | PROGRAM_EVALUATES, "cpu", &program, &error), 0, "%s",
                 error.message);
    cr_assert_eq(program_open_engine(program, &(struct xla_options){.plugin = "plugin"}, &error), 0, "%s",
                 error.message);
    remove_file(folder, "program.json");
    remove_file(folder, "code");
    rmdir(folder);
    return program;
}

Test(program_code, of_code_that_cannot_be_loaded_nothing_is_kept)
{
    struct program *program = open_program();
    struct error error = ERROR_INIT;
    SCOPED_BUFFER code = BUFFER_INIT(4096);
    cr_assert_eq(program_compile(program, &error), 0, "%s", error.message);
    cr_assert_eq(program_serialise(program, &code, &error), 0, "%s", error.message);
    program_free(program);
    for (loads_that_work = 0; loads_that_work < 2; loads_that_work++) {
        loads = 0;
        program = open_program();
        cr_assert_eq(program_load(program, code.data, code.length, &error), -1);
        cr_expect_eq(executables, 0, "%d after %d of 2 functions", executables, loads_that_work);
        cr_assert_eq(program_compile(program, &error), 0);
        cr_expect_eq(executables, 2);
        program_free(program);
        cr_expect_eq(executables, 0);
    }
    loads = 0;
    program = open_program();
    cr_assert_eq(program_load(program, code.data, code.length - 1, &error), -1);
    cr_expect_eq(executables, 0, "of code that is cut short");
    program_free(program);
    cr_expect_eq(plugin.open, 0);
}

/* Of the layout's 3 + 18 + 1 values all but the first tensor are at places that do not suit a plugin. */
#define COPIES ((18 + 1) * 4 + 2 * 4 * (6 * 4 + 4))

static int64_t call_bytes(struct xla_memory training, struct xla_memory evaluation)
{
    struct program *program = open_program();
    memory_of_next[0] = training;
    memory_of_next[1] = evaluation;
    next_memory = 0;
    cr_assert_eq(program_compile(program, NULL), 0);
    int64_t bytes = program_call_bytes(program);
    program_free(program);
    return bytes;
}

Test(program_code, a_call_holds_its_results_and_copies_of_its_arguments)
{
    struct xla_memory training = {.results = 1000, .workspace = 100};
    cr_expect_eq(call_bytes(training, (struct xla_memory){.results = 8, .workspace = 500}), 1100 + COPIES);
    cr_expect_eq(call_bytes(training, (struct xla_memory){.results = 8, .workspace = 5000}), 5008 + COPIES);
}

#define OF_TPUS                                                                                                        \
    "{\"format\":\"coxswain-program/1\",\"batch\":4,\"parameters\":[{\"name\":\"scale\",\"shape\":[]}],"               \
    "\"input\":{\"type\":\"float32\",\"shape\":[6]},\"target\":{\"type\":\"int32\",\"shape\":[],\"classes\":3},"       \
    "\"entries\":{\"evaluate\":{\"file\":\"code\",\"platforms\":{\"tpu\":\"code.tpu\",\"cuda\":\"../code\"}}}}"

/* What is compiled for that platform. */
static const char *compiled(const char *folder, const char *platform)
{
    struct program *program;
    struct error error = ERROR_INIT;
    cr_assert_eq(program_open(folder, PROGRAM_EVALUATES, platform, &program, &error), 0, "%s", error.message);
    plugin.platform = platform;
    cr_assert_eq(program_open_engine(program, &(struct xla_options){.plugin = "plugin"}, &error), 0);
    cr_assert_eq(program_compile(program, &error), 0, "%s", error.message);
    program_free(program);
    return artifact_of_last;
}

Test(program_code, a_function_may_have_a_file_for_a_platform)
{
    char folder[] = "/tmp/program-XXXXXX";
    struct program *program;
    struct error error = ERROR_INIT;
    cr_assert_not_null(mkdtemp(folder));
    write_file(folder, "program.json", OF_TPUS);
    write_file(folder, "code", "artifact");
    write_file(folder, "code.tpu", "for TPUs");
    cr_expect_str_eq(compiled(folder, "tpu"), "for TPUs");
    cr_expect_str_eq(compiled(folder, "cpu"), "artifact");
    cr_expect_str_eq(compiled(folder, "rocm"), "artifact");
    cr_expect_eq(program_open(folder, PROGRAM_EVALUATES, "cuda", &program, &error), -1);
    cr_expect_not_null(strstr(error.message, "entries.evaluate.platforms.cuda: must be the name"), "%s", error.message);
    cr_assert_eq(program_open(folder, PROGRAM_EVALUATES, "cpu", &program, &error), 0);
    plugin.platform = "tpu";
    cr_expect_eq(program_open_engine(program, &(struct xla_options){.plugin = "plugin"}, &error), -1);
    cr_expect_not_null(strstr(error.message, "the PJRT plugin is for tpu, and devices.type for cpu"), "%s",
                       error.message);
    program_free(program);
    cr_assert_eq(program_open(folder, PROGRAM_EVALUATES, "cpu", &program, &error), 0);
    plugin.platform = "rocm";
    cr_expect_eq(program_open_engine(program, &(struct xla_options){.plugin = "plugin"}, &error), 0, "no other files");
    program_free(program);
    plugin.platform = "cpu";
    remove_file(folder, "program.json");
    remove_file(folder, "code");
    remove_file(folder, "code.tpu");
    rmdir(folder);
}

Test(program_code, of_a_device_with_memory_of_its_own_only_copies_of_arguments_are_in_the_hosts)
{
    plugin.has_own_memory = true;
    struct xla_memory training = {.results = 1000, .workspace = 100};
    cr_expect_eq(call_bytes(training, training), COPIES);
    plugin.has_own_memory = false;
}

Test(program_code, a_graph_runs_the_program_on_its_device_of_the_engine)
{
    struct program *program = open_program();
    struct device *device = NULL;
    struct device_stream *stream = NULL;
    struct graph *graph = NULL;
    struct error error = ERROR_INIT;
    float parameters[3 + 18 + 1] = {0}, inputs[4 * 6] = {0};
    int32_t targets[4] = {0};
    struct loss_sums sums;
    const struct graph_pass pass = {
        .parameters = parameters, .inputs = inputs, .targets = targets, .examples = 4, .sums = &sums};
    cr_assert_eq(program_compile(program, NULL), 0);
    cr_expect_eq(device_of_last, 0);
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &device, NULL), 0);
    cr_assert_eq(device_stream_new(device, &stream, NULL), 0);
    const struct graph_options options = {
        .device = device, .program = program, .program_device = 2, .max_examples = 4, .evaluation_only = true};
    cr_assert_eq(graph_new(&options, &graph, &error), 0, "%s", error.message);
    cr_assert_eq(graph_evaluate(graph, stream, &pass, &error), 0, "%s", error.message);
    cr_assert_eq(device_stream_synchronise(stream, &error), 0, "%s", error.message);
    cr_expect_eq(device_of_last, 2);
    graph_free(graph);
    device_stream_free(stream);
    device_close(device);
    program_free(program);
}

/* A graph that trains and evaluates with it, in passes of three calls. */
struct run_of_graph {
    struct program *program;
    struct device *device;
    struct device_stream *stream;
    struct graph *graph;
    float parameters[3 + 18 + 1], gradients[3 + 18 + 1], inputs[12 * 6];
    int32_t targets[12];
    struct loss_sums sums;
};

static void begin(struct run_of_graph *run)
{
    struct error error = ERROR_INIT;
    *run = (struct run_of_graph){.program = open_program()};
    cr_assert_eq(program_compile(run->program, NULL), 0);
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &run->device, NULL), 0);
    cr_assert_eq(device_stream_new(run->device, &run->stream, NULL), 0);
    const struct graph_options options = {.device = run->device, .program = run->program, .max_examples = 12};
    cr_assert_eq(graph_new(&options, &run->graph, &error), 0, "%s", error.message);
}

static void pass(struct run_of_graph *run, bool trains, bool weights_stand)
{
    struct error error = ERROR_INIT;
    struct graph_pass pass = {.parameters = run->parameters,
                              .inputs = run->inputs,
                              .targets = run->targets,
                              .examples = 10,
                              .gradients = run->gradients,
                              .weights_stand = weights_stand,
                              .sums = &run->sums};
    course[0] = '\0';
    runs = 0;
    cr_assert_eq((trains ? graph_forward_backward : graph_evaluate)(run->graph, run->stream, &pass, &error), 0, "%s",
                 error.message);
    cr_assert_eq(device_stream_synchronise(run->stream, &error), 0, "%s", error.message);
}

static void end(struct run_of_graph *run)
{
    graph_free(run->graph);
    device_stream_free(run->stream);
    device_close(run->device);
    program_free(run->program);
}

/* Three tensors go to the device once for each pass, or for several passes with the same parameters; input, target, weight and seed with
 * each call. */
Test(program_code, parameters_stay_on_the_device_until_they_change)
{
    struct run_of_graph run;
    begin(&run);
    cr_expect_eq(kept, 0, "of the calls that try the functions out");
    brought = 0;
    for (unsigned i = 0; i < 4; i++) {
        pass(&run, i < 2, i % 2 == 1);
        cr_expect_eq(brought, 1 + (int)i / 2, "%d times by pass %u, of three calls", brought, i);
        cr_expect_eq(arguments_of_last, i < 2 ? 3 + 4 : 3 + 3);
        cr_expect_eq(kept, 1);
    }
    end(&run);
    cr_expect_eq(kept, 0);
}

Test(program_code, examples_travel_while_the_call_before_computes)
{
    struct run_of_graph run;
    begin(&run);
    pass(&run, true, false);
    cr_expect_str_eq(course, "NaSaFaNbSbFbNcScFc", "in the host's memory");
    plugin.has_own_memory = true;
    pass(&run, true, false);
    cr_expect_str_eq(course, "NaSaNbFaSbNcFbScFc");
    pass(&run, false, false);
    cr_expect_str_eq(course, "NaSaNbFaSbNcFbScFc");
    plugin.has_own_memory = false;
    end(&run);
}

/* 22 values of parameters and state, and twice 4 examples of 6 values and a target. */
#define NEEDED ((3 + 18 + 1) * 4 + 2 * 4 * (6 + 1) * 4 + (5 << 20) + 1000)

Test(program_code, what_does_not_fit_into_a_devices_memory_is_refused_with_figures)
{
    struct error error = ERROR_INIT;
    SCOPED_BUFFER code = BUFFER_INIT(4096);
    memory_of_next[0] = (struct xla_memory){.results = 1000, .workspace = 5 << 20};
    memory_of_next[1] = (struct xla_memory){.results = 8, .workspace = 2 << 20};
    next_memory = 0;
    struct program *program = open_program();
    plugin.free_memory = NEEDED;
    cr_assert_eq(program_compile(program, &error), 0, "%s", error.message);
    cr_assert_eq(program_serialise(program, &code, &error), 0);
    program_free(program);
    next_memory = 0;
    program = open_program();
    plugin.free_memory = NEEDED - 1;
    cr_expect_eq(program_compile(program, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE);
    cr_expect_not_null(strstr(error.message, "lossAndGradients needs 5.0: 0.0 for parameters and state"), "%s",
                       error.message);
    cr_expect_not_null(strstr(error.message, "export the program with a smaller batch"), "%s", error.message);
    program_free(program);
    next_memory = 0, loads = 0, loads_that_work = 2;
    program = open_program();
    error = (struct error)ERROR_INIT;
    cr_expect_eq(program_load(program, code.data, code.length, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE);
    cr_expect_eq(executables, 0);
    program_free(program);
    plugin.free_memory = -1;
}

Test(program_code, results_are_counted_also_where_the_plugin_does_not_say)
{
    struct xla_memory nothing = {0};
    cr_expect_eq(call_bytes(nothing, nothing), (3 + 18 + 1) * 4 + COPIES);
}

#define STARTS                                                                                                         \
    "{\"format\":\"coxswain-program/1\",\"batch\":4,"                                                                  \
    "\"parameters\":[{\"name\":\"kernel\",\"shape\":[6,3]},{\"name\":\"scale\",\"shape\":[]}],"                        \
    "\"state\":[{\"name\":\"mean\",\"shape\":[3]}],"                                                                   \
    "\"input\":{\"type\":\"float32\",\"shape\":[6]},\"target\":{\"type\":\"int32\",\"shape\":[],\"classes\":3},"       \
    "\"entries\":{\"evaluate\":{\"file\":\"code\"},\"initialise\":{\"file\":\"start\"}}"

/* Opens a program with that document in a folder of its own. */
static struct program *open_to_start(const char *document, unsigned uses)
{
    char folder[] = "/tmp/program-XXXXXX";
    struct program *program;
    struct error error = ERROR_INIT;
    cr_assert_not_null(mkdtemp(folder));
    write_file(folder, "program.json", document);
    write_file(folder, "code", "artifact");
    write_file(folder, "start", "first values");
    cr_assert_eq(program_open(folder, uses, "cpu", &program, &error), 0, "%s", error.message);
    remove_file(folder, "program.json");
    remove_file(folder, "code");
    remove_file(folder, "start");
    rmdir(folder);
    return program;
}

Test(program_code, a_program_computes_its_first_values_from_the_seed)
{
    float values[3 + 18 + 1];
    struct error error = ERROR_INIT;
    struct program *program = open_to_start(STARTS "}", PROGRAM_EVALUATES | PROGRAM_INITIALISES);
    cr_expect_eq(program_uses(program), PROGRAM_EVALUATES | PROGRAM_INITIALISES);
    cr_assert_eq(program_open_engine(program, &(struct xla_options){.plugin = "plugin"}, &error), 0);
    cr_expect_eq(program_initialise(program, 1, values, &error), -1, "before it is compiled");
    error = (struct error)ERROR_INIT;
    cr_assert_eq(program_compile(program, &error), 0, "%s", error.message);
    cr_expect_str_eq(artifact_of_last, "first values");
    cr_assert_eq(program_initialise(program, ((uint64_t)7 << 32) + 9, values, &error), 0, "%s", error.message);
    cr_expect(seed_of_last[0] == 7 && seed_of_last[1] == 9, "%u %u", seed_of_last[0], seed_of_last[1]);
    cr_expect_eq(values[0], 3, "state is first in the layout, and last among the results");
    cr_expect_eq(values[3], 1);
    cr_expect_eq(values[3 + 18], 2);
    cr_expect_eq(kept, 0);
    program_free(program);
}

Test(program_code, weights_go_before_the_function_that_computes_them)
{
    struct program *program = open_to_start(STARTS ",\"weights\":\"w\"}", PROGRAM_EVALUATES | PROGRAM_INITIALISES);
    cr_expect_eq(program_uses(program), PROGRAM_EVALUATES);
    program_free(program);
    program = open_to_start(STARTS ",\"weights\":\"w\"}", PROGRAM_INITIALISES);
    cr_expect_eq(program_uses(program), 0);
    program_free(program);
    program = open_program();
    cr_expect_eq(program_uses(program), PROGRAM_TRAINS | PROGRAM_EVALUATES);
    program_free(program);
}

#define IGNORES                                                                                                        \
    "{\"format\":\"coxswain-program/1\",\"batch\":4,\"parameters\":[{\"name\":\"scale\",\"shape\":[]}],"               \
    "\"input\":{\"type\":\"float32\",\"shape\":[6]},"                                                                  \
    "\"target\":{\"type\":\"int32\",\"shape\":[2],\"classes\":3,\"ignored\":-100},"                                    \
    "\"entries\":{\"evaluate\":{\"file\":\"code\"}}}"

static int evaluate(struct graph *graph, struct device_stream *stream, const struct graph_pass *pass,
                    struct error *error)
{
    *error = (struct error)ERROR_INIT;
    return graph_evaluate(graph, stream, pass, error) < 0 || device_stream_synchronise(stream, error) < 0 ? -1 : 0;
}

Test(program_code, targets_that_are_ignored_do_not_count)
{
    struct program *program = open_to_start(IGNORES, PROGRAM_EVALUATES);
    struct device *device = NULL;
    struct device_stream *stream = NULL;
    struct graph *graph = NULL;
    struct error error = ERROR_INIT;
    float parameters[1] = {0}, inputs[8 * 6] = {0};
    int32_t targets[8 * 2] = {0, -100, 2, -100};
    struct loss_sums sums = {0};
    const struct graph_pass pass = {
        .parameters = parameters, .inputs = inputs, .targets = targets, .examples = 8, .sums = &sums};
    cr_assert_eq(program_open_engine(program, &(struct xla_options){.plugin = "plugin"}, &error), 0);
    cr_assert_eq(program_compile(program, &error), 0, "%s", error.message);
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, &device, NULL), 0);
    cr_assert_eq(device_stream_new(device, &stream, NULL), 0);
    const struct graph_options options = {
        .device = device, .program = program, .max_examples = 8, .evaluation_only = true};
    cr_assert_eq(graph_new(&options, &graph, &error), 0, "%s", error.message);
    cr_assert_eq(evaluate(graph, stream, &pass, &error), 0, "%s", error.message);
    cr_expect(sums.loss == 2 * 1 && sums.correct == 2 * 2 && sums.count == 2 * 3, "what the two calls have said");
    targets[5] = -1;
    cr_expect_eq(evaluate(graph, stream, &pass, &error), -1);
    cr_expect_not_null(strstr(error.message, "example 2 of the batch has the target -1"), "%s", error.message);
    graph_free(graph);
    device_stream_free(stream);
    device_close(device);
    program_free(program);
}
