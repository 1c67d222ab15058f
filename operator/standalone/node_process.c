/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"
#include "operator/standalone/node_supervisor.h"

#define OUTPUT_CHUNK (64 * 1024)

struct process {
    struct event_loop *loop;
    struct process_events events;
    pid_t supervisor;
    int handle; /* pidfd of the supervisor */
    int report;
    int streams[2]; /* read ends; -1 once at their end */
    int lifeline;   /* write end */
    bool announced; /* `started` or `failed` was called */
    pid_t command;  /* as it said before exec; 0 until then */
};

/* All descriptors of a launch; -1: not open. */
struct launch {
    int report[2], output[2], errors[2], lifeline[2];
};

static void pair_close(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            close(pair[i]);
        pair[i] = -1;
    }
}

static void launch_release(struct launch *launch)
{
    pair_close(launch->report);
    pair_close(launch->output);
    pair_close(launch->errors);
    pair_close(launch->lifeline);
}

static int launch_open(struct launch *launch, struct error *error)
{
    int yes = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, launch->report) < 0 ||
        setsockopt(launch->report[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0 ||
        pipe2(launch->output, O_CLOEXEC) < 0 || pipe2(launch->errors, O_CLOEXEC) < 0 ||
        pipe2(launch->lifeline, O_CLOEXEC) < 0)
        return error_set_errno(error, "open the pipes of a container");
    int ours[] = {launch->report[0], launch->output[0], launch->errors[0]};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (fcntl(ours[i], F_SETFL, O_NONBLOCK) < 0)
            return error_set_errno(error, "open the pipes of a container");
    }
    return 0;
}

static bool wants_user_namespace(void)
{
    return geteuid() != 0;
}

/* A raw clone: the child is a copy of this process that makes system calls only (node_supervisor.h). */
static pid_t clone_supervisor(const struct supervisor_spec *spec, int *ret_handle)
{
    struct clone_args arguments = {
        .flags = (uint64_t)supervisor_clone_flags(spec) | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)ret_handle,
        .exit_signal = SIGCHLD,
    };
    pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0)
        supervisor_run(spec);
    return pid;
}

static int launch_run(const struct process_spec *process, struct launch *launch, int *ret_handle, pid_t *ret_pid,
                      struct error *error)
{
    struct supervisor_spec spec = {
        .process = process,
        .report = launch->report[1],
        .output = launch->output[1],
        .errors = launch->errors[1],
        .lifeline = launch->lifeline[0],
        .user_namespace = process->mounts && wants_user_namespace(),
    };
    snprintf(spec.uid_map, sizeof spec.uid_map, "%u %u 1", geteuid(), geteuid());
    snprintf(spec.gid_map, sizeof spec.gid_map, "%u %u 1", getegid(), getegid());
    pid_t pid = clone_supervisor(&spec, ret_handle);
    if (pid < 0)
        return error_set_errno(error, "start a container's supervisor");
    *ret_pid = pid;
    return 0;
}

static void announce_failure(struct process *process, const char *message)
{
    process->announced = true;
    if (process->events.failed)
        process->events.failed(process->events.context, message);
}

static void report_take(struct process *process, const struct supervisor_report *report, pid_t sender)
{
    if (report->what[0] == '\0') {
        process->command = sender;
        return;
    }
    SCOPED_FREE char *message =
        memory_format("%.*s: %s", (int)sizeof report->what, report->what, strerror(report->os_error));
    announce_failure(process, message);
}

/* The report socket closes when exec has succeeded. */
static void report_ended(struct process *process)
{
    event_loop_unwatch(process->loop, process->report);
    close(process->report);
    process->report = -1;
    if (process->announced || process->command == 0)
        return;
    process->announced = true;
    if (process->events.started)
        process->events.started(process->events.context, process->command);
}

static bool report_receive(struct process *process)
{
    struct supervisor_report report;
    struct iovec part = {.iov_base = &report, .iov_len = sizeof report};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(process->report, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length != sizeof report) {
        report_ended(process);
        return false;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    pid_t sender = 0;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
        struct ucred credentials;
        memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
        sender = credentials.pid;
    }
    report_take(process, &report, sender);
    return true;
}

static void report_ready(void *context, int descriptor, enum event_interest what)
{
    (void)descriptor;
    (void)what;
    struct process *process = context;
    while (process->report >= 0 && report_receive(process))
        ;
}

static void stream_close(struct process *process, enum process_stream stream)
{
    if (process->streams[stream] < 0)
        return;
    event_loop_unwatch(process->loop, process->streams[stream]);
    close(process->streams[stream]);
    process->streams[stream] = -1;
}

/* True when there may be more. */
static bool stream_read(struct process *process, enum process_stream stream)
{
    char bytes[OUTPUT_CHUNK];
    ssize_t length = read(process->streams[stream], bytes, sizeof bytes);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length <= 0) {
        stream_close(process, stream);
        return false;
    }
    if (process->events.output)
        process->events.output(process->events.context, stream, bytes, (size_t)length);
    return true;
}

static void stream_ready(void *context, int descriptor, enum event_interest what)
{
    (void)what;
    struct process *process = context;
    stream_read(process, descriptor == process->streams[PROCESS_STDOUT] ? PROCESS_STDOUT : PROCESS_STDERR);
}

