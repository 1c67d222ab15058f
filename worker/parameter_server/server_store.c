/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/parameter_server/server_parts.h"

static void write_copy(struct ps_server *server)
{
    struct store_job *job = &server->store;
    struct error error = ERROR_INIT;
    char name[64] = "";
    struct ps_message *result = &job->result;
    const struct variables *values = &job->copy.values;
    variables_copy_complete(&job->copy);
    *result = (struct ps_message){.type = PS_SAVED,
                                  .step = job->step,
                                  .updates = values->updates,
                                  .empty = values->empty,
                                  .tickets = values->applied};
    if (server->options.store(server->options.context, job->directory, values, name, &result->bytes, &result->crc,
                              &error) < 0) {
        snprintf(result->text, sizeof result->text, "%.250s", error.message);
        result->verdict = (uint32_t)error.os_error;
    }
    snprintf(result->path, sizeof result->path, "%s", name);
}

static void *run(void *context)
{
    struct ps_server *server = context;
    pthread_mutex_lock(&server->lock);
    while (!server->stopping) {
        if (!server->store.wanted) {
            pthread_cond_wait(&server->changed, &server->lock);
            continue;
        }
        server->store.wanted = false;
        pthread_mutex_unlock(&server->lock);
        write_copy(server);
        pthread_mutex_lock(&server->lock);
        server->store.done = true;
        rpc_wake(server->rpc);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

int server_store_start(struct ps_server *server, struct error *error)
{
    errno = pthread_create(&server->storing, NULL, run, server);
    if (errno != 0)
        return error_set_errno(error, "cannot start the thread that writes checkpoints");
    server->storing_runs = true;
    return 0;
}

void server_store_stop(struct ps_server *server)
{
    if (!server->storing_runs)
        return;
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->storing, NULL);
    variables_copy_release(&server->store.copy);
}

bool server_store_begin(struct ps_server *server, const struct ps_message *order)
{
    struct store_job *job = &server->store;
    struct ps_message refusal = {.type = PS_SAVED, .step = order->step};
    struct error error = ERROR_INIT;
    if (job->busy) {
        snprintf(refusal.text, sizeof refusal.text, "the checkpoint before is still being written");
        refusal.verdict = PS_SAVE_WAITS;
    } else if (variables_copy_begin(&job->copy, &server->variables, VARIABLES_WITH_SLOTS, &error) < 0) {
        snprintf(refusal.text, sizeof refusal.text, "%.250s", error.message);
    }
    if (refusal.text[0]) {
        ps_message_send(server->control->stream, &refusal);
        return false;
    }
    ps_server_record(server, SERVER_SAVED, &server->variables, order->step, order->path);
    job->step = order->step;
    snprintf(job->directory, sizeof job->directory, "%s", order->path);
    job->busy = true;
    pthread_mutex_lock(&server->lock);
    job->wanted = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return true;
}

void server_store_tick(struct ps_server *server)
{
    struct store_job *job = &server->store;
    pthread_mutex_lock(&server->lock);
    bool done = job->done;
    job->done = false;
    pthread_mutex_unlock(&server->lock);
    if (!done)
        return;
    variables_copy_end(&job->copy, &server->variables);
    job->busy = false;
    if (server->control == NULL)
        return; /* no chief is connected that could add the shard to a checkpoint */
    if (!job->result.text[0])
        server->saved_updates = job->result.updates;
    ps_message_send(server->control->stream, &job->result);
}
