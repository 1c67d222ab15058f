/* SPDX-License-Identifier: Apache-2.0
 *
 * corpus-expand TABLE FOLDER: writes the manifest of each case of a table of refused manifests to FOLDER/NAME.yaml, as JSON below the lines
 * `# expect: FIELD` and, where only the operator refuses it, `# operator`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/memory.h"
#include "tests/corpus/cases.h"

static void write_case(const char *name, const char *at, bool by_operator, const struct json *manifest, void *context)
{
    SCOPED_FREE char *path = memory_format("%s/%s.yaml", (const char *)context, name);
    SCOPED_BUFFER text = BUFFER_INIT(CORPUS_MAX);
    FILE *file = at ? fopen(path, "w") : NULL;
    if (!at)
        return;
    if (!file || json_print(manifest, &text, NULL) < 0 ||
        fprintf(file, "# expect: %s\n%s%s\n", at, by_operator ? "# operator\n" : "", buffer_text(&text)) < 0 ||
        fclose(file) != 0) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(EXIT_FAILURE);
    }
}

int main(int count, char **words)
{
    struct error error = ERROR_INIT;
    if (count != 3) {
        fprintf(stderr, "usage: corpus-expand TABLE FOLDER\n");
        return 2;
    }
    if (corpus_each(words[1], write_case, words[2], &error) < 0) {
        fprintf(stderr, "%s: %s\n", words[1], error.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
