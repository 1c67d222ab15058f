/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares the machine's GPUs between the pods of the embedded control plane's node. A pod that requests GPUs (a resource of nvidia.com) gets
 * some that no other pod has, or waits. The GPUs of a crew are set aside together, before its first pod starts, and stay with the crew
 * until its last pod has ended. So two crews never wait for each other's GPUs, and the successor of a pod finds the GPUs of its
 * predecessor.
 *
 * The pool knows no pods, only names: `crew` is the same for all pods of a job (gpu_request.crew), and `pod` a pod's UID.
 */
#ifndef COXSWAIN_STANDALONE_NODE_GPUS_H
#define COXSWAIN_STANDALONE_NODE_GPUS_H

#include <stdbool.h>

#include "common/gpu_list.h"
#include "common/json.h"

struct gpu {
    char *crew; /* NULL: free */
    char *pod;  /* NULL: set aside for a pod of the crew that is to come */
};

struct gpu_pool {
    struct gpu_list list;
    struct gpu gpus[GPU_LIST_MAX];
};

/* What a pod asks for. Borrowed from the pod. */
struct gpu_request {
    const char *crew, *pod;
    unsigned count;    /* 0: no GPU */
    unsigned together; /* that the crew needs to start; at least `count` */
};

/* Reads the requests of all containers of a pod, and ANNOTATION_CREW_GPUS. */
struct gpu_request gpu_request_of(const struct json *pod);
/* Whether a container requests GPUs, and whether its resource claims may bring some, which this node does not know. */
bool gpu_requested_by(const struct json *container);
bool gpu_claimed_by(const struct json *container);

/* Takes the list over. */
void gpu_pool_init(struct gpu_pool *pool, const struct gpu_list *list);
void gpu_pool_release(struct gpu_pool *pool);

/* Gives the pod its GPUs. Returns false, and gives it none, if there are too few; true if it has them already, or asks for none. */
bool gpu_pool_take(struct gpu_pool *pool, const struct gpu_request *request);
/* Returns whether GPUs are set aside for the crew. */
bool gpu_pool_has_crew(const struct gpu_pool *pool, const char *crew);
/* Takes back the GPUs of each pod, and those that are set aside for each crew, for which `lives` returns false. A pod that has ended does
 * not live; a crew lives while one of its pods that request GPUs does, or waits. */
typedef bool gpu_pool_lives(void *context, const char *crew, const char *pod); /* `pod` NULL: any pod of the crew */
void gpu_pool_collect(struct gpu_pool *pool, gpu_pool_lives *lives, void *context);

/* Returns the value of CUDA_VISIBLE_DEVICES for a pod; "" if it has no GPU. Release with free(). */
char *gpu_pool_visible(const struct gpu_pool *pool, const char *pod);
/* Returns why the request waits, as a scheduler says it. Release with free(). */
char *gpu_pool_refusal(const struct gpu_pool *pool, const struct gpu_request *request);

#endif
