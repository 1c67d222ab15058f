/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/compilation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child_environment.h"
#include "common/contract/environment.h"
#include "common/hexadecimal.h"
#include "common/json.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/version.h"
#include "worker/checkpoint/file.h"
#include "worker/comm/crew_key.h"
#include "worker/device/host_memory.h"
#include "worker/model/program.h"
#include "worker/train/error_exit_code.h"
#include "worker/train/step_plan.h"
#include "worker/train/trainer.h"
#include "worker/xla/client.h"

#define PURPOSE "coxswain compiled program"
#define WORDS_MAX 65536
#define NAME_BYTES 16 /* of the digest are the file's name */
#define PART_BYTES 4  /* of a part of trainer->xla.code */
#define KEPT_MAX 16   /* files: for kinds of members, and for programs and plugins that may come back */
#define CPU_INFO "/proc/cpuinfo"
#define ANSWER 3 /* the child's descriptor for the code */
#define JOB_MAX ((size_t)1 << 20)

/* ---------------------------------------------------------------- the cache */

/* Writes a digest of the text, long enough to tell apart what differs by chance, not on purpose. */
static void write_digest(const struct buffer *text, char ret_digest[2 * PART_BYTES + 1])
{
    unsigned char digest[HMAC_BYTES];
    hmac_sha256(PURPOSE, sizeof PURPOSE, text->data, text->length, digest);
    hexadecimal_write(digest, PART_BYTES, ret_digest);
}

/* Sets trainer->xla.code. */
static void describe_code(struct trainer *trainer, const struct xla_options *options, int threads)
{
    struct stat plugin = {0};
    char digests[3][2 * PART_BYTES + 1];
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    const char *platform = xla_options_platform(options);
    bool on_cpus = strcmp(platform, "cpu") == 0;
    if (on_cpus)
        xla_append_processor(CPU_INFO, &text);
    else if (strcmp(platform, "tpu") == 0)
        xla_append_tpus(&text);
    else
        xla_append_gpus(&text);
    write_digest(&text, digests[0]);
    buffer_clear(&text);
    (void)stat(options->plugin, &plugin);
    (void)buffer_format(&text, "%" PRIdMAX, (intmax_t)plugin.st_size);
    write_digest(&text, digests[1]);
    buffer_clear(&text);
    xla_append_settings(&text);
    write_digest(&text, digests[2]);
    snprintf(trainer->xla.code, sizeof trainer->xla.code, "/%d/%s/%s/%s", on_cpus ? threads : 0, digests[0], digests[1],
             digests[2]);
}

/* NULL: nothing is cached. */
static char *cache_path(const struct trainer *trainer, const struct xla_options *options, int threads,
                        struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    struct stat plugin;
    unsigned char digest[HMAC_BYTES];
    char name[2 * NAME_BYTES + 1];
    if (trainer->files.checkpoint_directory == NULL || !crew_key_is_set() || stat(options->plugin, &plugin) < 0)
        return NULL;
    program_digest(trainer->xla.program, digest);
    (void)buffer_append(&text, digest, sizeof digest, error);
    (void)buffer_format(&text, "%s %" PRIdMAX " %" PRIdMAX " %d %u %u ", COXSWAIN_VERSION, (intmax_t)plugin.st_size,
                        (intmax_t)plugin.st_mtime, threads, options->tpus, options->cpu_devices);
    xla_append_processor(CPU_INFO, &text);
    xla_append_tpus(&text);
    if (options->gpus > 0)
        xla_append_gpus(&text);
    xla_append_settings(&text);
    hmac_sha256(PURPOSE, sizeof PURPOSE, text.data, text.length, digest);
    buffer_clear(&text);
    (void)buffer_format(&text, "%s/" COMPILATION_CACHE "/", trainer->files.checkpoint_directory);
    hexadecimal_write(digest, NAME_BYTES, name);
    (void)buffer_append_string(&text, name, error);
    return buffer_take(&text);
}

/* *ret_loaded is false if the program must be compiled: nothing is cached, or the file is not valid. Opens the plugin's
 * devices only for a file that somebody with the key has written. */
