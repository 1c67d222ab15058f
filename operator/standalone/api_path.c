/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/api_path.h"

#include <string.h>

/* Reads "/segment" into `segment`; leaves it "" at the end of the path. False when it is malformed. */
static bool take(const char **at, char segment[API_SEGMENT_MAX])
{
    segment[0] = '\0';
    if (**at == '\0' || strcmp(*at, "/") == 0)
        return true;
    size_t length = strcspn(*at + 1, "/");
    if (length == 0 || length >= API_SEGMENT_MAX)
        return false;
    memcpy(segment, *at + 1, length);
    segment[length] = '\0';
    *at += 1 + length;
    return true;
}

/* "namespaces" leads to what is in one, unless it is itself the resource: /namespaces, /namespaces/x, …/x/status. */
static bool take_resource(const char **at, struct api_path *path)
{
    if (!take(at, path->plural) || !take(at, path->name) || !take(at, path->subresource))
        return false;
    bool scoped = strcmp(path->plural, "namespaces") == 0 && path->subresource[0] &&
                  strcmp(path->subresource, "status") != 0 && strcmp(path->subresource, "finalize") != 0;
    if (!scoped)
        return true;
    memcpy(path->namespace, path->name, sizeof path->namespace);
    memcpy(path->plural, path->subresource, sizeof path->plural);
    return take(at, path->name) && take(at, path->subresource);
}

bool api_path_parse(const char *path, struct api_path *ret_path)
{
    struct api_path parsed = {0};
    char root[API_SEGMENT_MAX];
    const char *at = path;
    if (*at != '/' || !take(&at, root))
        return false;
    bool groups = strcmp(root, "apis") == 0;
    if (!groups && strcmp(root, "api") != 0)
        return false;
    if ((groups && !take(&at, parsed.group)) || !take(&at, parsed.version) || !take_resource(&at, &parsed))
        return false;
    if (*at && strcmp(at, "/") != 0)
        return false;
    *ret_path = parsed;
    return true;
}
