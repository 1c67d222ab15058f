/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/xla/client.h"

#include <criterion/criterion.h>
#include <stdlib.h>

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
    cr_expect_null(xla_options_platform(&options));
    xla_options_init(&options, "plugin", 0, 8);
    cr_expect_eq(options.cpu_devices, 0);
    cr_expect_null(xla_options_platform(&options));
}

/* Code that was compiled with other settings is not taken from the cache (compilation.h). */
Test(xla_options, what_changes_compiled_code_is_told)
{
    SCOPED_BUFFER text;
    buffer_init(&text, 4096);
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
