/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/control_plane.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/directory.h"
#include "common/gpu_list.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/cli/paths.h"

#define NOT_STARTED 127 /* exit status of a child that could not become the program */
#define START_TIMEOUT_MS 60000
#define POLL_MS 10
#define END_TIMEOUT_MS 20000
#define LOCK_TIMEOUT_MS 10000
#define LOG_MAX (1024 * 1024)
#define ARGUMENTS_MAX 64
/* Where scripts report their progress: at 127.0.0.1 a pod finds itself (preload/pod_network.c). */
#define PROGRESS_ADDRESS "127.0.0.2:0"

struct child {
    const char *program;
    char *log;
    pid_t pid; /* 0: not running */
};

struct control_plane {
    struct event_loop *loop;
    char *state, *kubeconfig;
    bool kept;
    int share; /* the lock with which the control plane of another command is used; -1: it is our own */
    struct child server, controller;
    int64_t restarts_ms[CONTROL_PLANE_RESTARTS]; /* of the operator, a ring; 0: none */
    unsigned restarts;
    void (*restarted)(void *context, const char *message);
    void *context;
    char trouble[ERROR_MESSAGE_MAX];
};

const char *control_plane_kubeconfig(const struct control_plane *plane)
{
    return plane->kubeconfig;
}

/* ---------------------------------------------------------------- children */

static _Noreturn void child_run(const char *path, char *const *arguments, const char *log, int end, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, (unsigned long)end, 0UL, 0UL, 0UL);
    if (getppid() != parent)
        _exit(1);
    /* Ctrl-C is for the command; it ends its children in order. */
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (output >= 0 && input >= 0 && dup2(input, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0)
        execvp(path, arguments);
    _exit(NOT_STARTED);
}

/* Begins the program's log anew. */
static void child_init(struct control_plane *plane, struct child *child, const char *program)
{
    child->program = program;
    child->log = memory_format("%s/%s.log", plane->state, program);
    unlink(child->log);
}

/* `end`: the signal with which the child ends, also if this process dies. */
static int child_start(struct child *child, char *const *arguments, int end, struct error *error)
{
    SCOPED_FREE char *path = path_of_program(child->program);
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid == 0)
        child_run(path, arguments, child->log, end, parent);
    if (child->pid < 0) {
        child->pid = 0;
        return error_set_errno(error, "start %s", child->program);
    }
    return 0;
}

static char *last_line(const char *path)
{
    SCOPED_BUFFER text = BUFFER_INIT(LOG_MAX);
    if (buffer_read_file(&text, path, NULL) < 0)
        return memory_copy_string("");
    while (text.length > 0 && text.data[text.length - 1] == '\n')
        text.data[--text.length] = '\0';
    const char *start = strrchr(buffer_text(&text), '\n');
    return memory_copy_string(start ? start + 1 : buffer_text(&text));
}

/* True when it has ended by now. */
static bool child_ended(struct child *child, struct error *error)
{
    int status;
    if (child->pid == 0 || waitpid(child->pid, &status, WNOHANG) != child->pid)
        return false;
    child->pid = 0;
    SCOPED_FREE char *words = last_line(child->log);
    if (WIFSIGNALED(status))
        error_set(error, ERROR_UNAVAILABLE, "%s was killed by signal %d (see %s)", child->program, WTERMSIG(status),
                  child->log);
    else if (WEXITSTATUS(status) == NOT_STARTED && !*words)
        error_set(error, ERROR_NOT_FOUND, "%s is neither beside cox nor in PATH, or cannot be executed: install it",
                  child->program);
    else
        error_set(error, ERROR_UNAVAILABLE, "%s ended (see %s): %s", child->program, child->log, words);
    return true;
}

/* ---------------------------------------------------------------- start */

/* One that others may share ends after the last of them. */
static int end_signal(const struct control_plane *plane)
{
    return plane->kept ? STATE_END_SIGNAL : SIGTERM;
}

static int server_start(struct control_plane *plane, const struct control_plane_options *options, struct error *error)
{
    char *arguments[ARGUMENTS_MAX] = {(char *)"coxswain-standalone", (char *)"--state", plane->state};
    unsigned count = 3;
    if (options->kept || options->api_only)
        arguments[count++] = (char *)"--no-node";
    SCOPED_FREE char *sources = path_of_sources();
    SCOPED_FREE char *definitions = sources ? memory_format("%s/deploy/crd", sources) : NULL;
    if (definitions) {
        arguments[count++] = (char *)"--crd";
        arguments[count++] = definitions;
    }
    for (unsigned i = 0; i < options->volume_count && count + 3 < ARGUMENTS_MAX; i++) {
        arguments[count++] = (char *)"--volume";
        arguments[count++] = (char *)options->volumes[i];
    }
    return child_start(&plane->server, arguments, end_signal(plane), error);
}

