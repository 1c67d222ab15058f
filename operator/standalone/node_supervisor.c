/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the supervisor keeps its descriptors; all others are closed. */
enum { REPORT = 3, OUTPUT = 4, ERRORS = 5, LIFELINE = 6, FIRST_FOREIGN = 7 };

#define EXIT_NOT_STARTED 127

int supervisor_clone_flags(const struct supervisor_spec *spec)
{
    if (!spec->process->mounts)
        return 0;
    return CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | (spec->user_namespace ? CLONE_NEWUSER : 0);
}

/* glibc's fork would touch locks and caches that belong to the control plane. */
static pid_t clone_plain(void)
{
    return (pid_t)syscall(SYS_clone, (long)SIGCHLD, NULL, NULL, NULL, NULL);
}

static _Noreturn void give_up(const char *what, int os_error)
{
    struct supervisor_report report = {.os_error = os_error};
    size_t length = strlen(what);
    if (length >= sizeof report.what)
        length = sizeof report.what - 1;
    memcpy(report.what, what, length);
    (void)!send(REPORT, &report, sizeof report, MSG_NOSIGNAL);
    _exit(EXIT_NOT_STARTED);
}

static void take_descriptors(const struct supervisor_spec *spec)
{
    int given[] = {spec->report, spec->output, spec->errors, spec->lifeline};
    int high[4];
    for (int i = 0; i < 4; i++) {
        high[i] = fcntl(given[i], F_DUPFD_CLOEXEC, 64);
        if (high[i] < 0)
            _exit(EXIT_NOT_STARTED);
    }
    for (int i = 0; i < 4; i++) {
        if (dup3(high[i], REPORT + i, O_CLOEXEC) < 0)
            _exit(EXIT_NOT_STARTED);
    }
    syscall(SYS_close_range, (unsigned)FIRST_FOREIGN, ~0U, 0U);
}

static void die_with_parent(int signal_number)
{
    prctl(PR_SET_PDEATHSIG, (unsigned long)signal_number, 0UL, 0UL, 0UL);
    struct pollfd lifeline = {.fd = LIFELINE, .events = POLLIN};
    if (poll(&lifeline, 1, 0) != 0)
        _exit(EXIT_NOT_STARTED);
}

static void write_whole(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        give_up(path, errno);
    close(file);
}

static void enter_namespaces(const struct supervisor_spec *spec)
{
    if (spec->user_namespace) {
        write_whole("/proc/self/setgroups", "deny");
        write_whole("/proc/self/uid_map", spec->uid_map);
        write_whole("/proc/self/gid_map", spec->gid_map);
    }
    const char *hostname = spec->process->hostname;
    if (hostname && sethostname(hostname, strlen(hostname)) < 0)
        give_up("set the host name", errno);
    const char *failed = NULL;
    if (mount_plan_apply(spec->process->mounts, &failed) < 0)
        give_up(failed, errno);
}

static void reset_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_command(const struct process_spec *process)
{
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    setsid();
    reset_signals();
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(OUTPUT, STDOUT_FILENO) < 0 ||
        dup2(ERRORS, STDERR_FILENO) < 0)
        give_up("connect the output", errno);
    if (chdir(process->directory) < 0)
        give_up(process->directory, errno);
    struct supervisor_report starting = {.os_error = 0};
    (void)!send(REPORT, &starting, sizeof starting, MSG_NOSIGNAL);
    execve(process->executable, process->arguments, process->environment);
    give_up(process->executable, errno);
}

/* SIGKILL for every direct child; their own children become ours then, so the caller repeats it until none is left. */
static void kill_children(void)
{
    char text[4096];
    int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t length = read(file, text, sizeof text);
    close(file);
    pid_t child = 0;
    for (ssize_t i = 0; i < length; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            child = child * 10 + (text[i] - '0');
        } else if (child > 0) {
            kill(child, SIGKILL);
            child = 0;
        }
    }
}

static int exit_code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct supervision {
    pid_t command;
    int exit_code; /* -1 while it runs */
    bool in_pid_namespace;
};

static void reap(struct supervision *supervision, int flags)
{
    int status;
    for (pid_t child; (child = waitpid(-1, &status, flags)) > 0;) {
        if (child == supervision->command)
            supervision->exit_code = exit_code_of(status);
        if (!(flags & WNOHANG))
            return;
    }
}

static void kill_all(struct supervision *supervision)
{
    if (supervision->in_pid_namespace) {
        kill(-1, SIGKILL);
        reap(supervision, 0);
        return;
    }
    siginfo_t peek;
    kill(-supervision->command, SIGKILL);
    while (waitid(P_ALL, 0, &peek, WEXITED | WNOHANG | WNOWAIT) == 0) {
        kill_children();
        reap(supervision, 0);
    }
}

static void handle_signal(struct supervision *supervision, int signal_number)
{
    if (signal_number == SIGCHLD)
        reap(supervision, WNOHANG);
    else if (signal_number == SUPERVISOR_KILL)
        kill_all(supervision);
    else
        kill(supervision->command, signal_number);
    reap(supervision, WNOHANG);
}

static _Noreturn void supervise(struct supervision *supervision, const sigset_t *signals)
{
    while (supervision->exit_code < 0) {
        int caught = sigwaitinfo(signals, NULL);
        if (caught > 0)
            handle_signal(supervision, caught);
    }
    int exit_code = supervision->exit_code;
    if (!supervision->in_pid_namespace)
        kill_all(supervision);
    _exit(exit_code);
}

_Noreturn void supervisor_run(const struct supervisor_spec *spec)
{
    bool namespaces = spec->process->mounts != NULL;
    sigset_t signals;
    sigfillset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    take_descriptors(spec);
    die_with_parent(namespaces ? SIGKILL : SUPERVISOR_KILL);
    prctl(PR_SET_NAME, (unsigned long)"cox-pod-init", 0UL, 0UL, 0UL);
    setsid();
    if (namespaces)
        enter_namespaces(spec);
    else
        prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);

    struct supervision supervision = {.exit_code = -1, .in_pid_namespace = namespaces};
    supervision.command = clone_plain();
    if (supervision.command < 0)
        give_up("start another process", errno);
    if (supervision.command == 0)
        run_command(spec->process);
    syscall(SYS_close_range, 0U, ~0U, 0U);
    supervise(&supervision, &signals);
}
