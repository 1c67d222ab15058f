/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"

/* One run of a shell script, with what was heard of it. */
struct run {
    struct event_loop *loop;
    struct process *process;
    struct buffer output, errors;
    pid_t pid;
    char failure[512];
    int exit_code; /* -1: has not ended */
};

static void on_started(void *context, pid_t pid)
{
    ((struct run *)context)->pid = pid;
}

static void on_failed(void *context, const char *message)
{
    struct run *run = context;
    snprintf(run->failure, sizeof run->failure, "%s", message);
}

static void on_output(void *context, enum process_stream stream, const char *bytes, size_t length)
{
    struct run *run = context;
    buffer_append(stream == PROCESS_STDOUT ? &run->output : &run->errors, bytes, length, NULL);
}

static void on_ended(void *context, int exit_code)
{
    ((struct run *)context)->exit_code = exit_code;
}

static void run_start(struct run *run, const char *executable, const char *script, const struct mount_plan *mounts)
{
    *run = (struct run){.exit_code = -1};
    buffer_init(&run->output, 1 << 20);
    buffer_init(&run->errors, 1 << 20);
    struct error error = ERROR_INIT;
    cr_assert_eq(event_loop_new(&run->loop, &error), 0, "%s", error.message);
    char shell[] = "sh", option[] = "-c", text[1024];
    snprintf(text, sizeof text, "%s", script);
    char *arguments[] = {shell, option, text, NULL};
    char path[] = "PATH=/usr/bin:/bin";
    char *environment[] = {path, NULL};
    struct process_spec spec = {.executable = executable,
                                .arguments = arguments,
                                .environment = environment,
                                .directory = "/",
                                .hostname = "pod-0",
                                .mounts = mounts};
    struct process_events events = {on_started, on_failed, on_output, on_ended, run};
    cr_assert_eq(process_start(run->loop, &spec, &events, &run->process, &error), 0, "%s", error.message);
}

static void run_until_text(struct run *run, const char *text)
{
    while (run->exit_code < 0 && !strstr(buffer_text(&run->output), text))
        cr_assert_eq(event_loop_turn(run->loop, 10000, NULL), 0);
}

static void run_finish(struct run *run)
{
    while (run->exit_code < 0)
        cr_assert_eq(event_loop_turn(run->loop, 10000, NULL), 0);
}

static void run_release(struct run *run)
{
    process_free(run->process);
    event_loop_free(run->loop);
    buffer_release(&run->output);
    buffer_release(&run->errors);
}

/* Every test holds in both modes; without namespaces on this machine only the other one is tried. */
struct modes {
    char directory[64];
    struct mount_plan plan;
    const struct mount_plan *each[2];
    unsigned count;
};

static void modes_init(struct modes *modes)
{
    *modes = (struct modes){.count = 1};
    if (process_probe_namespaces(NULL) < 0)
        return;
    snprintf(modes->directory, sizeof modes->directory, "/tmp/node-process-XXXXXX");
    cr_assert_not_null(mkdtemp(modes->directory));
    struct error error = ERROR_INIT;
    cr_assert_eq(mount_plan_make(modes->directory, NULL, 0, &modes->plan, &error), 0, "%s", error.message);
    modes->each[modes->count++] = &modes->plan;
}

static void modes_release(struct modes *modes)
{
    if (modes->count > 1) {
        mount_plan_release(&modes->plan);
        rmdir(modes->directory);
    }
}

enum deed { WAIT, KILL_PID, TERMINATE, KILL_ALL }; /* once the script has said "up" */
#define ANY (-2)

static const struct end {
    const char *name, *executable, *script;
    enum deed deed;
    int exit_code;
    const char *output, *errors, *failure; /* NULL: any */
} ends[] = {
    {"both streams", "/bin/sh", "echo to-out; echo to-err >&2; exit 7", WAIT, 7, "to-out\n", "to-err\n", NULL},
    {"SIGKILL of the announced PID", "/bin/sh", "echo up; exec sleep 100", KILL_PID, 137, NULL, NULL, NULL},
    {"SIGTERM reaches the command", "/bin/sh", "trap 'exit 43' TERM; echo up; while :; do sleep 0.01; done", TERMINATE,
     43, NULL, NULL, NULL},
    {"SIGTERM without a handler", "/bin/sh", "echo up; exec sleep 100", TERMINATE, 143, NULL, NULL, NULL},
    /* A descendant in a session of its own keeps the write end of our pipe open, so that the pipe's end tells that it is gone. */
    {"kill takes daemons along", "/bin/sh",
     "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 100' &); echo up; sleep 100", KILL_ALL, 137, NULL, NULL, NULL},
    {"no such command", "/no/such/command", "", WAIT, ANY, NULL, NULL, "/no/such/command: No such file or directory"},
};

static void do_deed(struct run *run, enum deed deed)
{
    if (deed != WAIT)
        run_until_text(run, "up");
    if (deed == KILL_PID)
        cr_assert_eq(kill(run->pid, SIGKILL), 0);
    if (deed == TERMINATE)
        process_signal(run->process, SIGTERM);
    if (deed == KILL_ALL)
        process_kill(run->process);
    run_finish(run);
}

