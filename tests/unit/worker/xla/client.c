/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/xla/client.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/sanitized.h"

Test(xla_options, the_plugin_that_is_named_goes_first)
{
    struct xla_options options;
    setenv("TPU_LIBRARY_PATH", "/opt/libtpu.so", 1);
    xla_options_init(&options, "/opt/plugin.so", 4, 0);
    cr_expect_str_eq(options.plugin, "/opt/plugin.so");
    xla_options_init(&options, "", 4, 0);
    cr_expect_str_eq(options.plugin, "/opt/libtpu.so");
    cr_expect_eq(options.tpus, 4);
    xla_options_init(&options, NULL, 0, 0);
    cr_expect_str_eq(options.plugin, "", "libtpu is for TPUs only");
}

Test(xla_options, a_cpu_takes_the_place_of_tpus_only)
{
    struct xla_options options;
    xla_options_init(&options, "plugin", 4, 0);
    cr_expect_str_eq(xla_options_platform(&options), "tpu");
    xla_options_init(&options, "plugin", 4, 8);
    cr_expect_eq(options.cpu_devices, 8);
    cr_expect_str_eq(xla_options_platform(&options), "cpu");
    xla_options_init(&options, "plugin", 0, 8);
    cr_expect_eq(options.cpu_devices, 0);
    cr_expect_str_eq(xla_options_platform(&options), "cpu");
}

Test(xla_options, gpus_are_for_jobs_without_tpus)
{
    struct xla_options options;
    xla_set_gpus(2, false);
    xla_options_init(&options, "plugin", 0, 0);
    cr_expect_eq(options.gpus, 2);
    cr_expect_str_eq(xla_options_platform(&options), "cuda");
    xla_options_init(&options, "plugin", 0, 8);
    cr_expect_eq(options.cpu_devices, 8);
    cr_expect_str_eq(xla_options_platform(&options), "cpu");
    xla_options_init(&options, "plugin", 4, 0);
    cr_expect_eq(options.gpus, 0);
    cr_expect_str_eq(xla_options_platform(&options), "tpu");
    xla_set_gpus(0, false);
    xla_options_init(&options, "plugin", 0, 0);
    cr_expect_eq(options.gpus, 0);
    cr_expect_str_eq(xla_options_platform(&options), "cpu");
}

Test(xla_options, gpus_compute_the_same_bits_each_time)
{
    unsetenv("XLA_FLAGS");
    xla_set_gpus(0, true);
    cr_expect_null(getenv("XLA_FLAGS"), "for CPUs the flag means nothing");
    xla_set_gpus(1, false);
    cr_expect_null(getenv("XLA_FLAGS"));
    xla_set_gpus(1, true);
    xla_set_gpus(1, true);
    cr_expect_str_eq(getenv("XLA_FLAGS"), "--xla_gpu_deterministic_ops=true");
    setenv("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/opt", 1);
    xla_set_gpus(1, true);
    cr_expect_str_eq(getenv("XLA_FLAGS"), "--xla_gpu_cuda_data_dir=/opt --xla_gpu_deterministic_ops=true");
}

/* Code that was compiled with other settings is not taken from the cache (compilation.h). */
Test(xla_options, what_changes_compiled_code_is_told)
{
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    unsetenv("XLA_FLAGS");
    unsetenv("LIBTPU_INIT_ARGS");
    xla_append_settings(&text);
    cr_expect_str_eq(buffer_text(&text), "");
    setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true", 1);
    setenv("LIBTPU_INIT_ARGS", "--xla_tpu_scoped_vmem_limit_kib=65536", 1);
    xla_append_settings(&text);
    cr_expect_str_eq(buffer_text(&text), "XLA_FLAGS=--xla_cpu_enable_fast_math=true "
                                         "LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=65536 ");
}

static void check_processor(const char *file, const char *expected)
{
    char path[] = "/tmp/coxswain-cpuinfo-XXXXXX";
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    int descriptor = mkstemp(path);
    cr_assert_eq(write(descriptor, file, strlen(file)), (ssize_t)strlen(file));
    close(descriptor);
    xla_append_processor(path, &text);
    unlink(path);
    cr_expect_str_eq(buffer_text(&text), expected);
}

/* Nor is code for another processor; a newer kernel, which names more flags, changes nothing. */
Test(xla_options, what_a_processor_can_do_is_told)
{
    check_processor("processor\t: 0\nmodel\t\t: 85\nflags\t\t: fpu sse2 ibrs_enhanced avx512f fma\n\nprocessor\t: "
                    "1\nflags\t: avx2\n",
                    "sse2 avx512f fma ");
    check_processor(
        "processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n\n",
        "Features\t: fp asimd sve CPU implementer\t: 0x41 CPU part\t: 0xd40 ");
}

#define BLOCK ((size_t)70 << 20)
#define FIRST_RUNS 20

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Allocates a plugin's temporary values for some runs. Returns how many pages the kernel had to clear in the last three. */
static void *run_some_times(void *context)
{
    long faults = 0;
    for (unsigned run = 0; run < FIRST_RUNS + 4; run++) {
        if (run == FIRST_RUNS + 1)
            faults = page_faults();
        void *block = aligned_alloc(XLA_ALIGNMENT, BLOCK);
        if (block != NULL && run >= FIRST_RUNS)
            memset(block, 1, BLOCK);
        __asm__ volatile("" ::"r"(block) : "memory"); /* the compiler must not leave it out */
        free(block);
    }
    *(long *)context = page_faults() - faults;
    return NULL;
}

Test(xla_memory, what_a_run_has_freed_is_there_for_the_next)
{
    pthread_t thread;
    long here, there;
    if (IS_SANITIZED)
        cr_skip_test("a sanitizer has a malloc of its own");
    xla_keep_freed_memory();
    run_some_times(&here);
    cr_expect_lt(here, 1000, "%ld page faults", here);
    cr_assert_eq(pthread_create(&thread, NULL, run_some_times, &there), 0);
    pthread_join(thread, NULL);
    cr_expect_lt(there, 1000, "%ld page faults in another thread", there);
}
