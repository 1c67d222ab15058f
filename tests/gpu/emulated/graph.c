/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream capture: what is queued on a stream during a capture does not run, but becomes a graph, which can then be launched any number of
 * times. As in the manual, the capturing thread must not wait, query or allocate anything: the call fails and invalidates the capture. As
 * far as is emulated here, the capture is also invalidated by a host function, by an operation of NCCL, and by a wait for an event or its
 * recording on the stream, except as an external event, which each launch of the graph records.
 *
 * EMULATED_CAPTURE=fails: no capture succeeds.
 */
#include "tests/gpu/emulated/graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    cudaHostFn_t *function;
    size_t bytes;
    char job[];
};

struct CUgraph_st {
    struct node *first, **end;
    bool spoilt;
};

struct CUgraphExec_st {
    struct node *first;
};

static __thread struct CUgraph_st *current; /* of this thread; NULL: it captures nothing */
static __thread cudaStream_t captured;
static atomic_uint captures;

bool emulated_captures(cudaStream_t stream)
{
    return current && captured == stream;
}

bool emulated_someone_captures(void)
{
    return atomic_load(&captures) > 0;
}

void emulated_capture_job(cudaHostFn_t *function, const void *job, size_t bytes)
{
    struct node *node = malloc(sizeof *node + bytes);
    if (!node)
        abort();
    *node = (struct node){NULL, function, bytes};
    memcpy(node->job, job, bytes);
    *current->end = node;
    current->end = &node->next;
}

/* A node without a function records the event when it is launched. */
void emulated_capture_event(cudaEvent_t event)
{
    emulated_capture_job(NULL, &event, sizeof event);
}

void emulated_spoil_capture(void)
{
    current->spoilt = true;
}

bool emulated_forbids(void)
{
    if (current)
        emulated_spoil_capture();
    return current != NULL;
}

static void free_nodes(struct node *node)
{
    while (node) {
        struct node *next = node->next;
        free(node);
        node = next;
    }
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    if (current)
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    current = calloc(1, sizeof *current);
    if (!current)
        abort();
    current->end = &current->first;
    current->spoilt = getenv("EMULATED_CAPTURE") != NULL;
    captured = stream;
    atomic_fetch_add(&captures, 1);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret_graph)
{
    struct CUgraph_st *graph = current;
    if (!emulated_captures(stream))
        return emulated_fail(cudaErrorStreamCaptureUnmatched);
    current = NULL;
    atomic_fetch_sub(&captures, 1);
    *ret_graph = NULL;
    if (graph->spoilt) {
        (void)cudaGraphDestroy(graph);
        return emulated_fail(cudaErrorStreamCaptureInvalidated);
    }
    *ret_graph = graph;
    return cudaSuccess;
}

/* The graph may be destroyed afterwards. */
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ret_exec, cudaGraph_t graph, unsigned long long flags)
{
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
    if (!exec || flags != 0)
        abort();
    exec->first = graph->first;
    graph->first = NULL;
    *ret_exec = exec;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (emulated_captures(stream))
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    for (const struct node *node = exec->first; node; node = node->next) {
        cudaEvent_t event;
        if (node->function) {
            emulated_queue_job(stream, node->function, node->job, node->bytes);
            continue;
        }
        memcpy(&event, node->job, sizeof event);
        (void)cudaEventRecord(event, stream);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    free_nodes(graph->first);
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    free_nodes(exec->first);
    free(exec);
    return cudaSuccess;
}
