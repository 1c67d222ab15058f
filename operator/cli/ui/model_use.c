/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/model_use.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"
#include "operator/cli/run_record.h"
#include "operator/cli/trained_run.h"
#include "operator/cli/worker_child.h"

#define OUTPUT_MAX (4 * 1024 * 1024)
#define ANSWER_MAX (8 * OUTPUT_MAX) /* JSON writes a byte as up to six */
#define PLACES (MODEL_USES_MAX + MODEL_LAYERS_MAX)
#define NICENESS 10 /* training on this machine comes first */

/* Freed when both its child and its stream have ended. */
struct model_use {
    struct model_uses *uses;
    struct worker_child child;
    int handle;                           /* pidfd, readable once the child has ended; -1: it has been waited for */
    struct http_stream *stream;           /* NULL: the browser is gone */
    struct event_timer *limit, *progress; /* progress: sends the text so far */
    size_t shown;                         /* bytes of the text that have been sent */
    enum model_purpose purpose;
    bool late; /* killed at the time limit */
};

struct model_uses {
    struct event_loop *loop;
    struct model_use *running[PLACES]; /* NULL: a free place; the first MODEL_USES_MAX are of those that need weights */
};

struct model_uses *model_uses_new(struct event_loop *loop)
{
    struct model_uses *uses = memory_allocate(1, sizeof *uses);
    uses->loop = loop;
    return uses;
}