static int operator_start(struct control_plane *plane, struct error *error)
{
    struct gpu_list gpus;
    gpu_list_read_machine(&gpus);
    SCOPED_FREE char *count = memory_format("%u", gpus.count);
    gpu_list_release(&gpus);
    char *arguments[] = {(char *)"coxswain-operator",
                         (char *)"--kubeconfig",
                         plane->kubeconfig,
                         (char *)"--worker-image",
                         (char *)"coxswain-worker",
                         (char *)"--progress-address",
                         (char *)PROGRESS_ADDRESS,
                         (char *)"--machine-gpus",
                         count,
                         NULL};
    return child_start(&plane->controller, arguments, SIGTERM, error);
}

/* The kubeconfig's appearance says that the API serves. */
static int wait_until_it_serves(struct control_plane *plane, struct error *error)
{
    int64_t deadline = clock_monotonic_ms() + START_TIMEOUT_MS;
    while (access(plane->kubeconfig, R_OK) < 0) {
        if (child_ended(&plane->server, error))
            return -1;
        if (clock_monotonic_ms() > deadline)
            return error_set(error, ERROR_TIMEOUT, "coxswain-standalone does not serve (see %s)", plane->server.log);
        if (event_loop_turn(plane->loop, POLL_MS, error) < 0)
            return -1;
    }
    return 0;
}

static int check_kept(const char *state, struct error *error)
{
    SCOPED_FREE char *database = memory_format("%s/" STATE_DATABASE, state);
    if (access(database, R_OK) == 0)
        return 0;
    return error_set(error, ERROR_NOT_FOUND,
                     "%s is not a state directory of cox run: it has no %s; the directories of your runs are in %s",
                     state, STATE_DATABASE, "~/.local/state/coxswain");
}

int control_plane_lock(struct event_loop *loop, const char *state, enum state_use use, enum state_holder most,
                       int *ret_lock, struct error *error)
{
    int64_t deadline = clock_monotonic_ms() + LOCK_TIMEOUT_MS;
    struct error cause = ERROR_INIT;
    while (state_directory_lock(state, use, ret_lock, &cause) < 0) {
        if (cause.kind != ERROR_UNAVAILABLE || state_directory_holder(state) >= most ||
            clock_monotonic_ms() > deadline) {
            *error = cause;
            return -1;
        }
        if (event_loop_turn(loop, POLL_MS, error) < 0)
            return -1;
    }
    return 0;
}

/* A reader waits for a run that starts, and then uses that; what starts a run waits for readers. The kubeconfig of the last time goes,
 * that of a control plane that still runs does not. */
static int state_prepare(struct event_loop *loop, const struct control_plane_options *options, int *ret_lock,
                         struct error *error)
{
    const char *state = options->state_directory;
    SCOPED_FREE char *kubeconfig = memory_format("%s/" STATE_KUBECONFIG, state);
    SCOPED_CLOSE int lock = -1;
    if (options->kept && state_directory_holder(state) == STATE_FREE && check_kept(state, error) < 0)
        return -1;
    if ((options->forget && state_directory_check(state, error) < 0) ||
        (!options->kept && directory_make(state, error) < 0) ||
        control_plane_lock(loop, state, STATE_TO_START, options->kept ? STATE_READING : STATE_RUNNING, &lock, error) <
            0 ||
        (options->kept && check_kept(state, error) < 0))
        return -1;
    unlink(kubeconfig);
    if (options->forget_volumes && options->forgetting)
        options->forgetting(options->context);
    if (options->forget && state_directory_forget(state, options->forget_volumes, error) < 0)
        return -1;
    *ret_lock = lock;
    lock = -1;
    return 0;
}

/* Locks the control plane that another command has started to read, so that it runs on when that command ends. Returns false if there is
 * none, or if it is ending. */
static bool share(const char *state, int *ret_lock)
{
    SCOPED_FREE char *kubeconfig = memory_format("%s/" STATE_KUBECONFIG, state);
    SCOPED_CLOSE int lock = -1;
    if (state_directory_lock(state, STATE_TO_SHARE, &lock, NULL) < 0 ||
        state_directory_holder(state) != STATE_READING || access(kubeconfig, R_OK) < 0)
        return false;
    *ret_lock = lock;
    lock = -1;
    return true;
}

/* Prepares to start a control plane that only serves what is there, or shares one. Tries again while one ends. */
static int kept_prepare(struct event_loop *loop, const struct control_plane_options *options, int *ret_lock,
                        int *ret_share, struct error *error)
{
    int64_t deadline = clock_monotonic_ms() + LOCK_TIMEOUT_MS;
    struct error cause = ERROR_INIT;
    while (state_prepare(loop, options, ret_lock, &cause) < 0) {
        if (cause.kind != ERROR_UNAVAILABLE || state_directory_holder(options->state_directory) == STATE_RUNNING ||
            clock_monotonic_ms() > deadline) {
            *error = cause;
            return -1;
        }
        if (share(options->state_directory, ret_share))
            return 0;
        if (event_loop_turn(loop, POLL_MS, error) < 0)
            return -1;
    }
    return 0;
}

