/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/demo_example.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/directory.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/cli/corpus.h"
#include "operator/cli/dataset.h"
#include "operator/cli/paths.h"

#define BAR_WIDTH 30

struct watcher {
    struct terminal *terminal;
    const bool *interrupted;
};

static bool show_download(void *context, const char *file, int64_t received, int64_t total)
{
    const struct watcher *watcher = context;
    char bar[3 * BAR_WIDTH + 1] = "", line[256];
    int full = total > 0 ? (int)(BAR_WIDTH * received / total) : 0;
    for (int i = 0; i < BAR_WIDTH; i++)
        snprintf(bar + 3 * i, 4, "%s", i < full ? "█" : "░");
    snprintf(line, sizeof line, "%-26s %s %5lld KB", file, bar, (long long)received / 1024);
    terminal_progress(watcher->terminal, line);
    return !*watcher->interrupted;
}

static int choose_digits(struct demo_example *example, struct event_loop *loop, struct watcher *watcher,
                         struct error *error)
{
    const struct dataset *digits = dataset_find("digits");
    SCOPED_FREE char *directory = NULL;
    int result = dataset_obtain(digits, loop, show_download, watcher, &directory, error);
    terminal_clear(watcher->terminal);
    if (result < 0 || path_of_example("digits.yaml", &example->manifest, error) < 0)
        return -1;
    example->title = digits->title;
    example->volume = memory_format("digits=%s", directory);
    example->data = memory_copy_string(digits->files[0].sha256);
    return 0;
}

static int choose_text(struct demo_example *example, const char *directory, struct error *error)
{
    SCOPED_FREE char *sources = path_of_sources();
    if (!sources)
        return error_set(
            error, ERROR_NOT_FOUND,
            "the text of Coxswain's source tree is not available either, because this program is not inside one; set "
            "COXSWAIN_DATA to a directory that has mnist/t10k-*.gz");
    if (directory_make(directory, error) < 0 || corpus_write(sources, directory, error) < 0 ||
        path_of_example("bytes.yaml", &example->manifest, error) < 0)
        return -1;
    example->title = "this project's own text, byte by byte";
    example->volume = memory_format("text=%s", directory);
    example->data = memory_format("%s/%s", directory, CORPUS_FILE);
    return 0;
}

int demo_example_choose(struct demo_example *ret_example, const char *directory, struct event_loop *loop,
                        struct terminal *terminal, const bool *interrupted, struct error *error)
{
    struct watcher watcher = {terminal, interrupted};
    struct error cause = ERROR_INIT;
    if (choose_digits(ret_example, loop, &watcher, &cause) == 0)
        return 0;
    /* No network is a reason to train something else; data that is not what it should be is not. */
    if (cause.kind != ERROR_UNAVAILABLE && cause.kind != ERROR_NOT_FOUND) {
        *error = cause;
        return -1;
    }
    printf("The digits are not available: %s.\nA byte model learns from this project's own text instead. With the "
           "files of\n"
           "the MNIST test set in a directory: COXSWAIN_DATA=<directory>, with mnist/t10k-*.gz below it.\n\n",
           cause.message);
    return choose_text(ret_example, directory, error);
}

void demo_example_release(struct demo_example *example)
{
    free(example->manifest);
    free(example->volume);
    free(example->data);
    *example = (struct demo_example){.title = NULL};
}