static int load_cached(struct trainer *trainer, const char *path, const struct xla_options *options, bool *ret_loaded,
                       struct error *error)
{
    SCOPED_BUFFER file = BUFFER_INIT(PROGRAM_CODE_MAX);
    *ret_loaded = false;
    if (path == NULL || file_read(path, &file, NULL) < 0 || file.length < CREW_PROOF_BYTES)
        return 0;
    const unsigned char *code = (const unsigned char *)file.data + CREW_PROOF_BYTES;
    size_t length = file.length - CREW_PROOF_BYTES;
    if (!crew_key_accepts(PURPOSE, code, length, (const unsigned char *)file.data))
        return 0;
    if (program_open_engine(trainer->xla.program, options, error) < 0)
        return -1;
    *ret_loaded = program_load(trainer->xla.program, code, length, NULL) == 0;
    if (*ret_loaded)
        (void)utimensat(AT_FDCWD, path, NULL, 0); /* so that it is not among the oldest (file_keep_newest) */
    return 0;
}

static void keep(const char *path, const struct buffer *code)
{
    SCOPED_BUFFER file;
    unsigned char proof[CREW_PROOF_BYTES];
    buffer_init(&file, PROGRAM_CODE_MAX + sizeof proof);
    if (path == NULL)
        return;
    SCOPED_FREE char *folder = memory_copy_string(path);
    *strrchr(folder, '/') = '\0';
    crew_key_prove(PURPOSE, code->data, code->length, proof);
    if (buffer_append(&file, proof, sizeof proof, NULL) == 0 &&
        buffer_append(&file, code->data, code->length, NULL) == 0 && file_make_directories(folder, NULL) == 0)
        (void)file_replace(path, file.data, file.length, NULL);
    file_keep_newest(folder, KEPT_MAX);
}

/* ---------------------------------------------------------------- layers */

int compilation_lower(const struct job_document *job, int64_t batch, unsigned uses, struct program **ret_program,
                      struct error *error)
{
    const struct device_options cpu = {.type = DEVICE_TYPE_CPU, .threads = 1};
    struct device *device;
    struct graph *graph;
    if (batch > PROGRAM_BATCH_MAX)
        return error_set(error, ERROR_INVALID,
                         "a logical shard has %" PRId64 " examples, above XLA's limit of %d here; "
                         "set training.logicalShards to more",
                         batch, PROGRAM_BATCH_MAX);
    if (device_open(&cpu, &device, error) < 0)
        return -1;
    const struct graph_options options = {.device = device,
                                          .model = &job->model,
                                          .precision = job->training.precision,
                                          .max_examples = batch,
                                          .layout_only = true};
    int result = graph_new(&options, &graph, error);
    if (result == 0) {
        result = program_from_layers(graph, job->training.precision, batch, uses, ret_program, error);
        graph_free(graph);
    }
    device_close(device);
    return result;
}

/* ---------------------------------------------------------------- the process that compiles */

/* What the child compiles: the program in `folder`, or the layers of the job, which it gets in its environment. (The file that this
 * process has read may be gone, or another one by now.) */
struct compiled_model {
    const char *folder; /* NULL: layers */
    unsigned uses;
    const struct job_document *job;
    int64_t batch; /* of a call of layers */
};

#define CHILD_ARGUMENTS_MAX 20

struct child_arguments {
    const char *values[CHILD_ARGUMENTS_MAX];
    unsigned count;
    char numbers[5][24];
    unsigned number_count;
};

static void add_argument(struct child_arguments *arguments, const char *name, const char *value)
{
    arguments->values[arguments->count++] = name;
    arguments->values[arguments->count++] = value;
}

static void add_number(struct child_arguments *arguments, const char *name, int64_t number)
{
    char *text = arguments->numbers[arguments->number_count++];
    snprintf(text, sizeof arguments->numbers[0], "%" PRId64, number);
    add_argument(arguments, name, text);
}

