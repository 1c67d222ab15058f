/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "common/lock.h"

static const struct {
    const char *arithmetic;
    dnnl_cpu_isa_t most; /* the widest instruction set that the library may use */
} instruction_sets[] = {
    {"avx512", dnnl_cpu_isa_avx512_core},
    {"avx2", dnnl_cpu_isa_avx2},
    {"portable", dnnl_cpu_isa_sse41},
};

static pthread_mutex_t choice = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const char *) chosen; /* NULL: not chosen yet */

/* The library accepts a limit only before its first product; so the first caller decides. */
static const char *choose(const char *arithmetic)
{
    SCOPED_LOCK(&choice);
    for (size_t i = 0; i < sizeof instruction_sets / sizeof *instruction_sets && !chosen; i++)
        if (strcmp(arithmetic, instruction_sets[i].arithmetic) == 0)
            chosen =
                dnnl_set_max_cpu_isa(instruction_sets[i].most) == dnnl_success ? instruction_sets[i].arithmetic : "";
    return chosen ? chosen : "";
}

bool onednn_computes_with(const char *arithmetic)
{
    const char *now = chosen;
    return strcmp(now ? now : choose(arithmetic), arithmetic) == 0;
}

/* Keeps the library from starting threads of its own: with OpenMP, by a setting that each thread
 * has. */
static void stay_on_this_thread(void)
{
    static _Thread_local bool done;
    if (done)
        return;
    void (*set_threads)(int) = NULL;
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_threads)
        set_threads(1);
    done = true;
}

bool onednn_multiply(int64_t m, int64_t n, int64_t k, const struct onednn_matrix *a, const struct onednn_matrix *b,
                     float *c, int64_t c_row)
{
    stay_on_this_thread();
    return dnnl_sgemm(a->transposed ? 'T' : 'N', b->transposed ? 'T' : 'N', m, n, k, 1.0f, a->start, a->stride,
                      b->start, b->stride, 0.0f, c, c_row) == dnnl_success;
}
