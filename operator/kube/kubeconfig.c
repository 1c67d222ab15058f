/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/credentials.h"

#include <string.h>

#include "common/base64.h"
#include "common/buffer.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/yaml.h"
#include "operator/kube/exec_plugin.h"
#include "operator/kube/impersonation.h"

static int parse_text(const char *text, size_t length, struct json **ret_document, struct error *error)
{
    SCOPED_JSON *documents = NULL;
    if (yaml_parse(text, length, KUBE_CONFIG_MAX, &documents, error) < 0)
        return -1;
    struct json *first = json_first(documents);
    if (json_type(first) != JSON_OBJECT || json_next(first))
        return error_set(error, ERROR_INVALID, "a kubeconfig is one YAML mapping");
    *ret_document = json_detach(documents, first);
    return 0;
}

enum section { CLUSTERS, USERS, CONTEXTS };

static const struct {
    const char *list;  /* "users" */
    const char *entry; /* "user" */
    const char *file_keys[3];
} sections[] = {
    [CLUSTERS] = {"clusters", "cluster", {"certificate-authority", NULL}},
    [USERS] = {"users", "user", {"client-certificate", "client-key", "tokenFile"}},
    [CONTEXTS] = {"contexts", "context", {NULL}},
};
#define SECTIONS (sizeof sections / sizeof sections[0])
#define FILE_KEYS (sizeof sections[0].file_keys / sizeof sections[0].file_keys[0])

static void resolve_file(struct json *entry, const char *key, const char *directory)
{
    const char *name = key ? json_string_at(entry, key, "") : "";
    if (name[0] == '\0' || name[0] == '/')
        return;
    SCOPED_FREE char *path = memory_format("%s/%s", directory, name);
    json_set_string(entry, key, path);
}

/* A command with a slash is a file; one without is looked for in $PATH. */
static void resolve_command(struct json *user, const char *directory)
{
    struct json *plugin = json_member(user, "exec");
    if (strchr(json_string_at(plugin, "command", ""), '/'))
        resolve_file(plugin, "command", directory);
}

static void resolve_files(struct json *document, const char *directory)
{
    for (size_t s = 0; s < SECTIONS; s++) {
        struct json *list = json_member(document, sections[s].list);
        for (struct json *item = json_first(list); item; item = json_next(item)) {
            for (size_t k = 0; k < FILE_KEYS; k++)
                resolve_file(json_member(item, sections[s].entry), sections[s].file_keys[k], directory);
            if (s == USERS)
                resolve_command(json_member(item, "user"), directory);
        }
    }
}

static struct json *find_named(const struct json *document, const char *list, const char *name)
{
    struct json *items = json_member(document, list);
    for (struct json *item = json_first(items); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return item;
    }
    return NULL;
}

/* Adds the entries that `into` does not have yet, as kubectl merges $KUBECONFIG. */
static void merge(struct json *into, const struct json *from)
{
    if (json_string_at(into, "current-context", "")[0] == '\0')
        json_set_string(into, "current-context", json_string_at(from, "current-context", NULL));
    for (size_t s = 0; s < SECTIONS; s++) {
        struct json *list = json_set_array(into, sections[s].list);
        const struct json *items = json_member(from, sections[s].list);
        for (struct json *item = json_first(items); item; item = json_next(item)) {
            if (find_named(into, sections[s].list, json_string_at(item, "name", "")) == NULL)
                json_append(list, json_copy(item));
        }
    }
}

static const struct json *entry_of(const struct json *document, enum section section, const char *name,
                                   struct error *error)
{
    const struct json *item = find_named(document, sections[section].list, name);
    if (item == NULL)
        error_set(error, ERROR_INVALID, "there is no %s named '%s'", sections[section].entry, name);
    return item;
}

static int decode_pem(const char *data, const char *key, char **ret_pem, struct error *error)
{
    size_t length;
    SCOPED_FREE char *pem = NULL;
    if (base64_decode(data, &pem, &length, error) < 0)
        return error_wrap(error, "%s", key);
    if (strlen(pem) != length)
        return error_set(error, ERROR_INVALID, "%s: the decoded value is not text", key);
    *ret_pem = pem;
    pem = NULL;
    return 0;
}

/* `<key>-data` in base64 wins over the file `<key>`, as in client-go. */
static int read_pem(const struct json *entry, const char *key, char **ret_pem, struct error *error)
{
    SCOPED_FREE char *data_key = memory_format("%s-data", key);
    const char *data = json_string(json_member(entry, data_key), "");
    const char *path = json_string(json_member(entry, key), "");
    if (data[0])
        return decode_pem(data, data_key, ret_pem, error);
    if (path[0] == '\0')
        return 0;
    SCOPED_BUFFER text = BUFFER_INIT(KUBE_CONFIG_MAX);
    if (buffer_read_file(&text, path, error) < 0)
        return error_wrap(error, "%s", key);
    *ret_pem = buffer_take(&text);
    return 0;
}