static void name_model(struct child_arguments *arguments, const struct compiled_model *model)
{
    add_number(arguments, "--compiled-for", model->uses);
    if (model->folder != NULL) {
        add_argument(arguments, "--compile-program", model->folder);
        return;
    }
    arguments->values[arguments->count++] = "--compile-model";
    add_number(arguments, "--compiled-batch", model->batch);
}

/* Returns ENV_JOB with the job; NULL: it cannot be printed. */
static char *job_variable(const struct job_document *job, struct error *error)
{
    SCOPED_JSON *document = job_document_to_json(job);
    SCOPED_BUFFER text = BUFFER_INIT(JOB_MAX);
    return json_print(document, &text, error) < 0 ? NULL : memory_format(ENV_JOB "=%s", buffer_text(&text));
}

/* The child's words go to `words`, a file in memory, and its code to `answer`. */
static int start_child(const struct compiled_model *model, unsigned tpus, int threads, int answer, int words,
                       pid_t *ret_child, struct error *error)
{
    struct child_arguments arguments = {.values = {"coxswain-worker"}, .count = 1};
    posix_spawn_file_actions_t actions;
    SCOPED_FREE char *job = job_variable(model->job, error);
    if (job == NULL)
        return -1;
    SCOPED_FREE char **variables = child_environment((char *const[]){job, NULL});
    name_model(&arguments, model);
    add_number(&arguments, "--compiled-to", ANSWER);
    add_number(&arguments, "--compiled-on-tpus", tpus);
    add_number(&arguments, "--threads", threads);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, words, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answer, ANSWER);
    errno = posix_spawn(ret_child, "/proc/self/exe", &actions, NULL, (char *const *)arguments.values, variables);
    posix_spawn_file_actions_destroy(&actions);
    return errno != 0 ? error_set_errno(error, "start the process that compiles the model") : 0;
}

/* The last line of what the child has said, without the beginning that every end has: "exit 64 (…): ". */
static const char *last_line(struct buffer *words)
{
    while (words->length > 0 && words->data[words->length - 1] == '\n')
        words->data[--words->length] = '\0';
    const char *line = strrchr(buffer_text(words), '\n');
    line = line != NULL ? line + 1 : buffer_text(words);
    const char *cause = strncmp(line, "exit ", 5) == 0 ? strstr(line, "): ") : NULL;
    return cause != NULL ? cause + 3 : line;
}

/* The system kills without being asked when memory runs out, on the node or in a cgroup. Another pod may have more. */
static int tell_kill(const struct rusage *usage, struct error *error)
{
    struct host_memory_limit limit = host_memory_limit_read("");
    return error_set(
        error, ERROR_DEVICE,
        "the process that compiles the model was killed (SIGKILL) with %ld MiB in memory, as the system does "
        "when memory runs out: raise resources.limits.memory, or take a node with more (the limit here is "
        "%" PRId64 " MiB)",
        usage->ru_maxrss / 1024, limit.bytes >> 20);
}

static int judge(int status, const struct rusage *usage, struct buffer *words, struct error *error)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    const char *line = last_line(words);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return tell_kill(usage, error);
    if (WIFSIGNALED(status))
        return error_set(error, ERROR_INVALID,
                         "the PJRT plugin ended with signal %d while it compiled the model: %.600s", WTERMSIG(status),
                         line);
    switch (WEXITSTATUS(status)) {
    case EXIT_CODE_NO_DEVICE:
        return error_set(error, ERROR_UNSUPPORTED, "%.800s", line);
    case EXIT_CODE_DEVICE_FAILED:
        return error_set(error, ERROR_DEVICE, "%.800s", line);
    case EXIT_CODE_NO_MEMORY:
        return error_set(error, ERROR_NO_SPACE, "%.800s", line);
    default:
        return error_set(error, ERROR_INVALID, "%.800s", line);
    }
}

static int read_from_start(int descriptor, struct buffer *buffer, const char *what, struct error *error)
{
    if (lseek(descriptor, 0, SEEK_SET) < 0)
        return error_set_errno(error, "read %s", what);
    return buffer_read_descriptor(buffer, descriptor, what, error);
}

