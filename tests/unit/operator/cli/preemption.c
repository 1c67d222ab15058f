/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/preemption.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/memory.h"

static pid_t sleeper(void)
{
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    return child;
}

/* The signal that ended it. */
static int end_of(pid_t child)
{
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void add_pod(struct job_view *view, int64_t index, pid_t process)
{
    if (!view->pods)
        view->pods = memory_allocate(4, sizeof *view->pods);
    struct pod_line *pod = &view->pods[view->pod_count++];
    snprintf(pod->name, sizeof pod->name, "digits-worker-%lld-1", (long long)index);
    snprintf(pod->role, sizeof pod->role, "worker");
    pod->index = index;
    pod->process = process;
}

static void two_workers(struct job_view *view, pid_t processes[2])
{
    job_view_init(view, "default", "digits");
    view->workers = 2;
    for (int i = 0; i < 2; i++) {
        processes[i] = sleeper();
        add_pod(view, i, processes[i]);
    }
}

static void check(enum preemption_target target, int victim, const char *words)
{
    struct job_view view;
    struct preemption preemption;
    pid_t processes[2];
    two_workers(&view, processes);
    preemption_init(&preemption, target);
    job_view_take_log(&view, "step 49/100  loss 1", 10);
    preemption_consider(&preemption, &view, 10);
    cr_assert_eq(preemption.step, -1, "not yet half-way");
    job_view_take_log(&view, "step 50/100  loss 1", 20);
    preemption_consider(&preemption, &view, 20);
    cr_assert_eq(preemption.step, 50);
    cr_assert_eq(end_of(processes[victim]), SIGKILL);
    cr_assert(strstr(buffer_text(&view.events), words), "%s", buffer_text(&view.events));
    kill(processes[1 - victim], SIGTERM);
    cr_assert_eq(end_of(processes[1 - victim]), SIGTERM, "the other one was left alone");
    job_view_release(&view);
}

Test(preemption, kills_the_last_worker_half_way)
{
    check(PREEMPT_WORKER, 1, "SIGKILL to worker 1");
}

Test(preemption, kills_the_chief_when_asked_to)
{
    check(PREEMPT_CHIEF, 0, "SIGKILL to worker 0");
}

Test(preemption, measures_until_the_crew_steps_again)
{
    struct job_view view;
    struct preemption preemption;
    pid_t processes[2];
    two_workers(&view, processes);
    preemption_init(&preemption, PREEMPT_WORKER);
    job_view_take_log(&view, "step 50/100  loss 1", 1000);
    preemption_consider(&preemption, &view, 1000);
    cr_assert_eq(end_of(processes[1]), SIGKILL);
    job_view_take_log(&view, "worker 1 was lost", 1100);
    preemption_consider(&preemption, &view, 1100);
    cr_assert_eq(preemption.back_ms, 0, "that is not a step");
    job_view_take_log(
        &view, "the crew is whole again: step 51 done 0.50 s after a member was lost, one step was repeated", 1520);
    preemption_consider(&preemption, &view, 1520);
    cr_assert_eq(preemption.back_ms - preemption.time_ms, 520);
    cr_assert_eq(preemption.repeated, 1);
    job_view_take_log(&view, "step 80/100  loss 1", 3000);
    preemption_consider(&preemption, &view, 3000);
    cr_assert_eq(preemption.back_ms, 1520, "once is enough");
    kill(processes[0], SIGTERM);
    end_of(processes[0]);
    job_view_release(&view);
}

Test(preemption, nobody_is_killed_unasked_or_without_a_process)
{
    struct job_view view;
    struct preemption preemption;
    job_view_init(&view, "default", "digits");
    view.workers = 2;
    add_pod(&view, 0, 0);
    add_pod(&view, 1, 0);
    job_view_take_log(&view, "step 50/100  loss 1", 20);
    preemption_init(&preemption, PREEMPT_WORKER);
    preemption_consider(&preemption, &view, 20);
    cr_assert_eq(preemption.step, -1, "the pod runs elsewhere");
    preemption_init(&preemption, PREEMPT_NOBODY);
    preemption_consider(&preemption, &view, 20);
    cr_assert_eq(preemption.step, -1);
    job_view_release(&view);
}
