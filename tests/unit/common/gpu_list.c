/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpu_list.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"

static void expect_list(const char *visible, const char *devices, const char *expected)
{
    struct gpu_list list;
    char text[256] = "";
    gpu_list_read(visible, devices, &list);
    for (unsigned i = 0; i < list.count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s|", list.names[i]);
    }
    cr_expect_str_eq(text, expected, "\"%s\" gave %s", visible ? visible : "(not set)", text);
    gpu_list_release(&list);
}

Test(gpu_list, the_variable_names_them_in_its_order)
{
    static const struct {
        const char *visible, *expected;
    } cases[] = {
        {"", ""},           {"-1", ""},       {"2,0", "2|0|"},
        {" 1, 3 ", "1|3|"}, {"0,-1,1", "0|"}, {"0,0,1", "0|"},
        {"1,", "1|"},       {"none", ""},     {"GPU-8932f937,MIG-2f1c", "GPU-8932f937|MIG-2f1c|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_list(cases[i].visible, "/nonexistent", cases[i].expected);
}

Test(gpu_list, without_it_the_files_of_the_driver_count)
{
    static const char *const files[] = {"nvidia0",    "nvidia3",  "nvidia12", "nvidiactl",
                                        "nvidia-uvm", "nvidia0x", "null"};
    char directory[] = "/tmp/gpu-list-XXXXXX";
    cr_assert(mkdtemp(directory));
    expect_list(NULL, directory, "");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        SCOPED_FREE char *path = memory_format("%s/%s", directory, files[i]);
        fclose(fopen(path, "w"));
    }
    expect_list(NULL, directory, "0|1|2|");
    expect_list("1", directory, "1|");
    directory_remove(directory);
    expect_list(NULL, directory, "");
}

Test(gpu_list, more_than_it_holds_are_cut)
{
    char visible[1024] = "";
    struct gpu_list list;
    for (int i = 0; i < 2 * GPU_LIST_MAX; i++) {
        size_t length = strlen(visible);
        snprintf(visible + length, sizeof visible - length, "%d,", i);
    }
    gpu_list_read(visible, "/nonexistent", &list);
    cr_expect_eq(list.count, GPU_LIST_MAX);
    gpu_list_release(&list);
}
