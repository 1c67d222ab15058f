/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "common/lock.h"
#include "worker/report/termination.h"

/* One process, one wish: signals belong to the process, and so does this. */
static atomic_bool asked;
static atomic_bool held;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static stop_asked *listener;
static void *listener_context;

static void fill_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
}

static _Noreturn void end_at_once(const char *why)
{
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_CANCELLED, "%s", why);
    termination_report(EXIT_CODE_LEFT, &error);
    _exit(EXIT_CODE_LEFT);
}

static void tell_listener(void)
{
    SCOPED_LOCK(&mutex);
    atomic_store(&asked, true);
    if (listener)
        listener(listener_context);
}

static void *wait_for_signals(void *unused)
{
    (void)unused;
    sigset_t signals;
    int number;
    fill_signals(&signals);
    for (;;) {
        if (sigwait(&signals, &number) != 0)
            continue;
        if (!atomic_load(&held))
            end_at_once("asked to leave before training had begun");
        if (stop_is_asked())
            end_at_once("asked to leave a second time; what was not saved is lost");
        tell_listener();
    }
}

int stop_block(struct error *error)
{
    sigset_t signals;
    fill_signals(&signals);
    errno = pthread_sigmask(SIG_BLOCK, &signals, NULL);
    return errno != 0 ? error_set_errno(error, "cannot block signals") : 0;
}

int stop_watch(struct error *error)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, wait_for_signals, NULL);
    if (errno != 0)
        return error_set_errno(error, "cannot watch for signals");
    pthread_detach(thread);
    return 0;
}

void stop_hold(void)
{
    atomic_store(&held, true);
}

bool stop_is_asked(void)
{
    return atomic_load(&asked);
}

void stop_notify(stop_asked *function, void *context)
{
    SCOPED_LOCK(&mutex);
    listener = function;
    listener_context = context;
    if (function && atomic_load(&asked))
        function(context);
}
