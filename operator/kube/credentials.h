/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the address of an API server and the credentials for it, from kubeconfig files (as
 * kubectl reads them) or from the service account files that every pod has.
 *
 * Supported: clusters with inline or file certificates, tls-server-name,
 * insecure-skip-tls-verify and proxy-url; users with client certificates, token, tokenFile,
 * exec plugins (which kube_client_options must allow) and impersonation; contexts with a
 * namespace. Auth providers and passwords, which Kubernetes has removed, are refused with an
 * error that names the entry.
 */
#ifndef COXSWAIN_KUBE_CREDENTIALS_H
#define COXSWAIN_KUBE_CREDENTIALS_H

#include <stdbool.h>

#include "common/error.h"

/* Larger kubeconfig, certificate and token files are refused. */
#define KUBE_CONFIG_MAX (1024 * 1024)

struct json;

/* A plain value that owns its strings; release it with kube_config_release. NULL fields were not given. */
struct kube_config {
    char *server;          /* "https://10.0.0.1:6443", perhaps with a path; no "/" at the end */
    char *name_space;      /* of the context or the pod; else "default" */
    char *context_name;    /* NULL in a cluster */
    char *source;          /* for messages: the files, or "in-cluster" */
    char *ca_pem;          /* NULL: the system's trust store */
    char *client_cert_pem; /* both or none */
    char *client_key_pem;
    char *ca_file;    /* the file of ca_pem, read again every minute; NULL: ca_pem is fixed */
    char *token;      /* as loaded; NULL: none */
    char *token_file; /* the file of `token`, read again every minute; NULL: `token` is fixed */
    /* The credential plugin of a user without a token or certificate (exec_plugin.h). Members: "user", the user's name;
     * "plugin", its `exec` entry; "cluster", the cluster description passed to the plugin. NULL: none. */
    struct json *exec;
    struct json *impersonation; /* request headers (impersonation.h); NULL: none */
    char *proxy;                /* "http://…", "https://…", "socks5://…"; NULL: taken from the environment */
    char *tls_server_name;
    bool insecure_skip_tls_verify; /* set only by the kubeconfig; the program must log it */
};

void kube_config_copy(const struct kube_config *config, struct kube_config *ret_copy);
void kube_config_release(struct kube_config *config);

/* Loads the first of these that exists: `path` (--kubeconfig) unless NULL, the files in $KUBECONFIG, the pod's service
 * account, ~/.kube/config. `context` NULL: the current-context. ERROR_NOT_FOUND when none exists; ERROR_INVALID, with
 * file and entry, when one is wrong. */
int kube_config_load(const char *path, const char *context, struct kube_config *ret_config, struct error *error);

/* Loads and merges the files "a:b:c". For each entry the first file that has it wins; missing files are skipped. File
 * names inside a kubeconfig are relative to its directory. */
int kube_config_load_files(const char *paths, const char *context, struct kube_config *ret_config, struct error *error);

/* Loads a pod's service account from `directory` (/var/run/secrets/kubernetes.io/serviceaccount) and KUBERNETES_SERVICE_HOST and _PORT. */
int kube_config_load_in_cluster(const char *directory, const char *host, const char *port,
                                struct kube_config *ret_config, struct error *error);

/* Loads one kubeconfig text; file names in it are relative to `directory`. */
int kube_config_parse(const char *text, size_t length, const char *directory, const char *context,
                      struct kube_config *ret_config, struct error *error);

/* Reads a file of certificates; release with free(). ERROR_INVALID when it holds none. */
int kube_authority_read(const char *path, char **ret_pem, struct error *error);

/* Reads a token file and trims white space; release with free(). ERROR_INVALID when the token is empty or has
 * characters that are not allowed in an HTTP header. */
int kube_token_read(const char *path, char **ret_token, struct error *error);

/* Returns whether `text` may be sent as a bearer token: not empty, and visible ASCII only. */
bool kube_token_is_valid(const char *text);

#endif