/* Waits for the child, which has ended or is being killed, and frees its place. */
static int end_child(struct model_use *use)
{
    int status = 0;
    while (waitpid(use->child.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    event_loop_unwatch(use->uses->loop, use->handle);
    event_timer_cancel(use->limit);
    event_timer_cancel(use->progress);
    use->limit = use->progress = NULL;
    close(use->handle);
    use->handle = -1;
    for (unsigned i = 0; i < PLACES; i++)
        if (use->uses->running[i] == use)
            use->uses->running[i] = NULL;
    return status;
}

static void use_free(struct model_use *use)
{
    worker_child_release(&use->child);
    free(use);
}

void model_uses_free(struct model_uses *uses)
{
    for (unsigned i = 0; i < PLACES; i++) {
        struct model_use *use = uses->running[i];
        if (!use)
            continue;
        kill(use->child.pid, SIGKILL);
        end_child(use);
        use_free(use);
    }
    free(uses);
}

/* ---------------------------------------------------------------- the answer */

/* Finds which weights the worker has loaded in its standard error. */
static void set_weights(const struct model_use *use, struct json *head)
{
    static const char begin[] = "weights: ";
    SCOPED_BUFFER messages;
    buffer_init(&messages, OUTPUT_MAX);
    (void)worker_child_messages(&use->child, &messages, NULL);
    char *line = strstr(buffer_text(&messages), begin);
    if (!line)
        return;
    line += strlen(begin);
    line[strcspn(line, "\n")] = '\0';
    json_set_string(head, "weights", line);
}

/* NULs would end the string; the worker ends the text with a newline. */
static void set_text(const struct buffer *text, struct json *head)
{
    for (size_t i = 0; i < text->length; i++)
        if (text->data[i] == '\0')
            text->data[i] = ' ';
    json_set_string(head, "text", buffer_text(text));
}

/* `status`: as waitpid gives it. */
static int write_answer(const struct model_use *use, int status, struct buffer *out, struct error *error)
{
    bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    SCOPED_JSON *head = json_new_object();
    SCOPED_BUFFER output;
    buffer_init(&output, OUTPUT_MAX);
    if (WIFSIGNALED(status) && !use->late)
        return error_set(error, ERROR_UNAVAILABLE,
                         "coxswain-worker was killed by signal %d (%s); if that is 9, this machine may have too little "
                         "memory for the model.",
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (!succeeded && !use->late)
        return worker_child_failure(&use->child, "coxswain-worker failed and printed no error", error);
    if (worker_child_output(&use->child, &output, error) < 0)
        return -1;
    if (use->purpose == MODEL_LAYERS)
        return succeeded ? buffer_append(out, output.data, output.length, error)
                         : error_set(error, ERROR_TIMEOUT, "coxswain-worker has not described the model within %d s.",
                                     MODEL_LAYERS_SECONDS);
    if (!succeeded && use->purpose == MODEL_PREDICT)
        return error_set(error, ERROR_TIMEOUT,
                         "Evaluating the held-out examples takes longer than %d s; run cox predict NAME in a terminal, "
                         "which has no time limit.",
                         MODEL_USE_SECONDS);
    set_weights(use, head);
    json_set_boolean(head, "unfinished", !succeeded);
    if (use->purpose == MODEL_GENERATE) {
        set_text(&output, head);
        return json_print(head, out, error);
    }
    struct json *result;
    if (json_parse(buffer_text(&output), output.length, OUTPUT_MAX, &result, error) < 0)
        return error_wrap(error, "the output of coxswain-worker");
    json_set(head, "result", result);
    return json_print(head, out, error);
}

/* Sends a document; one of a text as a server-sent event. */
static void send_document(const struct model_use *use, const struct buffer *document)
{
    SCOPED_BUFFER event;
    buffer_init(&event, ANSWER_MAX + 16);
    buffer_format(&event, use->purpose == MODEL_GENERATE ? "data: %s\n\n" : "%s", buffer_text(document));
    http_stream_write(use->stream, event.data, event.length);
}

static void send_progress(void *context)
{
    struct model_use *use = context;
    SCOPED_JSON *head = json_new_object();
    SCOPED_BUFFER output, document;
    buffer_init(&output, OUTPUT_MAX);
    buffer_init(&document, ANSWER_MAX);
    use->progress = event_timer_start(use->uses->loop, MODEL_TEXT_MS, send_progress, use);
    if (!use->stream || worker_child_output(&use->child, &output, NULL) < 0 || output.length == use->shown)
        return;
    use->shown = output.length;
    set_text(&output, head);
    if (json_print(head, &document, NULL) == 0)
        send_document(use, &document);
}

static void child_ended(void *context, int descriptor, enum event_interest what)
{
    (void)descriptor, (void)what;
    struct model_use *use = context;
    struct error error = ERROR_INIT;
    SCOPED_BUFFER out;
    buffer_init(&out, ANSWER_MAX);
    int status = end_child(use);
    if (!use->stream) {
        use_free(use);
        return;
    }
    if (write_answer(use, status, &out, &error) < 0) {
        SCOPED_JSON *document = json_new_object();
        json_set_string(document, "error", error.message);
        buffer_clear(&out);
        (void)json_print(document, &out, NULL);
    }
    send_document(use, &out);
    http_stream_close(use->stream);
}

void model_use_attach(struct model_use *use, struct http_stream *stream)
{
    use->stream = stream;
}

void model_use_closed(void *context)
{
    struct model_use *use = context;
    use->stream = NULL;
    if (use->handle < 0)
        use_free(use);
    else
        kill(use->child.pid, SIGKILL);
}

/* ---------------------------------------------------------------- the start */

static void time_has_passed(void *context)
{
    struct model_use *use = context;
    use->limit = NULL;
    use->late = true;
    kill(use->child.pid, SIGKILL);
}

/* Ends the worker if cox ui crashes before it; while cox ui runs, its timer ends the worker earlier. */
static void limit_time(pid_t child)
{
    rlim_t seconds = (rlim_t)MODEL_USE_SECONDS * (rlim_t)sysconf(_SC_NPROCESSORS_ONLN);
    const struct rlimit limit = {.rlim_cur = seconds, .rlim_max = seconds};
    (void)prlimit(child, RLIMIT_CPU, &limit, NULL);
}

static void add_options(const char *state, const char *name_space, const struct json *job,
                        const struct model_question *question, struct worker_call *call)
{
    SCOPED(run_record_release) struct run_record record;
    if (question->purpose == MODEL_LAYERS) {
        run_record_init(&record);
        worker_call_add(call, "--describe-model", NULL);
        return;
    }
    (void)run_record_read(state, &record, NULL); /* without one there were no --volume options */
    trained_run_add_storages(state, name_space, record.volumes, job, call);
    if (question->purpose == MODEL_PREDICT) {
        worker_call_add(call, "--predict", "all");
        worker_call_add(call, "--json", NULL);
        return;
    }
    SCOPED_FREE char *tokens = memory_format("%" PRId64, question->tokens);
    SCOPED_FREE char *seed = memory_format("%" PRId64, question->seed);
    SCOPED_FREE char *temperature = memory_format("%g", question->temperature);
    worker_call_add(call, "--prompt-file", WORKER_CHILD_INPUT); /* other users see command lines */
    worker_call_add(call, "--tokens", tokens);
    worker_call_add(call, "--seed", seed);
    worker_call_add(call, "--temperature", temperature);
}

static int watch(struct model_use *use, struct error *error)
{
    int64_t seconds = use->purpose == MODEL_LAYERS ? MODEL_LAYERS_SECONDS : MODEL_USE_SECONDS;
    use->handle = (int)syscall(SYS_pidfd_open, use->child.pid, 0);
    if (use->handle < 0)
        return error_set_errno(error, "watch coxswain-worker");
    if (event_loop_watch(use->uses->loop, use->handle, EVENT_READ, child_ended, use, error) < 0)
        return -1;
    use->limit = event_timer_start(use->uses->loop, seconds * 1000, time_has_passed, use);
    if (use->purpose == MODEL_GENERATE)
        use->progress = event_timer_start(use->uses->loop, MODEL_TEXT_MS, send_progress, use);
    return 0;
}

int model_use_start(struct model_uses *uses, const char *state, const char *name_space, const struct json *job,
                    const struct model_question *question, struct model_use **ret_use, struct error *error)
{
    SCOPED(worker_call_release) struct worker_call call = {.count = 0};
    bool needs_weights = question->purpose != MODEL_LAYERS;
    unsigned place = needs_weights ? 0 : MODEL_USES_MAX, end = needs_weights ? MODEL_USES_MAX : PLACES;
    while (place < end && uses->running[place])
        place++;
    if (needs_weights && !state)
        return error_set(error, ERROR_INVALID,
                         "The weights are on a volume of the cluster, which cox ui cannot read. It can use the models "
                         "of runs on this machine.");
    if (place == end)
        return error_set(error, ERROR_UNAVAILABLE,
                         needs_weights ? "%d models are in use; wait until one has answered, or stop it."
                                       : "The layers of %d models are being read; open this page again in a moment.",
                         needs_weights ? MODEL_USES_MAX : MODEL_LAYERS_MAX);
    add_options(state, name_space, job, question, &call);
    struct model_use *use = memory_allocate(1, sizeof *use);
    *use = (struct model_use){.uses = uses, .handle = -1, .purpose = question->purpose};
    if (worker_child_start(job, question->prompt, call.words, &use->child, error) < 0) {
        free(use);
        return -1;
    }
    (void)setpriority(PRIO_PROCESS, (id_t)use->child.pid, NICENESS);
    limit_time(use->child.pid);
    uses->running[place] = use;
    if (watch(use, error) < 0) {
        kill(use->child.pid, SIGKILL);
        end_child(use);
        use_free(use);
        return -1;
    }
    *ret_use = use;
    return 0;
}
