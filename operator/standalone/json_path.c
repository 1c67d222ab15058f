/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/json_path.h"

#include <stdlib.h>
#include <string.h>

enum progress { GO_ON, STOP, MALFORMED };

struct search {
    json_path_visitor *visit;
    void *context;
};

static enum progress walk(const struct search *search, const struct json *value, const char *path);

/* A name up to '.', '[' or the end; a backslash protects the next byte. Returns what follows. */
static const char *read_name(const char *path, char name[JSON_PATH_TEXT_MAX])
{
    size_t length = 0;
    for (; *path && *path != '.' && *path != '['; path++) {
        if (*path == '\\' && path[1])
            path++;
        name[length++] = *path;
    }
    name[length] = '\0';
    return path;
}

static enum progress walk_all(const struct search *search, const struct json *container, const char *rest)
{
    for (const struct json *item = json_first(container); item; item = json_next(item)) {
        enum progress progress = walk(search, item, rest);
        if (progress != GO_ON)
            return progress;
    }
    return GO_ON;
}

static enum progress walk_name(const struct search *search, const struct json *value, const char *path)
{
    char name[JSON_PATH_TEXT_MAX];
    const char *rest = read_name(path, name);
    if (name[0] == '\0')
        return *rest == '[' || *rest == '\0' ? walk(search, value, rest) : MALFORMED;
    if (strcmp(name, "*") == 0)
        return walk_all(search, value, rest);
    return walk(search, json_member(value, name), rest);
}

/* ---- filters: ?(@.path=="text") ---- */

struct filter {
    char path[JSON_PATH_TEXT_MAX];
    char wanted[JSON_PATH_TEXT_MAX];
    bool equal;
};

/* A quoted string, or a bare word up to ')'. */
static const char *read_literal(const char *at, char *literal)
{
    at += strspn(at, " ");
    char quote = *at == '"' || *at == '\'' ? *at : '\0';
    at += quote != '\0';
    const char *end = quote ? strchr(at, quote) : at + strcspn(at, " )");
    if (end == NULL)
        return NULL;
    memcpy(literal, at, (size_t)(end - at));
    literal[end - at] = '\0';
    end += quote != '\0';
    return end + strspn(end, " ");
}

static const char *read_filter(const char *at, struct filter *filter)
{
    size_t length = strcspn(at, "=! )");
    memcpy(filter->path, at, length);
    filter->path[length] = '\0';
    at += length + strspn(at + length, " ");
    if (strncmp(at, "==", 2) != 0 && strncmp(at, "!=", 2) != 0)
        return NULL;
    filter->equal = at[0] == '=';
    at = read_literal(at + 2, filter->wanted);
    return at && strncmp(at, ")]", 2) == 0 ? at + 2 : NULL;
}

static bool has_text(const struct json *value, const char *wanted)
{
    if (json_type(value) == JSON_STRING)
        return strcmp(json_string(value, ""), wanted) == 0;
    if (json_type(value) == JSON_BOOLEAN)
        return strcmp(json_boolean(value, false) ? "true" : "false", wanted) == 0;
    return json_type(value) == JSON_NUMBER && json_number(value, 0) == strtod(wanted, NULL);
}

static enum progress walk_filter(const struct search *search, const struct json *value, const char *path)
{
    struct filter filter;
    const char *rest = read_filter(path, &filter);
    if (rest == NULL)
        return MALFORMED;
    for (const struct json *item = json_first(value); item; item = json_next(item)) {
        if (has_text(json_path_first(item, filter.path), filter.wanted) != filter.equal)
            continue;
        enum progress progress = walk(search, item, rest);
        if (progress != GO_ON)
            return progress;
    }
    return GO_ON;
}

/* ---- brackets ---- */

static enum progress walk_index(const struct search *search, const struct json *value, const char *path)
{
    char *end;
    long index = strtol(path, &end, 10);
    if (end == path || *end != ']')
        return MALFORMED;
    if (index < 0)
        index += (long)json_count(value);
    return index < 0 ? GO_ON : walk(search, json_element(value, (size_t)index), end + 1);
}

static enum progress walk_quoted(const struct search *search, const struct json *value, const char *path)
{
    char name[JSON_PATH_TEXT_MAX];
    const char *rest = read_literal(path, name);
    if (rest == NULL || *rest != ']')
        return MALFORMED;
    return walk(search, json_member(value, name), rest + 1);
}

static enum progress walk_bracket(const struct search *search, const struct json *value, const char *path)
{
    if (strncmp(path, "*]", 2) == 0)
        return walk_all(search, value, path + 2);
    if (strncmp(path, "?(@", 3) == 0)
        return walk_filter(search, value, path + 3);
    if (*path == '\'' || *path == '"')
        return walk_quoted(search, value, path);
    return walk_index(search, value, path);
}

static enum progress walk(const struct search *search, const struct json *value, const char *path)
{
    if (value == NULL)
        return GO_ON;
    if (*path == '\0')
        return search->visit(search->context, value) ? GO_ON : STOP;
    if (*path == '.')
        return walk_name(search, value, path + 1);
    if (*path == '[')
        return walk_bracket(search, value, path + 1);
    return MALFORMED;
}

bool json_path_visit(const struct json *root, const char *path, json_path_visitor *visit, void *context)
{
    struct search search = {visit, context};
    if (strlen(path) >= JSON_PATH_TEXT_MAX)
        return false;
    return walk(&search, root, path) != MALFORMED;
}

static bool take_first(void *context, const struct json *value)
{
    *(const struct json **)context = value;
    return false;
}

const struct json *json_path_first(const struct json *root, const char *path)
{
    const struct json *found = NULL;
    json_path_visit(root, path, take_first, &found);
    return found;
}
