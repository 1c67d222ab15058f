/* SPDX-License-Identifier: Apache-2.0
 *
 * How to reach an API server and as whom: from kubeconfig files (as kubectl reads
 * them) or from the files that every pod is given for its service account.
 *
 * Supported: clusters with inline or file certificates, tls-server-name,
 * insecure-skip-tls-verify and proxy-url; users with client certificates, token,
 * tokenFile, exec plugins, which whoever makes a client has to allow (client.h), and
 * those who act as others; contexts with a namespace. Refused with a sentence that
 * names the entry: auth providers and passwords, which Kubernetes has given up.
 */
#ifndef COXSWAIN_KUBE_CREDENTIALS_H
#define COXSWAIN_KUBE_CREDENTIALS_H

#include <stdbool.h>

#include "common/error.h"

/* Larger kubeconfig, certificate and token files are refused. */
#define KUBE_CONFIG_MAX (1024 * 1024)

struct json;

/* A plain value that owns its strings; release with kube_config_release. NULL: not given. */
struct kube_config {
    char *server;          /* "https://10.0.0.1:6443", perhaps with a path; no "/" at the end */
    char *name_space;      /* of the context, or of the pod; "default" otherwise */
    char *context_name;    /* NULL in a cluster */
    char *source;          /* for messages: the files, or "in-cluster" */
    char *ca_pem;          /* NULL: the system's trust store */
    char *client_cert_pem; /* both or none */
    char *client_key_pem;
    char *ca_file;    /* where ca_pem was read, to be read again; NULL: ca_pem is fixed */
    char *token;      /* as it was when loaded; NULL: none */
    char *token_file; /* to be read again every minute; NULL: `token` is fixed */
    /* The plugin that has the user's credentials where it has none of those above (exec_plugin.h): "user", its name; "plugin",
     * its `exec`; "cluster", what the plugin is told of that. NULL: none. */
    struct json *exec;
    struct json *impersonation; /* headers (impersonation.h); NULL: none */
    char *proxy;                /* "http://…", "https://…", "socks5://…"; NULL: as the environment has it */
    char *tls_server_name;
    bool insecure_skip_tls_verify; /* only when the kubeconfig says so; the program must log it */
};

void kube_config_release(struct kube_config *config);

/* The first that is there of: `path` (--kubeconfig, not NULL), the files in $KUBECONFIG, the pod's service account,
 * ~/.kube/config. `context` NULL: the current-context. ERROR_NOT_FOUND when there is none of them, ERROR_INVALID
 * with file and entry when one is wrong. */
int kube_config_load(const char *path, const char *context, struct kube_config *ret_config, struct error *error);

/* From "a:b:c": what comes first wins, entry by entry; files that do not exist are left out; relative file names are
 * relative to the file that names them. */
int kube_config_load_files(const char *paths, const char *context, struct kube_config *ret_config, struct error *error);

/* From a pod's `directory` (/var/run/secrets/kubernetes.io/serviceaccount) and KUBERNETES_SERVICE_HOST and _PORT. */
int kube_config_load_in_cluster(const char *directory, const char *host, const char *port,
                                struct kube_config *ret_config, struct error *error);

/* From one text; relative file names in it are relative to `directory`. */
int kube_config_parse(const char *text, size_t length, const char *directory, const char *context,
                      struct kube_config *ret_config, struct error *error);

/* Reads a file of certificates; release with free(). ERROR_INVALID when it holds none. */
int kube_authority_read(const char *path, char **ret_pem, struct error *error);

/* Reads a token file, white space around it removed; release with free(). ERROR_INVALID when it is empty or holds what
 * cannot stand in an HTTP header. */
int kube_token_read(const char *path, char **ret_token, struct error *error);

#endif