static int refuse_keys(const struct json *entry, const char *const keys[], struct error *error)
{
    for (; *keys; keys++) {
        enum json_type type = json_type(json_member(entry, *keys));
        bool is_empty = type == JSON_ABSENT || type == JSON_NULL ||
                        (type == JSON_STRING && json_string_at(entry, *keys, "")[0] == '\0');
        if (!is_empty)
            return error_set(
                error, ERROR_UNSUPPORTED,
                "'%s' is not supported, and no Kubernetes server since 1.19, nor kubectl since 1.26, knows it; "
                "use a token, a tokenFile, a client certificate or an exec plugin",
                *keys);
    }
    return 0;
}

/* Accepts the schemes that kubectl accepts. */
static int read_proxy(const struct json *cluster, struct kube_config *config, struct error *error)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};
    enum json_type type = json_type(json_member(cluster, "proxy-url"));
    if (type != JSON_ABSENT && type != JSON_NULL && type != JSON_STRING)
        return error_set(error, ERROR_INVALID, "proxy-url must be a string, and is of type %s", json_type_name(type));
    const char *url = json_string_at(cluster, "proxy-url", "");
    bool is_known = *url == '\0';
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        is_known |= strncmp(url, schemes[i], strlen(schemes[i])) == 0;
    if (!is_known)
        return error_set(error, ERROR_INVALID, "proxy-url '%s' must begin with http://, https:// or socks5://", url);
    config->proxy = memory_copy_string(*url ? url : NULL);
    return 0;
}

static int read_cluster(const struct json *cluster, struct kube_config *config, struct error *error)
{
    if (read_proxy(cluster, config, error) < 0)
        return -1;
    const char *server = json_string_at(cluster, "server", "");
    size_t length = strlen(server);
    while (length > 0 && server[length - 1] == '/')
        length--;
    if (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0)
        return error_set(error, ERROR_INVALID, "server '%s' must begin with https://", server);
    config->server = memory_copy_bytes(server, length);
    config->tls_server_name = memory_copy_string(json_string_at(cluster, "tls-server-name", NULL));
    config->insecure_skip_tls_verify = json_boolean_at(cluster, "insecure-skip-tls-verify", false);
    bool in_file = json_string_at(cluster, "certificate-authority-data", "")[0] == '\0';
    const char *file = json_string_at(cluster, "certificate-authority", "");
    config->ca_file = memory_copy_string(in_file && file[0] ? file : NULL);
    return read_pem(cluster, "certificate-authority", &config->ca_pem, error);
}

static int read_token(const struct json *user, struct kube_config *config, struct error *error)
{
    const char *file = json_string_at(user, "tokenFile", "");
    if (file[0] == '\0') {
        config->token = memory_copy_string(json_string_at(user, "token", NULL));
        return 0;
    }
    config->token_file = memory_copy_string(file);
    return kube_token_read(file, &config->token, error);
}

/* Describes the cluster for a plugin with provideClusterInfo (ExecCredential's spec.cluster). */
static struct json *describe_cluster(const struct json *cluster, const struct kube_config *config)
{
    static const char extension[] = "client.authentication.k8s.io/exec";
    struct json *about = json_new_object();
    json_set_string(about, "server", config->server);
    json_set_string(about, "tls-server-name", config->tls_server_name);
    json_set_string(about, "proxy-url", config->proxy);
    if (config->insecure_skip_tls_verify)
        json_set_boolean(about, "insecure-skip-tls-verify", true);
    if (config->ca_pem) {
        SCOPED_FREE char *authority = base64_encode(config->ca_pem, strlen(config->ca_pem));
        json_set_string(about, "certificate-authority-data", authority);
    }
    const struct json *named = find_named(cluster, "extensions", extension);
    if (json_member(named, "extension"))
        json_set(about, "config", json_copy(json_member(named, "extension")));
    return about;
}

/* A token or certificate in the kubeconfig takes precedence over the plugin, as in client-go. */
static int read_plugin(const struct json *user, const char *name, const struct json *cluster,
                       struct kube_config *config, struct error *error)
{
    const struct json *plugin = json_member(user, "exec");
    if (json_type(plugin) != JSON_OBJECT || config->token || config->client_cert_pem)
        return 0;
    if (exec_plugin_check(plugin, error) < 0)
        return -1;
    config->exec = json_new_object();
    json_set_string(config->exec, "user", name);
    json_set(config->exec, "plugin", json_copy(plugin));
    if (json_boolean_at(plugin, "provideClusterInfo", false))
        json_set(config->exec, "cluster", describe_cluster(cluster, config));
    return 0;
}