static void process_forget(struct process *process)
{
    if (process->report >= 0) {
        event_loop_unwatch(process->loop, process->report);
        close(process->report);
    }
    stream_close(process, PROCESS_STDOUT);
    stream_close(process, PROCESS_STDERR);
    if (process->handle >= 0) {
        event_loop_unwatch(process->loop, process->handle);
        close(process->handle);
    }
    if (process->lifeline >= 0)
        close(process->lifeline);
    process->report = process->handle = process->lifeline = -1;
}

static int exit_code_of(const siginfo_t *end)
{
    return end->si_code == CLD_EXITED ? end->si_status : 128 + end->si_status;
}

static void supervisor_ended(void *context, int descriptor, enum event_interest what)
{
    (void)what;
    struct process *process = context;
    siginfo_t end = {.si_pid = 0};
    if (waitid(P_PIDFD, (id_t)descriptor, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
        return;
    process->supervisor = 0;
    report_ready(process, process->report, EVENT_READ);
    for (enum process_stream stream = PROCESS_STDOUT; stream <= PROCESS_STDERR; stream++) {
        while (process->streams[stream] >= 0 && stream_read(process, stream))
            ;
    }
    if (!process->announced)
        announce_failure(process, "the process ended before its command was started");
    struct process_events events = process->events;
    process_forget(process);
    events.ended(events.context, exit_code_of(&end));
}

static int process_watch(struct process *process, struct error *error)
{
    if (event_loop_watch(process->loop, process->handle, EVENT_READ, supervisor_ended, process, error) < 0 ||
        event_loop_watch(process->loop, process->report, EVENT_READ, report_ready, process, error) < 0 ||
        event_loop_watch(process->loop, process->streams[0], EVENT_READ, stream_ready, process, error) < 0)
        return -1;
    return event_loop_watch(process->loop, process->streams[1], EVENT_READ, stream_ready, process, error);
}

int process_start(struct event_loop *loop, const struct process_spec *spec, const struct process_events *events,
                  struct process **ret_process, struct error *error)
{
    SCOPED(launch_release) struct launch launch = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    int handle = -1;
    pid_t pid = 0;
    if (launch_open(&launch, error) < 0 || launch_run(spec, &launch, &handle, &pid, error) < 0)
        return -1;
    struct process *process = memory_allocate(1, sizeof *process);
    *process = (struct process){
        .loop = loop,
        .events = *events,
        .supervisor = pid,
        .handle = handle,
        .report = launch.report[0],
        .streams = {launch.output[0], launch.errors[0]},
        .lifeline = launch.lifeline[1],
    };
    launch.report[0] = launch.output[0] = launch.errors[0] = launch.lifeline[1] = -1;
    if (process_watch(process, error) < 0) {
        process_free(process);
        return -1;
    }
    *ret_process = process;
    return 0;
}

static void supervisor_signal(const struct process *process, int signal_number)
{
    if (process->supervisor > 0)
        syscall(SYS_pidfd_send_signal, process->handle, signal_number, NULL, 0U);
}

void process_signal(struct process *process, int signal_number)
{
    supervisor_signal(process, signal_number);
}

void process_kill(struct process *process)
{
    supervisor_signal(process, SUPERVISOR_KILL);
}

void process_free(struct process *process)
{
    if (process->supervisor > 0) {
        process_kill(process);
        siginfo_t end;
        while (waitid(P_PIDFD, (id_t)process->handle, &end, WEXITED) < 0 && errno == EINTR)
            ;
    }
    process_forget(process);
    free(process);
}

/* ---------------------------------------------------------------- what the kernel lets us do */

struct probe {
    bool over;
    int exit_code;
    struct error error;
};

static void probe_failed(void *context, const char *message)
{
    struct probe *probe = context;
    error_set(&probe->error, ERROR_UNSUPPORTED, "%s", message);
}

static void probe_ended(void *context, int exit_code)
{
    struct probe *probe = context;
    probe->over = true;
    probe->exit_code = exit_code;
}

static int probe_run(const struct mount_plan *mounts, struct error *error)
{
    struct event_loop *loop = NULL;
    if (event_loop_new(&loop, error) < 0)
        return -1;
    char *arguments[] = {(char[]){"true"}, NULL}, *environment[] = {NULL};
    struct process_spec spec = {.executable = "/bin/true",
                                .arguments = arguments,
                                .environment = environment,
                                .directory = "/",
                                .hostname = "probe",
                                .mounts = mounts};
    struct probe probe = {.over = false};
    struct process_events events = {.failed = probe_failed, .ended = probe_ended, .context = &probe};
    struct process *process = NULL;
    int result = process_start(loop, &spec, &events, &process, error);
    while (result == 0 && !probe.over)
        result = event_loop_turn(loop, -1, error);
    if (process)
        process_free(process);
    event_loop_free(loop);
    if (result < 0)
        return -1;
    return probe.exit_code == 0 ? 0 : error_set(error, ERROR_UNSUPPORTED, "%s", probe.error.message);
}

int process_probe_namespaces(struct error *error)
{
    char root[] = "/tmp/coxswain-probe-XXXXXX";
    if (!mkdtemp(root))
        return error_set_errno(error, "make a directory for a trial of namespaces");
    SCOPED(mount_plan_release) struct mount_plan plan = {.root = NULL};
    struct mount_point point = {.source = "/etc", .path = "/coxswain/probe", .read_only = true};
    int result = mount_plan_make(root, &point, 1, &plan, error);
    if (result == 0)
        result = probe_run(&plan, error);
    rmdir(root);
    return result;
}
