/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/file_name.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/nearest_word.h"
#include "common/terminal_text.h"

#define NAMES_LISTED_MAX 8
#define NAMES_TEXT_MAX 400
#define NAME_SHOWN_MAX 64

const char *file_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

bool file_name_ends(const char *path, const char *end)
{
    size_t length = strlen(path);
    if (ends_with(path, length, ".gz"))
        length -= strlen(".gz");
    return ends_with(path, length, end);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

void file_name_suggest(const char *path, struct buffer *out)
{
    const char *name = file_name_of(path);
    SCOPED_FREE char *folder = name == path ? memory_copy_string(".") : memory_copy_bytes(path, (size_t)(name - path));
    struct dirent **entries;
    int count = scandir(folder, &entries, is_shown, alphasort);
    if (count < 0)
        return;
    SCOPED_FREE char(*shown)[NAME_SHOWN_MAX + 1] = memory_allocate((size_t)count, sizeof *shown);
    SCOPED_FREE const char **names = memory_allocate((size_t)count, sizeof *names);
    for (int i = 0; i < count; i++) {
        terminal_text_shorten(entries[i]->d_name, strlen(entries[i]->d_name), NAME_SHOWN_MAX, shown[i]);
        names[i] = shown[i];
        free(entries[i]);
    }
    free(entries);
    const char *meant = nearest_word(name, names, (size_t)count);
    size_t begin = out->length;
    if (meant)
        buffer_format(out, "; did you mean %s?", meant);
    for (int i = 0; i < count && !meant; i++) {
        bool fits = i < NAMES_LISTED_MAX && out->length - begin + strlen(names[i]) < NAMES_TEXT_MAX;
        buffer_format(out, "%s%s", i > 0 ? ", " : "; the folder has ", fits ? names[i] : "...");
        if (!fits)
            break;
    }
}
