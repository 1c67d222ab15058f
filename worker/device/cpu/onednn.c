/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

/* The library would start a team of its own: OpenMP's, where it was built with that, whose setting is one a thread. */
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
