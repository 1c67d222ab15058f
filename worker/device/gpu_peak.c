/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/gpu_peak.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The first entry that matches is used. */
static const struct {
    const char *name, *arithmetic;
    double tera[3]; /* by enum device_peak */
} gpus[] = {
    {"B200", "sm_100", {75, 1125, 2250}},      {"GH200", "sm_90", {67, 494.5, 989}},
    {"H200 NVL", "sm_90", {60, 417.5, 835.5}}, {"H200", "sm_90", {67, 494.5, 989}},
    {"H100 NVL", "sm_90", {60, 417.5, 835.5}}, {"H100 PCIe", "sm_90", {51, 378, 756}},
    {"H100", "sm_90", {67, 494.5, 989}},       {"H800 PCIe", "sm_90", {51, 378, 756}},
    {"H800", "sm_90", {67, 494.5, 989}},       {"A100", "sm_80", {19.5, 156, 312}},
    {"A800", "sm_80", {19.5, 156, 312}},       {"A30", "sm_80", {10.3, 82, 165}},
    {"A40", "sm_86", {37.4, 74.8, 149.7}},     {"A10", "sm_86", {31.2, 62.5, 125}},
    {"L40S", "sm_89", {91.6, 183, 362}},       {"L40", "sm_89", {90.5, 90.5, 181}},
    {"L4", "sm_89", {30.3, 60, 121}},
};

#define MAKER "NVIDIA "

/* Compares whole words: "NVIDIA A100-SXM4-80GB" is an A100, not an A10. */
static bool is_called(const char *name, const char *wanted)
{
    size_t length = strlen(wanted);
    return strncmp(name, wanted, length) == 0 && !isalnum((unsigned char)name[length]);
}

double gpu_peak_flops(const char *name, const char *arithmetic, enum device_peak peak)
{
    if (strncmp(name, MAKER, strlen(MAKER)) != 0 || strstr(name, " MIG ") != NULL)
        return 0;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (is_called(name + strlen(MAKER), gpus[i].name) && strcmp(arithmetic, gpus[i].arithmetic) == 0)
            return gpus[i].tera[peak] * 1e12;
    return 0;
}
