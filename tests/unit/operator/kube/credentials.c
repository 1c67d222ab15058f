/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/kube/credentials.h"

static char directory[] = "/tmp/credentials-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
}

static void write_file(const char *name, const char *text)
{
    SCOPED_FREE char *path = memory_format("%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void teardown(void)
{
    static const char *const names[] = {"token", "ca.crt", "namespace", "one", "two", "key", "cert"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        SCOPED_FREE char *path = memory_format("%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

TestSuite(credentials, .init = setup, .fini = teardown);

static const char kubeconfig[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "current-context: here\n"
    "clusters:\n"
    "- name: c\n"
    "  cluster: {server: 'https://host:6443/', certificate-authority-data: Q0E=, tls-server-name: api,\n"
    "            extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: us}}]}\n"
    "- name: skip\n"
    "  cluster: {server: 'https://host', insecure-skip-tls-verify: true}\n"
    "- name: proxied\n"
    "  cluster: {server: 'https://host', proxy-url: 'socks5://proxy:1080'}\n"
    "- name: ftp\n"
    "  cluster: {server: 'https://host', proxy-url: 'ftp://proxy'}\n"
    "- name: port\n"
    "  cluster: {server: 'https://host', proxy-url: 3128}\n"
    "- name: bare\n"
    "  cluster: {server: host}\n"
    "users:\n"
    "- name: t\n"
    "  user: {token: abc}\n"
    "- name: f\n"
    "  user: {tokenFile: token}\n"
    "- name: m\n"
    "  user: {client-certificate: cert, client-key: key}\n"
    "- name: half\n"
    "  user: {client-certificate-data: Q0E=}\n"
    "- name: x\n"
    "  user: {exec: {command: aws, apiVersion: client.authentication.k8s.io/v1alpha1}}\n"
    "- name: h\n"
    "  user: {auth-provider: {name: gcp}}\n"
    "- name: e\n"
    "  user:\n"
    "    exec: {command: ./log-in, apiVersion: client.authentication.k8s.io/v1, provideClusterInfo: true}\n"
    "- name: both\n"
    "  user: {token: abc, exec: {command: aws, apiVersion: client.authentication.k8s.io/v1}}\n"
    "- name: p\n"
    "  user: {username: u, password: p}\n"
    "- name: other\n"
    "  user: {token: abc, as: jane doe, as-uid: u1, as-groups: [dev, 'ops team'],\n"
    "         as-user-extra: {'example.com/why': [testing], scopes: [a, b]}}\n"
    "- name: blank\n"
    "  user: {token: abc, as: jane, as-groups: ['', ops, ' '], as-user-extra: {scopes: [''], none: []}}\n"
    "- name: groups\n"
    "  user: {token: abc, as-groups: [dev]}\n"
    "- name: split\n"
    "  user: {token: abc, as: \"jane\\r\\nX-Header: y\"}\n"
    "- name: number\n"
    "  user: {token: abc, as: 1000}\n"
    "- name: lone-group\n"
    "  user: {token: abc, as: jane, as-groups: dev}\n"
    "- name: lone-extra\n"
    "  user: {token: abc, as: jane, as-user-extra: {scopes: a}}\n"
    "contexts:\n"
    "- {name: here, context: {cluster: c, user: t, namespace: team}}\n"
    "- {name: file, context: {cluster: c, user: f}}\n"
    "- {name: mutual, context: {cluster: skip, user: m}}\n"
    "- {name: half, context: {cluster: skip, user: half}}\n"
    "- {name: exec, context: {cluster: c, user: x}}\n"
    "- {name: helper, context: {cluster: c, user: h}}\n"
    "- {name: plugin, context: {cluster: c, user: e}}\n"
    "- {name: both, context: {cluster: c, user: both}}\n"
    "- {name: password, context: {cluster: c, user: p}}\n"
    "- {name: proxied, context: {cluster: proxied, user: t}}\n"
    "- {name: ftp, context: {cluster: ftp, user: t}}\n"
    "- {name: other, context: {cluster: c, user: other}}\n"
    "- {name: blank, context: {cluster: c, user: blank}}\n"
    "- {name: groups, context: {cluster: c, user: groups}}\n"
    "- {name: split, context: {cluster: c, user: split}}\n"
    "- {name: port, context: {cluster: port, user: t}}\n"
    "- {name: number, context: {cluster: c, user: number}}\n"
    "- {name: lone-group, context: {cluster: c, user: lone-group}}\n"
    "- {name: lone-extra, context: {cluster: c, user: lone-extra}}\n"
    "- {name: bare, context: {cluster: bare, user: t}}\n"
    "- {name: nobody, context: {cluster: c, user: gone}}\n"
    "- {name: nowhere, context: {cluster: gone, user: t}}\n"
    "- {name: anonymous, context: {cluster: c}}\n";

static int parse(const char *context, struct kube_config *config, struct error *error)
{
    return kube_config_parse(kubeconfig, strlen(kubeconfig), directory, context, config, error);
}

Test(credentials, the_current_context_is_read)
{
    struct kube_config config;
    struct error error = ERROR_INIT;
    cr_assert_eq(parse(NULL, &config, &error), 0, "%s", error.message);
    cr_assert_str_eq(config.server, "https://host:6443");
    cr_assert_str_eq(config.name_space, "team");
    cr_assert_str_eq(config.context_name, "here");
    cr_assert_str_eq(config.ca_pem, "CA");
    cr_assert_str_eq(config.token, "abc");
    cr_assert_str_eq(config.tls_server_name, "api");
    cr_assert_not(config.insecure_skip_tls_verify);
    kube_config_release(&config);
}

Test(credentials, files_are_relative_to_the_kubeconfig)
{
    struct kube_config config;
    struct error error = ERROR_INIT;
    write_file("token", " from-file\n");
    write_file("cert", "CERT");
    write_file("key", "KEY");
    cr_assert_eq(parse("file", &config, &error), 0, "%s", error.message);
    cr_assert_str_eq(config.token, "from-file");
    cr_assert_not_null(config.token_file);
    cr_assert_str_eq(config.name_space, "default");
    kube_config_release(&config);
    cr_assert_eq(parse("mutual", &config, &error), 0, "%s", error.message);
    cr_assert_str_eq(config.client_cert_pem, "CERT");
    cr_assert_str_eq(config.client_key_pem, "KEY");
    cr_assert(config.insecure_skip_tls_verify);
    kube_config_release(&config);
    cr_assert_eq(parse("anonymous", &config, &error), 0, "%s", error.message);
    cr_assert_null(config.token);
    kube_config_release(&config);
}

Test(credentials, a_plugin_is_kept_with_its_cluster_information)
{
    struct kube_config config;
    struct error error = ERROR_INIT;
    cr_assert_eq(parse("plugin", &config, &error), 0, "%s", error.message);
    SCOPED_FREE char *command = memory_format("%s/./log-in", directory);
    cr_assert_str_eq(json_string_at(config.exec, "user", ""), "e");
    cr_assert_str_eq(json_string_at(config.exec, "plugin.command", ""), command);
    cr_assert_str_eq(json_string_at(config.exec, "cluster.server", ""), "https://host:6443");
    cr_assert_str_eq(json_string_at(config.exec, "cluster.tls-server-name", ""), "api");
    cr_assert_str_eq(json_string_at(config.exec, "cluster.certificate-authority-data", ""), "Q0E=");
    cr_assert_str_eq(json_string_at(config.exec, "cluster.config.audience", ""), "us");
    kube_config_release(&config);
    cr_assert_eq(parse("both", &config, &error), 0, "%s", error.message);
    cr_assert_null(config.exec, "a token is there already");
    kube_config_release(&config);
}

Test(credentials, impersonation_is_sent_in_headers)
{
    static const char *const expected[] = {"Impersonate-User: jane doe",
                                           "Impersonate-Uid: u1",
                                           "Impersonate-Group: dev",
                                           "Impersonate-Group: ops team",
                                           "Impersonate-Extra-example.com%2Fwhy: testing",
                                           "Impersonate-Extra-scopes: a",
                                           "Impersonate-Extra-scopes: b"};
    struct kube_config config;
    struct error error = ERROR_INIT;
    cr_assert_eq(parse("other", &config, &error), 0, "%s", error.message);
    size_t count = 0;
    for (const struct json *item = json_first(config.impersonation); item; item = json_next(item))
        cr_assert_str_eq(json_string(item, ""), expected[count++]);
    cr_assert_eq(count, sizeof expected / sizeof *expected);
    kube_config_release(&config);
    cr_assert_eq(parse(NULL, &config, &error), 0, "%s", error.message);
    cr_assert_null(config.impersonation);
    cr_assert_null(config.proxy);
    kube_config_release(&config);
    cr_assert_eq(parse("proxied", &config, &error), 0, "%s", error.message);
    cr_assert_str_eq(config.proxy, "socks5://proxy:1080");
    kube_config_release(&config);
}

/* To the API server an empty group is another thing than none. */
Test(credentials, empty_values_are_said_too)
{
    static const char *const expected[] = {"Impersonate-User: jane", "Impersonate-Group;", "Impersonate-Group: ops",
                                           "Impersonate-Group;", "Impersonate-Extra-scopes;"};
    struct kube_config config;
    struct error error = ERROR_INIT;
    cr_assert_eq(parse("blank", &config, &error), 0, "%s", error.message);
    size_t count = 0;
    for (const struct json *item = json_first(config.impersonation); item; item = json_next(item))
        cr_assert_str_eq(json_string(item, ""), expected[count++]);
    cr_assert_eq(count, sizeof expected / sizeof *expected);
    kube_config_release(&config);
}

Test(credentials, what_cannot_work_is_refused_by_name)
{
    static const char *const cases[][2] = {
        {"half", "user 'half': client-certificate and client-key belong together"},
        {"exec", "user 'x': exec: apiVersion 'client.authentication.k8s.io/v1alpha1' is not known"},
        {"helper", "user 'h': 'auth-provider' is not supported"},
        {"password", "user 'p': 'username' is not supported"},
        {"ftp", "cluster 'ftp': proxy-url 'ftp://proxy' must begin with http://, https:// or socks5://"},
        {"groups", "user 'groups': as-uid, as-groups and as-user-extra need 'as', the user's name"},
        {"split",
         "user 'split': Impersonate-User: each value must be text without control characters, as in any HTTP header"},
        {"port", "cluster 'port': proxy-url must be a string, and is of type number"},
        {"number", "user 'number': 'as' must be of type string, and is of type number"},
        {"lone-group", "user 'lone-group': 'as-groups' must be of type array, and is of type string"},
        {"lone-extra", "user 'lone-extra': 'scopes' must be of type array, and is of type string"},
        {"bare", "cluster 'bare': server 'host' must begin with https://"},
        {"nobody", "there is no user named 'gone'"},
        {"nowhere", "there is no cluster named 'gone'"},
        {"absent", "there is no context named 'absent'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kube_config config;
        struct error error = ERROR_INIT;
        cr_assert_eq(parse(cases[i][0], &config, &error), -1, "%s", cases[i][0]);
        cr_assert_not_null(strstr(error.message, cases[i][1]), "%s", error.message);
    }
}

Test(credentials, the_first_entry_of_several_files_wins)
{
    struct kube_config config;
    struct error error = ERROR_INIT;
    write_file("one", "users: [{name: u, user: {token: first}}]\n"
                      "clusters: [{name: c, cluster: {server: 'https://one'}}]\n");
    write_file("two", "current-context: k\nusers: [{name: u, user: {token: second}}]\n"
                      "contexts: [{name: k, context: {cluster: c, user: u}}]\n");
    SCOPED_FREE char *paths = memory_format("%s/missing:%s/one::%s/two", directory, directory, directory);
    cr_assert_eq(kube_config_load_files(paths, NULL, &config, &error), 0, "%s", error.message);
    cr_assert_str_eq(config.server, "https://one");
    cr_assert_str_eq(config.token, "first");
    kube_config_release(&config);
    SCOPED_FREE char *missing = memory_format("%s/missing", directory);
    cr_assert_eq(kube_config_load_files(missing, NULL, &config, &error), -1);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND);
    cr_assert(strstr(error.message, "missing' does not exist"), "%s", error.message);
    SCOPED_FREE char *both = memory_format("%s/missing:%s/none", directory, directory);
    cr_assert_eq(kube_config_load_files(both, NULL, &config, &error), -1);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND);
    cr_assert(strstr(error.message, "none of the kubeconfig files in '"), "%s", error.message);
}

Test(credentials, a_pod_finds_its_service_account)
{
    struct kube_config config;
    struct error error = ERROR_INIT;
    write_file("token", "t1");
    write_file("ca.crt", "CA");
    write_file("namespace", "team\n");
    cr_assert_eq(kube_config_load_in_cluster(directory, "fd00::1", "443", &config, &error), 0, "%s", error.message);
    cr_assert_str_eq(config.server, "https://[fd00::1]:443");
    cr_assert_str_eq(config.name_space, "team");
    cr_assert_str_eq(config.token, "t1");
    cr_assert(config.ca_file && config.token_file);
    kube_config_release(&config);
    cr_assert_eq(kube_config_load_in_cluster(directory, NULL, "443", &config, &error), -1);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND);
}

Test(credentials, a_token_that_could_end_a_header_is_refused)
{
    static const char *const wrong[] = {"", " \n", "two words", "a\nX-Evil: 1", "caf\xc3\xa9"};
    SCOPED_FREE char *path = memory_format("%s/token", directory);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *token;
        struct error error = ERROR_INIT;
        write_file("token", wrong[i]);
        cr_assert_eq(kube_token_read(path, &token, &error), -1, "%s", wrong[i]);
        cr_assert_eq(error.kind, ERROR_INVALID);
    }
}