/* Returns once the child has ended. */
static int run_child(const struct compiled_model *model, unsigned tpus, int threads, struct buffer *code,
                     struct buffer *words, int *ret_status, struct rusage *ret_usage, struct error *error)
{
    SCOPED_CLOSE int answer = memfd_create("code", MFD_CLOEXEC), said = memfd_create("words", MFD_CLOEXEC);
    pid_t child;
    buffer_clear(code);
    buffer_clear(words);
    if (answer < 0 || said < 0)
        return error_set_errno(error, "make files in memory for the compiled program");
    if (start_child(model, tpus, threads, answer, said, &child, error) < 0)
        return -1;
    while (wait4(child, ret_status, 0, ret_usage) < 0)
        if (errno != EINTR)
            return error_set_errno(error, "wait for the process that compiles the model");
    (void)read_from_start(said, words, "the compiler's words", NULL);
    return read_from_start(answer, code, "the compiled program", error);
}

/* *code stays empty if the plugin cannot give it. A signal may have ended the child by chance, so it is started once more. */
static int compile_apart(const struct compiled_model *model, unsigned tpus, int threads, struct buffer *code,
                         struct error *error)
{
    SCOPED_BUFFER words;
    struct rusage usage;
    int status;
    buffer_init(&words, WORDS_MAX);
    if (run_child(model, tpus, threads, code, &words, &status, &usage, error) < 0)
        return -1;
    if (WIFSIGNALED(status)) {
        log_warning("a signal has ended the process that compiles the model; starting it once more", "signal",
                    strsignal(WTERMSIG(status)), NULL);
        if (run_child(model, tpus, threads, code, &words, &status, &usage, error) < 0)
            return -1;
    }
    return judge(status, &usage, &words, error);
}

/* On the devices of this machine. */
static int compile_here(struct program *program, const struct xla_options *options, int compiled_to,
                        struct error *error)
{
    SCOPED_BUFFER code = BUFFER_INIT(PROGRAM_CODE_MAX);
    struct error unserialised = ERROR_INIT;
    if (program_open_engine(program, options, error) < 0 || program_compile(program, error) < 0)
        return -1;
    printf("compiled for %s: %" PRId64 " parameters, %.1f MiB beside them in each call of %" PRId64 " examples\n",
           program_engine(program), program_layout(program)->elements, (double)program_call_bytes(program) / 1048576,
           program_batch(program));
    if (compiled_to < 0 || program_serialise(program, &code, &unserialised) < 0)
        return 0;
    return file_write_all(compiled_to, code.data, code.length, error);
}

static int compile_for(const struct program *program, const char *plugin, const char *topology, struct error *error)
{
    SCOPED_BUFFER table = BUFFER_INIT(1 << 16);
    if (program_compile_for(program, plugin, topology, &table, error) < 0)
        return -1;
    (void)fputs(buffer_text(&table), stdout);
    return 0;
}

/* `tpus` of this machine; 0: any device. */
static void read_options(const struct arguments *arguments, const struct identity *identity, unsigned tpus,
                         struct xla_options *options)
{
    bool here = arguments->topology == NULL;
    xla_options_init(options, identity->pjrt_plugin, here ? tpus : 1, here ? identity->pjrt_cpu_devices : 0);
}

/* Frees the program. */
static int compile_and_free(struct program *program, const struct arguments *arguments,
                            const struct xla_options *options, struct error *error)
{
    int result = arguments->topology != NULL ? compile_for(program, options->plugin, arguments->topology, error)
                                             : compile_here(program, options, arguments->compiled_to, error);
    program_free(program);
    return result;
}

