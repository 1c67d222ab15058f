/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/corpus.h"

#include <glob.h>

#include "common/buffer.h"
#include "common/memory.h"

/* glob sorts, so the order does not depend on the file system. Held-out text is taken from the end, so headers, the usual text, come
 * last. */
static const char *const patterns[] = {"deploy/examples/*.yaml", "*.md",           "docs/*.md",   "common/*.h",
                                       "common/*/*.h",           "operator/*/*.h", "worker/*/*.h"};

static int append_matches(struct buffer *corpus, const char *sources, const char *pattern, struct error *error)
{
    SCOPED_FREE char *whole = memory_format("%s/%s", sources, pattern);
    SCOPED(globfree) glob_t found = {.gl_pathc = 0};
    if (glob(whole, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (buffer_read_file(corpus, found.gl_pathv[i], error) < 0)
            return -1;
    }
    return 0;
}

int corpus_write(const char *sources, const char *directory, struct error *error)
{
    SCOPED_BUFFER corpus = BUFFER_INIT(CORPUS_MAX);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (append_matches(&corpus, sources, patterns[i], error) < 0)
            return -1;
    }
    SCOPED_FREE char *path = memory_format("%s/%s", directory, CORPUS_FILE);
    return buffer_write_file(&corpus, path, error);
}