static int children_start(struct control_plane *plane, const struct control_plane_options *options, struct error *error)
{
    bool has_operator = !options->kept && !options->api_only;
    child_init(plane, &plane->server, "coxswain-standalone");
    if (has_operator) /* else the log is that of the run that is looked at */
        child_init(plane, &plane->controller, "coxswain-operator");
    if (server_start(plane, options, error) < 0 || wait_until_it_serves(plane, error) < 0)
        return -1;
    return has_operator ? operator_start(plane, error) : 0;
}

int control_plane_start(struct event_loop *loop, const struct control_plane_options *options,
                        struct control_plane **ret_plane, struct error *error)
{
    SCOPED_CLOSE int lock = -1; /* until the server has the directory for itself */
    int shared = -1;
    int result =
        options->kept ? kept_prepare(loop, options, &lock, &shared, error) : state_prepare(loop, options, &lock, error);
    if (result < 0)
        return -1;
    struct control_plane *plane = memory_allocate(1, sizeof *plane);
    plane->loop = loop;
    plane->state = realpath(options->state_directory, NULL);
    plane->kubeconfig = memory_format("%s/" STATE_KUBECONFIG, plane->state);
    plane->kept = options->kept;
    plane->share = shared;
    plane->restarted = options->restarted;
    plane->context = options->context;
    if (shared < 0 && children_start(plane, options, error) < 0) {
        control_plane_end(plane);
        return -1;
    }
    *ret_plane = plane;
    return 0;
}

int control_plane_read(struct event_loop *loop, const char *state, struct control_plane **ret_plane,
                       struct error *error)
{
    const struct control_plane_options options = {.state_directory = state, .kept = true};
    SCOPED_FREE char *kubeconfig = memory_format("%s/" STATE_KUBECONFIG, state);
    struct error cause = ERROR_INIT;
    *ret_plane = NULL;
    if (control_plane_start(loop, &options, ret_plane, &cause) == 0 ||
        (cause.kind == ERROR_UNAVAILABLE && access(kubeconfig, R_OK) == 0))
        return 0;
    *error = cause;
    return -1;
}

/* ---------------------------------------------------------------- while it runs */

/* `ended` says how the operator has ended. */
static int operator_restart(struct control_plane *plane, const struct error *ended, struct error *error)
{
    int64_t now_ms = clock_monotonic_ms(), *oldest_ms = &plane->restarts_ms[plane->restarts % CONTROL_PLANE_RESTARTS];
    if (*oldest_ms > 0 && now_ms - *oldest_ms < CONTROL_PLANE_RESTARTS_MS)
        return error_set(error, ERROR_UNAVAILABLE,
                         "%s; not restarted, because it was already restarted %d times within %lld minutes",
                         ended->message, CONTROL_PLANE_RESTARTS, CONTROL_PLANE_RESTARTS_MS / 60000);
    *oldest_ms = now_ms;
    plane->restarts++;
    if (operator_start(plane, error) < 0)
        return -1;
    SCOPED_FREE char *message = memory_format("%s; it was restarted, and the job continues", ended->message);
    if (plane->restarted)
        plane->restarted(plane->context, message);
    return 0;
}

const char *control_plane_trouble(struct control_plane *plane)
{
    struct error ended = ERROR_INIT, error = ERROR_INIT;
    if (child_ended(&plane->server, &error) ||
        (child_ended(&plane->controller, &ended) && operator_restart(plane, &ended, &error) < 0))
        snprintf(plane->trouble, sizeof plane->trouble, "%s", error.message);
    return *plane->trouble ? plane->trouble : NULL;
}

/* ---------------------------------------------------------------- the end */

static void child_end(struct control_plane *plane, struct child *child, int signal)
{
    int64_t deadline = clock_monotonic_ms() + END_TIMEOUT_MS;
    if (child->pid > 0)
        kill(child->pid, signal);
    while (child->pid > 0 && !child_ended(child, NULL)) {
        if (plane->kept && state_directory_is_shared(plane->state))
            break; /* it ends after those that use it */
        if (clock_monotonic_ms() > deadline)
            kill(child->pid, SIGKILL);
        event_loop_turn(plane->loop, POLL_MS, NULL);
    }
    free(child->log);
}

/* The operator first, so that it does not replace the pods that the other one ends. */
void control_plane_end(struct control_plane *plane)
{
    child_end(plane, &plane->controller, SIGTERM);
    child_end(plane, &plane->server, end_signal(plane));
    if (plane->share >= 0)
        close(plane->share);
    free(plane->state);
    free(plane->kubeconfig);
    free(plane);
}
