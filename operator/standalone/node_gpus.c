/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_gpus.h"

#include <limits.h>

#include "common/buffer.h"
#include "common/contract/labels.h"
#include "common/memory.h"

#define VISIBLE_MAX (GPU_LIST_MAX * 64)

/* ---------------------------------------------------------------- requests */

static unsigned amount(const struct json *value)
{
    const char *text = json_string(value, NULL);
    char *end;
    int64_t number = text ? strtoll(text, &end, 10) : json_integer(value, 0);
    return number > 0 && number < INT_MAX ? (unsigned)number : 0;
}

/* Limits are requests, too. All resources of nvidia.com are GPUs here: parts of them (nvidia.com/mig-1g.10gb) are on other machines. */
static unsigned requested(const struct json *container)
{
    static const char *const kinds[] = {"limits", "requests"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct json *amounts = json_member(json_member(container, "resources"), kinds[i]);
        for (const struct json *item = json_first(amounts); item; item = json_next(item))
            if (strncmp(json_key(item), GPU_RESOURCE_DOMAIN, strlen(GPU_RESOURCE_DOMAIN)) == 0 && amount(item) > 0)
                return amount(item);
    }
    return 0;
}

bool gpu_requested_by(const struct json *container)
{
    return requested(container) > 0;
}

bool gpu_claimed_by(const struct json *container)
{
    return json_count(json_at(container, "resources.claims")) > 0;
}

struct gpu_request gpu_request_of(const struct json *pod)
{
    unsigned sum = 0, most = 0;
    for (const struct json *item = json_first(json_at(pod, "spec.containers")); item; item = json_next(item))
        sum += requested(item);
    for (const struct json *item = json_first(json_at(pod, "spec.initContainers")); item; item = json_next(item))
        most = requested(item) > most ? requested(item) : most;
    const char *uid = json_string_at(pod, "metadata.uid", "");
    const struct json *labels = json_at(pod, "metadata.labels"), *annotations = json_at(pod, "metadata.annotations");
    struct gpu_request request = {.crew = json_string(json_member(labels, LABEL_JOB_UID), uid),
                                  .pod = uid,
                                  .count = sum > most ? sum : most,
                                  .together = amount(json_member(annotations, ANNOTATION_CREW_GPUS))};
    if (request.together < request.count)
        request.together = request.count;
    return request;
}

/* ---------------------------------------------------------------- the pool */

void gpu_pool_init(struct gpu_pool *pool, const struct gpu_list *list)
{
    *pool = (struct gpu_pool){.list = *list};
}

void gpu_pool_release(struct gpu_pool *pool)
{
    for (unsigned i = 0; i < pool->list.count; i++) {
        free(pool->gpus[i].crew);
        free(pool->gpus[i].pod);
    }
    gpu_list_release(&pool->list);
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool gpu_pool_has_crew(const struct gpu_pool *pool, const char *crew)
{
    for (unsigned i = 0; i < pool->list.count; i++)
        if (same(pool->gpus[i].crew, crew))
            return true;
    return false;
}

static bool has_pod(const struct gpu_pool *pool, const char *pod)
{
    for (unsigned i = 0; i < pool->list.count; i++)
        if (same(pool->gpus[i].pod, pod))
            return true;
    return false;
}

/* Counts the GPUs that nobody has. */
static unsigned count_free(const struct gpu_pool *pool)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->list.count; i++)
        count += pool->gpus[i].crew == NULL;
    return count;
}

/* Counts the GPUs that wait for a pod of the crew. */
static unsigned count_aside(const struct gpu_pool *pool, const char *crew)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->list.count; i++)
        count += same(pool->gpus[i].crew, crew) && !pool->gpus[i].pod;
    return count;
}

static void set_aside(struct gpu_pool *pool, const char *crew, unsigned count)
{
    for (unsigned i = 0; i < pool->list.count && count > 0; i++) {
        if (pool->gpus[i].crew)
            continue;
        pool->gpus[i].crew = memory_copy_string(crew);
        count--;
    }
}

bool gpu_pool_take(struct gpu_pool *pool, const struct gpu_request *request)
{
    if (request->count == 0 || has_pod(pool, request->pod))
        return true;
    unsigned aside = count_aside(pool, request->crew), left = request->count;
    unsigned wanted = gpu_pool_has_crew(pool, request->crew) ? request->count : request->together;
    unsigned more = wanted > aside ? wanted - aside : 0;
    if (more > count_free(pool))
        return false;
    set_aside(pool, request->crew, more);
    for (unsigned i = 0; i < pool->list.count && left > 0; i++) {
        if (pool->gpus[i].pod || !same(pool->gpus[i].crew, request->crew))
            continue;
        pool->gpus[i].pod = memory_copy_string(request->pod);
        left--;
    }
    return true;
}

void gpu_pool_collect(struct gpu_pool *pool, gpu_pool_lives *lives, void *context)
{
    for (unsigned i = 0; i < pool->list.count; i++) {
        struct gpu *gpu = &pool->gpus[i];
        if (gpu->pod && !lives(context, gpu->crew, gpu->pod)) {
            free(gpu->pod);
            gpu->pod = NULL;
        }
        if (gpu->crew && !gpu->pod && !lives(context, gpu->crew, NULL)) {
            free(gpu->crew);
            gpu->crew = NULL;
        }
    }
}

/* ---------------------------------------------------------------- words */

char *gpu_pool_visible(const struct gpu_pool *pool, const char *pod)
{
    SCOPED_BUFFER text = BUFFER_INIT(VISIBLE_MAX);
    for (unsigned i = 0; i < pool->list.count; i++)
        if (same(pool->gpus[i].pod, pod))
            buffer_format(&text, "%s%s", text.length > 0 ? "," : "", pool->list.names[i]);
    return buffer_take(&text);
}

char *gpu_pool_refusal(const struct gpu_pool *pool, const struct gpu_request *request)
{
    unsigned there = pool->list.count;
    const char *plural = request->together == 1 ? "" : "s";
    if (request->together > there)
        return memory_format("%u GPU%s needed, and this machine has %u", request->together, plural, there);
    return memory_format("%u GPU%s needed, and %u of this machine's %u are free; the pod starts when others have ended",
                         request->together, plural, count_free(pool), there);
}
