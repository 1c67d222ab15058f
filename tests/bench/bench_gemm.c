/* SPDX-License-Identifier: Apache-2.0
 *
 * Our matrix product beside oneDNN's sgemm on the shapes of the presets, one
 * thread each, in the same run: why worker/device/cpu has kernels of its own.
 */
#include <dlfcn.h>
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "worker/device/cpu/gemm.h"

static const struct {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    const char *what;
} shapes[] = {
    {128, 512, 784, false, true, "mlp forward"},         {512, 784, 128, true, false, "mlp weight gradient"},
    {128, 10, 512, false, true, "mlp output"},           {64, 512, 784, false, true, "mlp forward, two workers"},
    {128, 128, 1600, false, true, "lenet dense"},        {4096, 384, 128, false, true, "gpt qkv"},
    {4096, 128, 512, false, false, "gpt data gradient"}, {512, 128, 4096, true, false, "gpt weight gradient"},
    {256, 256, 32, false, true, "attention scores"},     {1024, 1024, 1024, false, false, "square"},
};

struct product {
    struct cpu_call call;
    struct gemm gemm;
};

static void ours(const struct product *product)
{
    gemm_run(&product->call, &product->gemm);
}

static void theirs(const struct product *product)
{
    const struct gemm *g = &product->gemm;
    dnnl_sgemm(g->a_k == 1 ? 'N' : 'T', g->b_column == 1 ? 'N' : 'T', g->m, g->n, g->k, 1, g->a,
               g->a_k == 1 ? g->a_row : g->a_k, g->b, g->b_column == 1 ? g->b_k : g->b_column, 0, g->c, g->c_row);
}

/* Best of many, in operations a nanosecond. */
static double rate(void (*multiply)(const struct product *), const struct product *product)
{
    double best = 0, operations = 2.0 * (double)product->gemm.m * (double)product->gemm.n * (double)product->gemm.k;
    for (int round = 0; round < 40; round++) {
        int64_t start = clock_monotonic_ns();
        multiply(product);
        double now = operations / (double)(clock_monotonic_ns() - start);
        best = now > best ? now : best;
    }
    return best;
}

static float *matrix(int64_t elements)
{
    float *x = aligned_alloc(64, (size_t)(elements + 64) / 16 * 64);
    for (int64_t i = 0; x && i < elements; i++)
        x[i] = (float)(i % 7) - 3;
    return x;
}

int main(void)
{
    struct error error = ERROR_INIT;
    struct team *team = NULL;
    void (*set_threads)(int) = NULL;
    *(void **)&set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set_threads)
        set_threads(1);
    if (team_new(1, CPU_SCRATCH_BYTES, &team, &error) < 0)
        return 1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
        bool ta = shapes[i].a_transposed, tb = shapes[i].b_transposed;
        float *a = matrix(m * k), *b = matrix(k * n), *c = matrix(m * n);
        struct product product = {
            .call = {team, gemm_kernel_choose(NULL), &error},
            .gemm = {m, n, k, a, ta ? 1 : k, ta ? m : 1, b, tb ? 1 : n, tb ? k : 1, c, n, false, NULL, false, NULL},
        };
        double own = rate(ours, &product), library = rate(theirs, &product);
        printf("gemm %5lld x %4lld x %4lld %c%c  ours %6.1f GF/s  oneDNN %6.1f GF/s  ratio %.2f  (%s)\n", (long long)m,
               (long long)n, (long long)k, ta ? 'T' : 'N', tb ? 'T' : 'N', own, library, own / library, shapes[i].what);
        free(a);
        free(b);
        free(c);
    }
    team_free(team);
    return 0;
}
