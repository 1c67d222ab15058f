/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "worker/parameter_server/server_parts.h"

static void write_copy(struct ps_server *server)
{
    struct store_job *job = &server->store;
    struct error error = ERROR_INIT;
    char name[64] = "";
    struct ps_message *result = &job->result;
    *result = (struct ps_message){
        .type = PS_SAVED, .step = job->step, .updates = job->copy.updates, .tickets = job->copy.applied};
    if (server->options.store(server->options.context, job->directory, &job->copy, name, &result->bytes, &result->crc,
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
        return error_set_errno(error, "start the thread that writes checkpoints");
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
    struct store_job *job = &server->store;
    if (job->memory)
        munmap(job->memory, job->capacity);
    ticket_set_release(&job->copy.applied);
}

static int reserve(struct store_job *job, size_t bytes, struct error *error)
{
    if (job->capacity >= bytes)
        return 0;
    if (job->memory)
        munmap(job->memory, job->capacity);
    job->memory = NULL; /* these two alone: the rest is the storing thread's, too */
    job->capacity = 0;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return error_set(error, ERROR_NO_SPACE, "no memory for a checkpoint's copy of %zu bytes", bytes);
    job->memory = memory;
    job->capacity = bytes;
    return 0;
}

static float *copy_array(const struct variables *variables, unsigned number, float *memory, const float *from)
{
    float *to = memory + (int64_t)number * variables->elements;
    memcpy(to, from, (size_t)variables->elements * sizeof *to);
    return to;
}

static void take_copy(struct store_job *job, const struct variables *variables)
{
    struct ticket_set applied = job->copy.applied;
    job->copy = *variables;
    job->copy.applied = applied;
    ticket_set_copy(&job->copy.applied, &variables->applied);
    job->copy.parameters = copy_array(variables, 0, job->memory, variables->parameters);
    for (unsigned i = 0; i < variables->slot_count; i++)
        job->copy.slots[i] = copy_array(variables, i + 1, job->memory, variables->slots[i]);
}

void server_store_begin(struct ps_server *server, const struct ps_message *order)
{
    struct store_job *job = &server->store;
    const struct variables *variables = &server->variables;
    struct ps_message refusal = {.type = PS_SAVED, .step = order->step};
    struct error error = ERROR_INIT;
    size_t bytes = ((size_t)variables->elements * (1 + variables->slot_count) + 1) * sizeof(float);
    if (job->busy)
        snprintf(refusal.text, sizeof refusal.text, "the checkpoint before is still being written");
    else if (reserve(job, bytes, &error) < 0)
        snprintf(refusal.text, sizeof refusal.text, "%.250s", error.message);
    if (refusal.text[0]) {
        ps_message_send(server->control->stream, &refusal);
        return;
    }
    take_copy(job, variables);
    ps_server_record(server, SERVER_SAVED, variables, order->step, order->path);
    job->step = order->step;
    snprintf(job->directory, sizeof job->directory, "%s", order->path);
    job->busy = true;
    pthread_mutex_lock(&server->lock);
    job->wanted = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
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
    job->busy = false;
    if (server->control != NULL)
        ps_message_send(server->control->stream, &job->result);
}
