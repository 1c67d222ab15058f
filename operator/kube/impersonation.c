/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/impersonation.h"

#include <string.h>

#include "common/buffer.h"
#include "common/percent.h"

#define LINE_MAX_BYTES (64 * 1024)

static bool has_control(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return true;
    return false;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " ")] == '\0';
}

/* As libcurl takes it, which would leave "NAME:" out. An empty group says something, too: with one, the API server looks for no
 * others. */
static int add_header(struct json *headers, const char *name, const struct json *value, struct error *error)
{
    const char *text = json_string(value, NULL);
    if (!text || has_control(text))
        return error_set(error, ERROR_INVALID,
                         "%s: each value must be text without control characters, as in any HTTP header", name);
    SCOPED_BUFFER line = BUFFER_INIT(LINE_MAX_BYTES);
    int written = is_blank(text) ? buffer_format(&line, "%s;", name) : buffer_format(&line, "%s: %s", name, text);
    if (written < 0)
        return error_set(error, ERROR_INVALID, "%s: a value is longer than 64 KiB", name);
    json_append_string(headers, buffer_text(&line));
    return 0;
}

static int add_headers(struct json *headers, const char *name, const struct json *values, struct error *error)
{
    for (const struct json *item = json_first(values); item; item = json_next(item))
        if (add_header(headers, name, item, error) < 0)
            return -1;
    return 0;
}

/* Besides unreserved characters, client-go leaves these of a header name as they are. */
#define NAME_CHARACTERS "!#$&'*+^`|"

static int check_type(const struct json *object, const char *key, enum json_type type, struct error *error)
{
    enum json_type is = json_type(json_member(object, key));
    return is == JSON_ABSENT || is == JSON_NULL || is == type
               ? 0
               : error_set(error, ERROR_INVALID, "'%s' must be of type %s, and is of type %s", key,
                           json_type_name(type), json_type_name(is));
}

/* Ignoring a field of the wrong type would act as the wrong user. */
static int check_types(const struct json *user, struct error *error)
{
    return check_type(user, "as", JSON_STRING, error) < 0 || check_type(user, "as-uid", JSON_STRING, error) < 0 ||
                   check_type(user, "as-groups", JSON_ARRAY, error) < 0 ||
                   check_type(user, "as-user-extra", JSON_OBJECT, error) < 0
               ? -1
               : 0;
}

static int add_extra(struct json *headers, const struct json *extra, struct error *error)
{
    for (const struct json *item = json_first(extra); item; item = json_next(item)) {
        SCOPED_BUFFER name = BUFFER_INIT(LINE_MAX_BYTES);
        buffer_append_string(&name, "Impersonate-Extra-", NULL);
        if (percent_encode(&name, json_key(item), NAME_CHARACTERS, error) < 0 ||
            check_type(extra, json_key(item), JSON_ARRAY, error) < 0 ||
            add_headers(headers, buffer_text(&name), item, error) < 0)
            return -1;
    }
    return 0;
}

int impersonation_read(const struct json *user, struct json **ret_headers, struct error *error)
{
    const struct json *name = json_member(user, "as"), *uid = json_member(user, "as-uid");
    const struct json *groups = json_member(user, "as-groups"), *extra = json_member(user, "as-user-extra");
    bool has_name = *json_string(name, "") != '\0', has_uid = *json_string(uid, "") != '\0';
    if (check_types(user, error) < 0)
        return -1;
    if (!has_name && !has_uid && json_count(groups) == 0 && json_count(extra) == 0)
        return 0;
    if (!has_name)
        return error_set(error, ERROR_INVALID, "as-uid, as-groups and as-user-extra need 'as', the user's name");
    SCOPED_JSON *headers = json_new_array();
    if (add_header(headers, "Impersonate-User", name, error) < 0 ||
        (has_uid && add_header(headers, "Impersonate-Uid", uid, error) < 0) ||
        add_headers(headers, "Impersonate-Group", groups, error) < 0 || add_extra(headers, extra, error) < 0)
        return -1;
    *ret_headers = headers;
    headers = NULL;
    return 0;
}
