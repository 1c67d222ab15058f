/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/xla/client.h"

#include <glob.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "common/scope.h"

/* XLA's own default takes the fastest of a GPU's kernels, which differs from time to time. */
#define SAME_BITS "--xla_gpu_deterministic_ops=true"

#define GPUS_MAX 64  /* of one process */
#define KINDS_MAX 64 /* of PCI devices of one vendor */
/* Numbers of vendors of PCI devices. */
#define NVIDIA "0x10de"
#define GOOGLE "0x1ae0"
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
static void find_plugin(struct xla_options *options, const char *const *places)
{
    for (; *places != NULL && options->plugin[0] == '\0'; places++) {
        glob_t found = {0};
        if (glob(*places, 0, NULL, &found) == 0)
            take_plugin(options, found.gl_pathv[0]);
        globfree(&found);
    }
}

static void find_libtpu(struct xla_options *options)
{
    static const char *const places[] = {"/lib/libtpu.so",
                                         "/usr/lib/libtpu.so",
                                         "/usr/local/lib/libtpu.so",
                                         "/usr/local/lib/python3*/[sd]*-packages/libtpu/libtpu.so",
                                         "/usr/lib/python3*/[sd]*-packages/libtpu/libtpu.so",
                                         "/opt/venv/lib/python3*/site-packages/libtpu/libtpu.so",
                                         NULL};
    find_plugin(options, places);
}

/* The libraries of CUDA lie beside it, where it searches for them. */
static void find_cuda(struct xla_options *options)
{
#define CUDA_PLUGIN "/jax_plugins/xla_cuda1*/xla_cuda_plugin.so"
    static const char *const places[] = {
        "/usr/lib/coxswain/xla-cuda" CUDA_PLUGIN, "/usr/local/lib/python3*/[sd]*-packages" CUDA_PLUGIN,
        "/usr/lib/python3*/[sd]*-packages" CUDA_PLUGIN, "/opt/venv/lib/python3*/site-packages" CUDA_PLUGIN, NULL};
    find_plugin(options, places);
}

void xla_set_gpus(unsigned gpus, bool same_bits)
{
    const char *flags = getenv("XLA_FLAGS");
    char number[16];
    snprintf(number, sizeof number, "%u", gpus);
    (void)(gpus > 0 ? setenv(ENV_PJRT_GPUS, number, 1) : unsetenv(ENV_PJRT_GPUS));
    if (gpus == 0 || !same_bits || (flags != NULL && strstr(flags, SAME_BITS) != NULL))
        return;
    bool has_others = flags != NULL && *flags != '\0';
    SCOPED_FREE char *more = memory_format("%s%s" SAME_BITS, has_others ? flags : "", has_others ? " " : "");
    (void)setenv("XLA_FLAGS", more, 1);
}

static unsigned gpus_of_environment(void)
{
    const char *number = getenv(ENV_PJRT_GPUS);
    unsigned long gpus = number != NULL ? strtoul(number, NULL, 10) : 0;
    return gpus < GPUS_MAX ? (unsigned)gpus : GPUS_MAX;
}

void xla_options_init(struct xla_options *options, const char *plugin, unsigned tpus, unsigned cpu_devices)
{
    const char *library = getenv("TPU_LIBRARY_PATH");
    unsigned gpus = tpus > 0 ? 0 : gpus_of_environment();
    *options = (struct xla_options){.tpus = tpus, .gpus = gpus, .cpu_devices = tpus + gpus > 0 ? cpu_devices : 0};
    if (plugin != NULL && *plugin != '\0')
        take_plugin(options, plugin);
    else if (tpus > 0 && library != NULL && *library != '\0')
        take_plugin(options, library);
    else if (tpus > 0)
        find_libtpu(options);
    else if (gpus > 0)
        find_cuda(options);
}

const char *xla_options_platform(const struct xla_options *options)
{
    if (options->cpu_devices > 0 || options->tpus + options->gpus == 0)
        return "cpu";
    return options->tpus > 0 ? "tpu" : "cuda";
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

/* x86 flags that begin so are instructions which compilers may choose. */
static bool is_instruction(const char *flag)
{
    static const char *const names[] = {"sse", "ssse", "pni",    "avx",    "fma",  "f16c",   "xop",    "amx",
                                        "bmi", "abm",  "popcnt", "movbe",  "cx16", "movdir", "rdpid",  "gfni",
                                        "aes", "vaes", "sha",    "pclmul", "adx",  "tbm",    "vpclmul"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(flag, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Each processor has a paragraph in the file; the first one stands for all. */
void xla_append_processor(const char *path, struct buffer *text)
{
    static const char *const arm[] = {"Features", "CPU implementer", "CPU part"};
    SCOPED_BUFFER all = BUFFER_INIT(1 << 22);
    char *line, *word, *lines, *words;
    if (buffer_read_file(&all, path, NULL) < 0)
        return;
    char *end = strstr(buffer_text(&all), "\n\n");
    if (end != NULL)
        *end = '\0';
    for (line = strtok_r(all.data, "\n", &lines); line != NULL; line = strtok_r(NULL, "\n", &lines)) {
        for (size_t i = 0; i < sizeof arm / sizeof *arm; i++)
            if (strncmp(line, arm[i], strlen(arm[i])) == 0)
                (void)buffer_format(text, "%s ", line);
        if (strncmp(line, "flags", 5) != 0)
            continue;
        for (word = strtok_r(line, " \t", &words); word != NULL; word = strtok_r(NULL, " \t", &words))
            if (is_instruction(word))
                (void)buffer_format(text, "%s ", word);
    }
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

/* Appends the numbers of the machine's PCI devices of a vendor for which `accepts` is true, also of those that this process cannot use, and
 * how many there are of each. */
static void append_devices(struct buffer *text, const char *vendor,
                           bool (*accepts)(const char *number, const char *class))
{
    char numbers[KINDS_MAX][16];
    unsigned counts[KINDS_MAX] = {0}, kinds = 0;
    glob_t devices = {0};
    if (glob("/sys/bus/pci/devices/*", 0, NULL, &devices) == 0)
        for (size_t i = 0; i < devices.gl_pathc && kinds < KINDS_MAX; i++) {
            char own_vendor[16], class[16];
            unsigned k = 0;
            read_word(devices.gl_pathv[i], "vendor", own_vendor, sizeof own_vendor);
            if (strcmp(own_vendor, vendor) != 0)
                continue;
            read_word(devices.gl_pathv[i], "class", class, sizeof class);
            read_word(devices.gl_pathv[i], "device", numbers[kinds], sizeof numbers[kinds]);
            if (!accepts(numbers[kinds], class))
                continue;
            while (strcmp(numbers[k], numbers[kinds]) != 0)
                k++;
            kinds += k == kinds;
            counts[k]++;
        }
    globfree(&devices);
    for (unsigned k = 0; k < kinds; k++)
        (void)buffer_format(text, "%u x %s ", counts[k], numbers[k]);
}

/* NVIDIA makes other PCI devices too, such as a card's sound device, and switches. */
static bool is_display(const char *number, const char *class)
{
    (void)number;
    return strncmp(class, "0x03", 4) == 0;
}

static bool is_tpu(const char *number, const char *class)
{
    (void)class;
    for (size_t n = 0; n < TPU_NUMBERS; n++)
        if (strcmp(number, tpu_numbers[n]) == 0)
            return true;
    return false;
}

void xla_append_gpus(struct buffer *text)
{
    append_devices(text, NVIDIA, is_display);
}

void xla_append_tpus(struct buffer *text)
{
    append_devices(text, GOOGLE, is_tpu);
}
