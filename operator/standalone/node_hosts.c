/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_hosts.h"

static const char *namespace_of(const struct json *object)
{
    return json_string_at(object, "metadata.namespace", "");
}

static bool has_ended(const struct json *pod)
{
    const char *phase = json_string_at(pod, "status.phase", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static bool is_ready(const struct json *pod)
{
    for (const struct json *item = json_first(json_at(pod, "status.conditions")); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "type", ""), "Ready") == 0)
            return strcmp(json_string_at(item, "status", ""), "True") == 0;
    }
    return false;
}

static bool selects(const struct json *selector, const struct json *labels)
{
    if (json_count(selector) == 0)
        return false;
    for (const struct json *item = json_first(selector); item; item = json_next(item)) {
        const char *have = json_string(json_member(labels, json_key(item)), NULL);
        if (!have || strcmp(have, json_string(item, "")) != 0)
            return false;
    }
    return true;
}

bool service_publishes(const struct json *service, const struct json *pod)
{
    if (strcmp(json_string_at(service, "spec.clusterIP", ""), "None") != 0 ||
        strcmp(namespace_of(service), namespace_of(pod)) != 0 ||
        strcmp(json_string_at(service, "metadata.name", ""), json_string_at(pod, "spec.subdomain", "")) != 0)
        return false;
    if (*json_string_at(pod, "spec.hostname", "") == '\0' || has_ended(pod))
        return false;
    if (!json_boolean_at(service, "spec.publishNotReadyAddresses", false) && !is_ready(pod))
        return false;
    return selects(json_at(service, "spec.selector"), json_at(pod, "metadata.labels"));
}

static void write_published(struct buffer *out, const struct json *pod, const char *reader_namespace)
{
    const char *address = json_string_at(pod, "status.podIP", "");
    const char *host = json_string_at(pod, "spec.hostname", "");
    const char *service = json_string_at(pod, "spec.subdomain", "");
    const char *name_space = namespace_of(pod);
    if (!*address)
        return;
    buffer_format(out, "%s\t%s.%s.%s.svc.cluster.local %s.%s.%s.svc %s.%s.%s", address, host, service, name_space, host,
                  service, name_space, host, service, name_space);
    if (strcmp(name_space, reader_namespace) == 0)
        buffer_format(out, " %s.%s", host, service);
    buffer_append_byte(out, '\n', NULL);
}

static bool is_published(const struct json *const *services, size_t count, const struct json *pod)
{
    for (size_t i = 0; i < count && *json_string_at(pod, "spec.subdomain", ""); i++) {
        if (service_publishes(services[i], pod))
            return true;
    }
    return false;
}

void hosts_published(struct buffer *out, const char *name_space, const struct json *const *services,
                     size_t service_count, const struct json *const *pods, size_t pod_count)
{
    for (size_t i = 0; i < pod_count; i++) {
        if (is_published(services, service_count, pods[i]))
            write_published(out, pods[i], name_space);
    }
}

void hosts_write(struct buffer *out, const struct json *pod, const struct buffer *published)
{
    const char *address = json_string_at(pod, "status.podIP", "");
    const char *host = json_string_at(pod, "spec.hostname", json_string_at(pod, "metadata.name", ""));
    buffer_append_string(out, "# kept current by coxswain-standalone\n127.0.0.1\tlocalhost\n::1\tlocalhost\n", NULL);
    buffer_append(out, buffer_text(published), published->length, NULL);
    if (*address)
        buffer_format(out, "%s\t%s\n", address, host);
}
