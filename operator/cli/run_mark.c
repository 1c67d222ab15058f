/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/run_mark.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/cli/run_record.h"

#define MARK_MAX (1024 * 1024)

/* An empty text: there is no mark. */
static void read_mark(const char *directory, struct buffer *text)
{
    SCOPED_FREE char *path = memory_format("%s/" STATE_USERS, directory);
    if (buffer_read_file(text, path, NULL) < 0)
        buffer_clear(text);
}

/* Returns the line that begins at `*at`, without its end, and moves `*at` behind it; NULL: the text has ended. */
static char *next_line(const char **at)
{
    size_t length = strcspn(*at, "\n");
    if (**at == '\0')
        return NULL;
    char *line = memory_copy_bytes(*at, length);
    *at += length + ((*at)[length] == '\n' ? 1 : 0);
    return line;
}

static bool is_marked(const char *directory, const char *user)
{
    bool found = false;
    SCOPED_BUFFER text = BUFFER_INIT(MARK_MAX);
    read_mark(directory, &text);
    const char *at = buffer_text(&text);
    for (char *line; !found && (line = next_line(&at)); free(line))
        found = strcmp(line, user) == 0;
    return found;
}

/* Appends: two runs may do so at once. */
static int mark(const char *directory, const char *user, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/" STATE_USERS, directory);
    SCOPED_FREE char *line = memory_format("%s\n", user);
    if (is_marked(directory, user))
        return 0;
    SCOPED_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, strlen(line)) != (ssize_t)strlen(line))
        return error_set_errno(error, "write %s", path);
    return 0;
}

/* Cuts the path to the state directory around it; false: it lies in none. */
static bool cut_to_state(char *path)
{
    for (char *slash; (slash = strrchr(path, '/')) && slash != path;) {
        *slash = '\0';
        if (state_directory_is_one(path))
            return true;
    }
    return false;
}

int run_mark_volumes(const char *user, const struct json *volumes, struct error *error)
{
    SCOPED_FREE char *own = realpath(user, NULL);
    for (const struct json *volume = json_first(volumes); own && volume; volume = json_next(volume)) {
        SCOPED_FREE char *path = realpath(json_string(volume, ""), NULL);
        if (path && cut_to_state(path) && strcmp(path, own) != 0 && mark(path, own, error) < 0)
            return -1;
    }
    return 0;
}

static bool still_uses(const char *user, const char *directory)
{
    SCOPED(run_record_release) struct run_record record;
    bool has_record = run_record_read(user, &record, NULL) == 0;
    return state_directory_is_one(user) && (!has_record || run_record_uses(&record, directory));
}

char *run_mark_user(const char *directory)
{
    SCOPED_BUFFER text = BUFFER_INIT(MARK_MAX);
    read_mark(directory, &text);
    const char *at = buffer_text(&text);
    for (char *line; (line = next_line(&at)); free(line))
        if (still_uses(line, directory))
            return line;
    return NULL;
}