int compilation_run_apart(const struct arguments *arguments, const struct identity *identity, enum exit_code *ret_code,
                          struct error *error)
{
    struct program *program;
    struct xla_options options;
    if (arguments->compiled_to >= 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    *ret_code = EXIT_CODE_BAD_JOB;
    read_options(arguments, identity, (unsigned)arguments->compiled_on_tpus, &options);
    if (program_open(arguments->program, (unsigned)arguments->compiled_for, xla_options_platform(&options), &program,
                     error) < 0)
        return -1;
    int result = compile_and_free(program, arguments, &options, error);
    if (result < 0)
        *ret_code = error_exit_code(error, EXIT_CODE_BAD_JOB);
    return result;
}

/* Of one call: a logical shard of the job's crew. */
static int choose_batch(const struct arguments *arguments, const struct job_document *job, int64_t *ret_batch,
                        struct error *error)
{
    struct step_plan plan = {.max_shard_examples = arguments->compiled_batch};
    unsigned workers = job->workers > 0 ? (unsigned)job->workers : 1;
    if (arguments->compiled_batch == 0 && step_plan_batches(job, workers, 0, &plan, error) < 0)
        return -1;
    *ret_batch = plan.max_shard_examples;
    return 0;
}

/* Of the child process of a worker; for people, all that a worker needs. */
static unsigned uses_of(const struct arguments *arguments)
{
    return arguments->compiled_for != PROGRAM_USES_ALL ? (unsigned)arguments->compiled_for
                                                       : PROGRAM_TRAINS | PROGRAM_EVALUATES;
}

int compilation_run_model(const struct arguments *arguments, const struct identity *identity,
                          const struct job_document *job, enum exit_code *ret_code, struct error *error)
{
    struct program *program;
    struct xla_options options;
    int64_t batch;
    if (arguments->compiled_to >= 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    *ret_code = EXIT_CODE_BAD_JOB;
    read_options(arguments, identity, job->devices.type == DEVICE_TYPE_TPU ? (unsigned)job->devices.count : 0,
                 &options);
    if (job->model.program_path != NULL)
        return error_set(error, ERROR_INVALID, "--compile-model: the job's model is a program; use --compile-program");
    if (choose_batch(arguments, job, &batch, error) < 0 ||
        compilation_lower(job, batch, uses_of(arguments), &program, error) < 0)
        return -1;
    int result = compile_and_free(program, arguments, &options, error);
    if (result < 0)
        *ret_code = error_exit_code(error, EXIT_CODE_BAD_JOB);
    return result;
}

/* ---------------------------------------------------------------- the worker */

/* Another process compiles, unless this one has opened the devices already: one process at a time can have TPUs. */
static int compile(struct trainer *trainer, const struct compiled_model *model, const struct xla_options *options,
                   int threads, struct buffer *code, struct error *error)
{
    struct error unserialised = ERROR_INIT;
    if (*program_engine(trainer->xla.program) == '\0') {
        if (compile_apart(model, options->tpus, threads, code, error) < 0 ||
            program_open_engine(trainer->xla.program, options, error) < 0)
            return -1;
        return code->length == 0 ? program_compile(trainer->xla.program, error)
                                 : program_load(trainer->xla.program, code->data, code->length, error);
    }
    if (program_compile(trainer->xla.program, error) < 0)
        return -1;
    if (program_serialise(trainer->xla.program, code, &unserialised) < 0)
        buffer_clear(code);
    return 0;
}

int compilation_run(struct trainer *trainer, const char *folder, unsigned uses, const struct xla_options *options,
                    int threads, struct error *error)
{
    SCOPED_BUFFER code = BUFFER_INIT(PROGRAM_CODE_MAX);
    bool loaded;
    describe_code(trainer, options, threads);
    SCOPED_FREE char *path = cache_path(trainer, options, threads, error);
    if (load_cached(trainer, path, options, &loaded, error) < 0)
        return -1;
    if (loaded) {
        if (trainer->report != NULL)
            report_say(trainer->report, "the program is taken as it was compiled before");
        return 0;
    }
    if (trainer->report != NULL)
        report_phase(trainer->report, STATUS_STARTING, "compiling the program");
    const struct compiled_model model = {
        .folder = folder, .uses = uses, .job = trainer->job, .batch = program_batch(trainer->xla.program)};
    if (compile(trainer, &model, options, threads, &code, error) < 0)
        return -1;
    if (code.length > 0)
        keep(path, &code);
    return 0;
}
