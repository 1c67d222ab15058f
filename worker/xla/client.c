/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/xla/client.h"

#include <glob.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOGLE "0x1ae0" /* its number among vendors of PCI devices */
/* The numbers of TPUs, v2 to 7x. Google makes other PCI devices too, such as the network's card of its virtual machines. */
static const char *const tpu_numbers[] = {"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"};
#define TPU_NUMBERS (sizeof tpu_numbers / sizeof *tpu_numbers)

/* Without these variables the plugin takes the processors of the machine. PJRT_NPROC goes before NPROC, which older
 * plugins know alone. */
void xla_set_environment(int threads)
{
    char number[16];
    snprintf(number, sizeof number, "%d", threads);
    (void)setenv("NPROC", number, 1);
    (void)setenv("PJRT_NPROC", number, 1);
}

/* All threads take from one heap, because those of other threads are too small for blocks of 64 MiB and more. */
void xla_keep_freed_memory(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, INT_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

int64_t xla_value_elements(const struct xla_value *value)
{
    int64_t elements = 1;
    for (unsigned i = 0; i < value->rank; i++)
        elements *= value->shape[i];
    return elements;
}

/* ---------------------------------------------------------------- options */

static void take_plugin(struct xla_options *options, const char *path)
{
    snprintf(options->plugin, sizeof options->plugin, "%s", path);
}

/* Takes the first file that there is. */
static void find_libtpu(struct xla_options *options)
{
    static const char *const places[] = {"/lib/libtpu.so",
                                         "/usr/lib/libtpu.so",
                                         "/usr/local/lib/libtpu.so",
                                         "/usr/local/lib/python3*/[sd]*-packages/libtpu/libtpu.so",
                                         "/usr/lib/python3*/[sd]*-packages/libtpu/libtpu.so",
                                         "/opt/venv/lib/python3*/site-packages/libtpu/libtpu.so"};
    for (size_t i = 0; i < sizeof places / sizeof *places && options->plugin[0] == '\0'; i++) {
        glob_t found = {0};
        if (glob(places[i], 0, NULL, &found) == 0)
            take_plugin(options, found.gl_pathv[0]);
        globfree(&found);
    }
}

void xla_options_init(struct xla_options *options, const char *plugin, unsigned tpus, unsigned cpu_devices)
{
    const char *library = getenv("TPU_LIBRARY_PATH");
    *options = (struct xla_options){.tpus = tpus, .cpu_devices = tpus > 0 ? cpu_devices : 0};
    if (plugin != NULL && *plugin != '\0')
        take_plugin(options, plugin);
    else if (tpus > 0 && library != NULL && *library != '\0')
        take_plugin(options, library);
    else if (tpus > 0)
        find_libtpu(options);
}

const char *xla_options_platform(const struct xla_options *options)
{
    return options->tpus > 0 && options->cpu_devices == 0 ? "tpu" : "cpu";
}

/* Reads a short file that holds one word. */
static void read_word(const char *folder, const char *name, char *ret_word, size_t size)
{
    char path[XLA_PATH_MAX];
    *ret_word = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(ret_word, (int)size, file) == NULL)
        *ret_word = '\0';
    ret_word[strcspn(ret_word, "\n")] = '\0';
    (void)fclose(file);
}

void xla_append_settings(struct buffer *text)
{
    static const char *const names[] = {"XLA_FLAGS", "LIBTPU_INIT_ARGS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            (void)buffer_format(text, "%s=%s ", names[i], value);
    }
}

void xla_append_tpus(struct buffer *text)
{
    unsigned counts[TPU_NUMBERS] = {0};
    glob_t devices = {0};
    if (glob("/sys/bus/pci/devices/*", 0, NULL, &devices) == 0)
        for (size_t i = 0; i < devices.gl_pathc; i++) {
            char vendor[16], number[16];
            read_word(devices.gl_pathv[i], "vendor", vendor, sizeof vendor);
            read_word(devices.gl_pathv[i], "device", number, sizeof number);
            for (size_t n = 0; n < TPU_NUMBERS && strcmp(vendor, GOOGLE) == 0; n++)
                counts[n] += strcmp(number, tpu_numbers[n]) == 0;
        }
    globfree(&devices);
    for (size_t n = 0; n < TPU_NUMBERS; n++)
        if (counts[n] > 0)
            (void)buffer_format(text, "%u x %s ", counts[n], tpu_numbers[n]);
}