static void expect_end(const struct end *end, const struct mount_plan *mounts)
{
    struct run run;
    run_start(&run, end->executable, end->script, mounts);
    do_deed(&run, end->deed);
    cr_expect(end->exit_code == ANY || run.exit_code == end->exit_code, "%s: %d", end->name, run.exit_code);
    if (end->output)
        cr_expect_str_eq(buffer_text(&run.output), end->output, "%s", end->name);
    if (end->errors)
        cr_expect_str_eq(buffer_text(&run.errors), end->errors, "%s", end->name);
    if (end->failure)
        cr_expect_str_eq(run.failure, end->failure, "%s", end->name);
    cr_expect(end->failure ? run.pid == 0 : run.pid > 0, "%s", end->name);
    run_release(&run);
}

Test(node_process, how_a_process_ends)
{
    struct modes modes;
    modes_init(&modes);
    for (size_t i = 0; i < modes.count * sizeof ends / sizeof *ends; i++)
        expect_end(&ends[i / modes.count], modes.each[i % modes.count]);
    modes_release(&modes);
}

Test(node_process, all_output_is_handed_over_before_the_end)
{
    struct run run;
    run_start(&run, "/bin/sh", "head -c 600000 /dev/zero", NULL);
    run_finish(&run);
    cr_assert_eq(run.output.length, 600000);
    run_release(&run);
}

static bool is_alive(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    const char *name_end = read ? strrchr(text, ')') : NULL;
    return name_end && name_end[2] != 'Z';
}

/* The starter is killed; what it has started must go with it. */
Test(node_process, nothing_survives_the_starters_sigkill)
{
    struct modes modes;
    modes_init(&modes);
    for (unsigned i = 0; i < modes.count; i++) {
        int told[2];
        cr_assert_eq(pipe(told), 0);
        pid_t starter = fork();
        if (starter == 0) {
            struct run run;
            run_start(&run, "/bin/sh", "(setsid sleep 100 &); echo up; sleep 100", modes.each[i]);
            run_until_text(&run, "up");
            (void)!write(told[1], &run.pid, sizeof run.pid);
            pause();
        }
        pid_t command = 0;
        cr_assert_eq(read(told[0], &command, sizeof command), (ssize_t)sizeof command);
        cr_assert(is_alive(command));
        kill(starter, SIGKILL);
        for (int tries = 0; tries < 1000 && is_alive(command); tries++)
            usleep(5000);
        cr_assert(!is_alive(command));
        close(told[0]);
        close(told[1]);
    }
    modes_release(&modes);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(node_process, mounts_are_where_they_should_be)
{
    if (process_probe_namespaces(NULL) < 0)
        cr_skip_test("no namespaces here");
    char base[] = "/tmp/node-mounts-XXXXXX", hosts[64], data[64], root[64], file[80];
    cr_assert_not_null(mkdtemp(base));
    snprintf(hosts, sizeof hosts, "%s/hosts", base);
    snprintf(data, sizeof data, "%s/data", base);
    snprintf(root, sizeof root, "%s/root", base);
    snprintf(file, sizeof file, "%s/data/file", base);
    mkdir(data, 0755);
    mkdir(root, 0755);
    write_file(hosts, "127.9.9.9 far\n");
    write_file(file, "kept\n");
    struct mount_point points[] = {
        {hosts, "/etc/hosts", false},
        {hosts, "/dev/termination-log", false},
        {data, "/coxswain/storage/digits", true},
        {data, "/var/lib/coxswain-test/deep", false},
    };
    struct mount_plan plan;
    struct error error = ERROR_INIT;
    cr_assert_eq(mount_plan_make(root, points, 4, &plan, &error), 0, "%s", error.message);
    struct run run;
    run_start(&run, "/bin/sh",
              "cat /etc/hosts /coxswain/storage/digits/file; echo x > /coxswain/storage/digits/new; "
              "echo y > /var/lib/coxswain-test/deep/other; test -d /var/lib/dpkg && echo dpkg; "
              "echo told > /dev/termination-log; echo z > /dev/null && hostname; cat /proc/1/comm",
              &plan);
    run_finish(&run);
    cr_assert_str_eq(run.failure, "");
    cr_assert_str_eq(buffer_text(&run.output), "127.9.9.9 far\nkept\ndpkg\npod-0\ncox-pod-init\n");
    cr_assert_not_null(strstr(buffer_text(&run.errors), "Read-only file system"));
    run_release(&run);
    mount_plan_release(&plan);
    snprintf(file, sizeof file, "%s/data/other", base);
    cr_assert_eq(access(file, F_OK), 0);
    cr_assert_eq(access("/coxswain/storage/digits", F_OK), -1);
}

Test(node_process, mount_paths_are_checked)
{
    const char *bad[] = {"relative", "/", "/a/../b", "/a//b"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mount_point point = {"/tmp", bad[i], false};
        struct mount_plan plan;
        struct error error = ERROR_INIT;
        cr_assert_eq(mount_plan_make("/tmp", &point, 1, &plan, &error), -1, "%s", bad[i]);
        cr_assert_eq(error.kind, ERROR_INVALID);
    }
}
