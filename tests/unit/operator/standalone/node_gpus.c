/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_gpus.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/json_of.h"

#define CREW(uid, name) "\"metadata\":{\"uid\":\"" name "\",\"labels\":{\"coxswain.dev/job-uid\":\"" uid "\"}}"

static struct gpu_pool pool_of(const char *visible)
{
    struct gpu_list list;
    struct gpu_pool pool;
    gpu_list_read(visible, "/nonexistent", &list);
    gpu_pool_init(&pool, &list);
    return pool;
}

static void expect_visible(const struct gpu_pool *pool, const char *pod, const char *expected)
{
    SCOPED_FREE char *visible = gpu_pool_visible(pool, pod);
    cr_expect_str_eq(visible, expected, "%s has \"%s\"", pod, visible);
}

static void expect_refusal(const struct gpu_pool *pool, struct gpu_request request, const char *expected)
{
    SCOPED_FREE char *why = gpu_pool_refusal(pool, &request);
    cr_expect_str_eq(why, expected);
}

static struct gpu_request request(const char *crew, const char *pod, unsigned count, unsigned together)
{
    return (struct gpu_request){.crew = crew, .pod = pod, .count = count, .together = together};
}

static bool take(struct gpu_pool *pool, struct gpu_request wanted)
{
    return gpu_pool_take(pool, &wanted);
}

/* A gpu_pool_lives. The context: the names of live pods, "crew/pod" with a space behind each. */
static bool lives(void *context, const char *crew, const char *pod)
{
    SCOPED_FREE char *name = pod ? memory_format("%s/%s ", crew, pod) : memory_format("%s/", crew);
    return strstr(context, name) != NULL;
}

Test(node_gpus, each_pod_has_its_own_in_the_order_of_the_variable)
{
    struct gpu_pool pool = pool_of("3,1,2");
    cr_assert(take(&pool, request("a", "a0", 1, 1)));
    cr_assert(take(&pool, request("b", "b0", 2, 2)));
    cr_assert(take(&pool, request("a", "a0", 1, 1)), "what it has it keeps");
    expect_visible(&pool, "a0", "3");
    expect_visible(&pool, "b0", "1,2");
    cr_assert_not(take(&pool, request("c", "c0", 1, 1)));
    expect_visible(&pool, "c0", "");
    expect_refusal(&pool, request("c", "c0", 1, 1),
                   "1 GPU needed, and 0 of this machine's 3 are free; the pod starts when others have ended");
    expect_refusal(&pool, request("c", "c0", 4, 4), "4 GPUs needed, and this machine has 3");
    cr_assert(take(&pool, request("d", "d0", 0, 0)), "a pod that wants none has what it wants");
    expect_visible(&pool, "d0", "");
    gpu_pool_release(&pool);
}

Test(node_gpus, those_of_a_pod_that_has_ended_come_back)
{
    struct gpu_pool pool = pool_of("0,1");
    cr_assert(take(&pool, request("a", "a0", 2, 2)));
    gpu_pool_collect(&pool, lives, (char[]){"a/a0 "});
    cr_assert_not(take(&pool, request("b", "b0", 1, 1)));
    gpu_pool_collect(&pool, lives, (char[]){""});
    cr_assert_not(gpu_pool_has_crew(&pool, "a"));
    cr_assert(take(&pool, request("b", "b0", 1, 1)));
    expect_visible(&pool, "a0", "");
    expect_visible(&pool, "b0", "0");
    gpu_pool_release(&pool);
}

/* Otherwise each of two crews could have one of two GPUs, and wait for the other one for ever. */
Test(node_gpus, a_crew_gets_all_of_its_gpus_together)
{
    struct gpu_pool pool = pool_of("0,1,2");
    cr_assert(take(&pool, request("a", "a0", 1, 2)));
    cr_assert_not(take(&pool, request("b", "b0", 1, 2)), "one is free, and one is for a1");
    expect_visible(&pool, "a0", "0");
    cr_assert(take(&pool, request("c", "c0", 1, 1)));
    cr_assert(take(&pool, request("a", "a1", 1, 2)));
    expect_visible(&pool, "a1", "1");
    expect_visible(&pool, "c0", "2");
    gpu_pool_release(&pool);
}

Test(node_gpus, the_successor_of_a_pod_has_its_gpu)
{
    struct gpu_pool pool = pool_of("0,1");
    cr_assert(take(&pool, request("a", "a0", 1, 2)));
    cr_assert(take(&pool, request("a", "a1", 1, 2)));
    gpu_pool_collect(&pool, lives, (char[]){"a/a1 "});
    cr_assert_not(take(&pool, request("b", "b0", 1, 1)), "the crew goes on");
    cr_assert(take(&pool, request("a", "a2", 1, 2)));
    expect_visible(&pool, "a2", "0");
    expect_visible(&pool, "a1", "1");
    gpu_pool_release(&pool);
}

Test(node_gpus, a_crew_that_grows_takes_free_ones)
{
    struct gpu_pool pool = pool_of("0,1,2");
    cr_assert(take(&pool, request("a", "a0", 1, 1)));
    cr_assert(take(&pool, request("a", "a1", 1, 1)));
    cr_assert(take(&pool, request("b", "b0", 1, 1)));
    cr_assert_not(take(&pool, request("a", "a2", 1, 1)));
    gpu_pool_release(&pool);
}

Test(node_gpus, requests_of_pods)
{
    static const struct {
        const char *pod, *crew;
        unsigned count, together;
    } cases[] = {
        {"{" CREW("j", "p") ",\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":2}}}]}}", "j", 0, 0},
        {"{" CREW("j", "p") ",\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"4\"}}},{}]}}",
         "j", 4, 4},
        {"{\"metadata\":{\"uid\":\"p\"},\"spec\":{\"initContainers\":[{\"resources\":{\"requests\":"
         "{\"nvidia.com/mig-1g.10gb\":3}}}],\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}},"
         "{\"resources\":{\"limits\":{\"nvidia.com/gpu\":1},\"requests\":{\"nvidia.com/gpu\":1}}}]}}",
         "p", 3, 3},
        {"{\"metadata\":{\"uid\":\"p\",\"annotations\":{\"coxswain.dev/crew-gpus\":\"8\"}},\"spec\":{\"containers\":"
         "[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":2}}}]}}",
         "p", 2, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_JSON *pod = json_of(cases[i].pod);
        struct gpu_request found = gpu_request_of(pod);
        cr_expect_str_eq(found.crew, cases[i].crew);
        cr_expect_str_eq(found.pod, "p");
        cr_expect_eq(found.count, cases[i].count, "case %zu: %u", i, found.count);
        cr_expect_eq(found.together, cases[i].together, "case %zu: %u", i, found.together);
    }
}
