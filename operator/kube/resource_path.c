/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/resource_path.h"

#include <string.h>

#include "common/percent.h"

static int append_segment(struct buffer *url, const char *what, const char *text, struct error *error)
{
    if (text[0] == '\0' || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return error_set(error, ERROR_INVALID, "'%s' cannot be a resource's %s", text, what);
    if (buffer_append_byte(url, '/', error) < 0)
        return -1;
    return percent_encode(url, text, "", error);
}

static int append_group(struct buffer *url, const struct kube_resource *resource, struct error *error)
{
    if (resource->group[0] == '\0')
        return buffer_append_string(url, "/api", error);
    if (buffer_append_string(url, "/apis", error) < 0)
        return -1;
    return append_segment(url, "group", resource->group, error);
}

int resource_path_append(struct buffer *url, const struct resource_path *path, struct error *error)
{
    const struct {
        const char *what, *text;
    } segments[] = {
        {"version", path->resource.version},
        {"scope", path->name_space ? "namespaces" : NULL},
        {"namespace", path->name_space},
        {"plural", path->resource.plural},
        {"name", path->name},
        {"subresource", path->name ? path->subresource : NULL},
    };
    if (append_group(url, &path->resource, error) < 0)
        return -1;
    for (size_t i = 0; i < sizeof segments / sizeof segments[0]; i++) {
        if (segments[i].text && append_segment(url, segments[i].what, segments[i].text, error) < 0)
            return -1;
    }
    return 0;
}

int resource_path_append_query(struct buffer *url, const char *name, const char *value, struct error *error)
{
    if (value == NULL || value[0] == '\0')
        return 0;
    bool has_query = strchr(buffer_text(url), '?') != NULL;
    if (buffer_append_byte(url, has_query ? '&' : '?', error) < 0 || percent_encode(url, name, "", error) < 0 ||
        buffer_append_byte(url, '=', error) < 0)
        return -1;
    return percent_encode(url, value, "", error);
}