static int read_user(const struct json *user, struct kube_config *config, struct error *error)
{
    static const char *const unsupported[] = {"auth-provider", "username", "password", NULL};
    if (refuse_keys(user, unsupported, error) < 0 || impersonation_read(user, &config->impersonation, error) < 0 ||
        read_token(user, config, error) < 0 ||
        read_pem(user, "client-certificate", &config->client_cert_pem, error) < 0 ||
        read_pem(user, "client-key", &config->client_key_pem, error) < 0)
        return -1;
    if ((config->client_cert_pem == NULL) != (config->client_key_pem == NULL))
        return error_set(error, ERROR_INVALID, "client-certificate and client-key belong together; one is missing");
    return 0;
}

static int read_context(const struct json *document, const char *name, struct kube_config *config, struct error *error)
{
    const struct json *item = entry_of(document, CONTEXTS, name, error);
    if (item == NULL)
        return -1;
    const struct json *context = json_member(item, "context");
    const char *cluster = json_string_at(context, "cluster", "");
    const char *user = json_string_at(context, "user", "");
    const char *name_space = json_string_at(context, "namespace", "");
    config->context_name = memory_copy_string(name);
    config->name_space = memory_copy_string(name_space[0] ? name_space : "default");
    const struct json *cluster_item = entry_of(document, CLUSTERS, cluster, error);
    if (cluster_item == NULL)
        return error_wrap(error, "context '%s'", name);
    if (read_cluster(json_member(cluster_item, "cluster"), config, error) < 0)
        return error_wrap(error, "cluster '%s'", cluster);
    const struct json *user_item = user[0] ? entry_of(document, USERS, user, error) : NULL;
    if (user[0] && user_item == NULL)
        return error_wrap(error, "context '%s'", name);
    if (read_user(json_member(user_item, "user"), config, error) < 0 ||
        read_plugin(json_member(user_item, "user"), user, json_member(cluster_item, "cluster"), config, error) < 0)
        return error_wrap(error, "user '%s'", user);
    return 0;
}

static int read_document(const struct json *document, const char *context, const char *source,
                         struct kube_config *ret_config, struct error *error)
{
    SCOPED(kube_config_release) struct kube_config config = {0};
    const char *name = context ? context : json_string_at(document, "current-context", "");
    if (name[0] == '\0')
        return error_set(error, ERROR_INVALID, "%s: there is no current-context; name one with --context", source);
    if (read_context(document, name, &config, error) < 0)
        return error_wrap(error, "%s", source);
    config.source = memory_copy_string(source);
    *ret_config = config;
    config = (struct kube_config){0};
    return 0;
}

int kube_config_parse(const char *text, size_t length, const char *directory, const char *context,
                      struct kube_config *ret_config, struct error *error)
{
    SCOPED_JSON *document = NULL;
    if (parse_text(text, length, &document, error) < 0)
        return error_wrap(error, "kubeconfig");
    resolve_files(document, directory);
    return read_document(document, context, "kubeconfig", ret_config, error);
}

static int merge_file(struct json *into, const char *path, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(KUBE_CONFIG_MAX);
    SCOPED_JSON *document = NULL;
    if (buffer_read_file(&text, path, error) < 0)
        return -1;
    if (parse_text(buffer_text(&text), text.length, &document, error) < 0)
        return error_wrap(error, "%s", path);
    const char *slash = strrchr(path, '/');
    SCOPED_FREE char *directory = slash ? memory_copy_bytes(path, (size_t)(slash - path)) : memory_copy_string(".");
    resolve_files(document, directory);
    merge(into, document);
    return 0;
}

int kube_config_load_files(const char *paths, const char *context, struct kube_config *ret_config, struct error *error)
{
    SCOPED_JSON *merged = json_new_object();
    size_t read = 0;
    struct error failure = ERROR_INIT;
    for (const char *at = paths; *at;) {
        size_t length = strcspn(at, ":");
        SCOPED_FREE char *path = memory_copy_bytes(at, length);
        at += length + (at[length] == ':');
        if (length == 0)
            continue;
        if (merge_file(merged, path, &failure) == 0) {
            read++;
        } else if (failure.kind != ERROR_NOT_FOUND) {
            if (error)
                *error = failure;
            return -1;
        }
    }
    if (read == 0)
        return error_set(error, ERROR_NOT_FOUND,
                         strchr(paths, ':') ? "none of the kubeconfig files in '%s' exists"
                                            : "kubeconfig '%s' does not exist",
                         paths);
    return read_document(merged, context, paths, ret_config, error);
}
