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

static const char *next_line(const char *at)
{
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

static bool append_faulthandler(const char *text, struct buffer *out)
{
    const char *at = last_thread(text);
    struct frame frame;
    for (int i = 0; at && i < PYTHON_STACK_FRAMES && frame_read(at, &frame); i++, at = next_line(at)) {
        buffer_append_string(out, i > 0 ? " < " : "", NULL);
        failure_line_clean(frame.function, frame.function_length, NAME_MAX_BYTES, out);
        buffer_append_string(out, " (", NULL);
        failure_line_clean(frame.file, frame.file_length, NAME_MAX_BYTES, out);
        buffer_format(out, ":%lu)", frame.line);
    }
    return at != NULL;
}

/* ---------------------------------------------------------------- what the hook prints (hang_hook.h) */

/* Lines `    wait (train.py:31)` below `Thread 1 (idle): "MainThread"`, as py-spy prints them. */
static bool append_spy(const char *text, struct buffer *out)
{
    static const char title[] = "\"MainThread\"\n", indent[] = "    ";
    const char *at = strstr(text, title);
    size_t before = out->length;
    int count = 0;
    for (at = at ? next_line(at) : ""; count < PYTHON_STACK_FRAMES && strncmp(at, indent, strlen(indent)) == 0;
         at = next_line(at)) {
        buffer_append_string(out, count++ > 0 ? " < " : "", NULL);
        failure_line_clean(at + strlen(indent), strcspn(at + strlen(indent), "\n"), 2 * NAME_MAX_BYTES, out);
    }
    return out->length > before;
}

/* Lines `#1  0x00007ff3a1315ada in pysleep (timeout=5) at timemodule.c:2159`, as gdb prints them. The address may be missing. */
static bool append_gdb(const char *text, struct buffer *out)
{
    const char *at = strncmp(text, "#0 ", 3) == 0 ? text : strstr(text, "\n#0 ");
    size_t before = out->length;
    int count = 0;
    for (at = at ? at + (*at == '\n') : ""; count < PYTHON_STACK_FRAMES && *at == '#'; at = next_line(at)) {
        const char *end = at + strcspn(at, "\n"), *in = strstr(at, " in "), *arguments = strstr(at, " (");
        if (!arguments || arguments >= end)
            break;
        const char *name = in && in < arguments ? in + strlen(" in ") : at + strcspn(at, " ");
        name += strspn(name, " ");
        if (name >= arguments)
            break;
        buffer_append_string(out, count++ > 0 ? " < " : "", NULL);
        failure_line_clean(name, (size_t)(arguments - name), NAME_MAX_BYTES, out);
    }
    return out->length > before;
}

/* A line `process 1, thread 7 (python3): T (stopped) at do_signal_stop, system call 202` of /proc. */
struct kernel_line {
    const char *state, *where, *call;
    size_t state_length, where_length, call_length;
};

static bool kernel_line_read(const char *text, struct kernel_line *ret_line)
{
    const char *end = text + strcspn(text, "\n"), *state = strstr(text, "): ");
    if (strncmp(text, "process ", strlen("process ")) != 0 || !state)
        return false;
    state += strlen("): ");
    const char *where = strstr(state, " at "), *call = where ? strstr(where, ", system call ") : NULL;
    if (!call || call >= end)
        return false;
    ret_line->state = state;
    ret_line->state_length = (size_t)(where - state);
    ret_line->where = where + strlen(" at ");
    ret_line->where_length = (size_t)(call - ret_line->where);
    ret_line->call = call + strlen(", ");
    ret_line->call_length = (size_t)(end - ret_line->call);
    return true;
}

/* The first thread that is stopped or waits in the kernel without being interrupted; else the first of all. */
static bool append_kernel(const char *text, struct buffer *out)
{
    struct kernel_line line, chosen = {.state = NULL};
    bool stuck = false;
    for (const char *at = text; *at && !stuck; at = next_line(at)) {
        if (!kernel_line_read(at, &line))
            continue;
        stuck = *line.state == 'T' || *line.state == 'D';
        if (stuck || !chosen.state)
            chosen = line;
    }
    if (!chosen.state)
        return false;
    failure_line_clean(chosen.where, chosen.where_length, 2 * NAME_MAX_BYTES, out);
    buffer_append_string(out, " (", NULL);
    failure_line_clean(chosen.state, chosen.state_length, NAME_MAX_BYTES, out);
    buffer_append_string(out, ", ", NULL);
    failure_line_clean(chosen.call, chosen.call_length, NAME_MAX_BYTES, out);
    buffer_append_string(out, ")", NULL);
    return true;
}

bool python_stack_append(const char *text, struct buffer *out)
{
    return append_faulthandler(text, out) || append_spy(text, out) || append_gdb(text, out) || append_kernel(text, out);
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
