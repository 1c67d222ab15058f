/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/job/generate/generate.h"

#define OUTPUT_MAX (4 * 1024 * 1024)

static const struct {
    const char *name;
    int (*generate)(struct buffer *out, struct error *error);
} products[] = {{"crd", crd_generate},
                {"sweep-crd", sweep_crd_generate},
                {"cluster-class-crd", cluster_class_crd_generate},
                {"class-crd", class_crd_generate},
                {"docs", docs_generate}};

static int usage(void)
{
    fprintf(stderr, "usage: coxswain-generate crd|sweep-crd|cluster-class-crd|class-crd|docs\n");
    return 64;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return usage();
    SCOPED_BUFFER out = BUFFER_INIT(OUTPUT_MAX);
    struct error error = ERROR_INIT;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        if (strcmp(argv[1], products[i].name) != 0)
            continue;
        int result = products[i].generate(&out, &error);
        if (result == 0 && (fputs(buffer_text(&out), stdout) == EOF || fflush(stdout) == EOF))
            result = error_set_errno(&error, "cannot write to standard output");
        if (result < 0) {
            fprintf(stderr, "coxswain-generate: %s\n", error.message);
            return 70;
        }
        return 0;
    }
    return usage();
}
