/* SPDX-License-Identifier: Apache-2.0 */
#include "common/python_stack.h"

#include <stdlib.h>
#include <string.h>

#include "common/failure_line.h"

#define NAME_MAX_BYTES 80

/* A line `  File "/a/train.py", line 31 in wait`. */
struct frame {
    const char *file, *function; /* the file without its folders */
    size_t file_length, function_length;
    unsigned long line;
};

static bool frame_read(const char *text, struct frame *ret_frame)
{
    static const char begin[] = "  File \"", middle[] = "\", line ", in[] = " in ";
    const char *end = text + strcspn(text, "\n");
    if (strncmp(text, begin, strlen(begin)) != 0)
        return false;
    const char *file = text + strlen(begin), *file_end = strstr(file, middle);
    if (!file_end || file_end >= end)
        return false;
    char *function;
    unsigned long line = strtoul(file_end + strlen(middle), &function, 10);
    if (function >= end || strncmp(function, in, strlen(in)) != 0)
        return false;
    for (const char *at = file; at < file_end; at++)
        if (*at == '/')
            file = at + 1;
    function += strlen(in);
    *ret_frame = (struct frame){file, function, (size_t)(file_end - file), (size_t)(end - function), line};
    return true;
}

/* Returns where the frames of the last thread begin that has any; NULL: none has. */
static const char *last_thread(const char *text)
{
    static const char title[] = "(most recent call first):\n";
    const char *found = NULL;
    struct frame frame;
    for (const char *at = text; (at = strstr(at, title)) != NULL;) {
        at += strlen(title);
        if (frame_read(at, &frame))
            found = at;
    }
    return found;
}

bool python_stack_append(const char *text, struct buffer *out)
{
    const char *at = last_thread(text);
    struct frame frame;
    for (int i = 0; at && i < PYTHON_STACK_FRAMES && frame_read(at, &frame); i++) {
        buffer_append_string(out, i > 0 ? " < " : "", NULL);
        failure_line_clean(frame.function, frame.function_length, NAME_MAX_BYTES, out);
        buffer_append_string(out, " (", NULL);
        failure_line_clean(frame.file, frame.file_length, NAME_MAX_BYTES, out);
        buffer_format(out, ":%lu)", frame.line);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return at != NULL;
}

bool python_stack_is_collective(const char *line)
{
    static const char *const words[] = {"all_reduce",     "allreduce", "all_gather", "allgather",
                                        "reduce_scatter", "broadcast", "barrier",    "distributed_c10d"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}
