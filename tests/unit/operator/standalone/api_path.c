/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/api_path.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(api_path);

static void expect(const char *path, const char *expected)
{
    struct api_path p;
    char text[2048] = "no";
    if (api_path_parse(path, &p))
        snprintf(text, sizeof text, "%s|%s|%s|%s|%s|%s", p.group, p.version, p.namespace, p.plural, p.name,
                 p.subresource);
    cr_expect_str_eq(text, expected, "%s gave %s", path, text);
}

Test(api_path, takes_paths_apart)
{
    expect("/api", "|||||");
    expect("/api/v1", "|v1||||");
    expect("/api/v1/pods", "|v1||pods||");
    expect("/api/v1/namespaces/n/pods/p/log", "|v1|n|pods|p|log");
    expect("/api/v1/namespaces", "|v1||namespaces||");
    expect("/api/v1/namespaces/n", "|v1||namespaces|n|");
    expect("/api/v1/namespaces/n/status", "|v1||namespaces|n|status");
    expect("/apis/g.x/v1/namespaces/n/things/t/scale", "g.x|v1|n|things|t|scale");
    expect("/apis/g.x/v1/things/t", "g.x|v1||things|t|");
    expect("/api/v1/namespaces/n/pods/p/log/more", "no");
    expect("/api//pods", "no");
    expect("/other", "no");
}
