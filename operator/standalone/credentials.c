/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/credentials.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "common/base64.h"
#include "common/buffer.h"
#include "common/memory.h"
#include "operator/standalone/private_file.h"

#define FILE_MAX 65536
#define VALID_DAYS 3650
#define RENEW_DAYS 30
#define TOKEN_BYTES 32

static void key_free(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}
static void certificate_free(X509 **certificate)
{
    X509_free(*certificate);
}
static void bio_free(BIO **bio)
{
    BIO_free(*bio);
}
#define SCOPED_KEY SCOPED(key_free) EVP_PKEY
#define SCOPED_CERTIFICATE SCOPED(certificate_free) X509
#define SCOPED_BIO SCOPED(bio_free) BIO

static int fail(struct error *error, const char *doing)
{
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    return error_set(error, ERROR_INTERNAL, "cannot %s: %s", doing, reason);
}

/* ---- certificates ---- */

static bool add_extension(X509 *certificate, X509 *issuer, int which, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, which, value);
    bool added = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

static bool set_serial(X509 *certificate)
{
    unsigned char bytes[8];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    uint64_t serial;
    memcpy(&serial, bytes, sizeof serial);
    return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1);
}

static bool fill(X509 *certificate, EVP_PKEY *key, const char *name, X509 *issuer)
{
    X509_NAME *subject = X509_get_subject_name(certificate);
    return X509_set_version(certificate, X509_VERSION_3) && set_serial(certificate) &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
           X509_time_adj_ex(X509_getm_notAfter(certificate), VALID_DAYS, 0, NULL) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) &&
           X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) && X509_set_pubkey(certificate, key);
}

static X509 *make_authority(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    if (certificate && fill(certificate, key, "coxswain-standalone-ca", certificate) &&
        add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign") &&
        add_extension(certificate, certificate, NID_subject_key_identifier, "hash") &&
        X509_sign(certificate, key, EVP_sha256()))
        return certificate;
    X509_free(certificate);
    return NULL;
}

static X509 *make_server(EVP_PKEY *key, X509 *authority, EVP_PKEY *authority_key)
{
    X509 *certificate = X509_new();
    if (certificate && fill(certificate, key, "coxswain-standalone", authority) &&
        add_extension(certificate, authority, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(certificate, authority, NID_key_usage, "critical,digitalSignature") &&
        add_extension(certificate, authority, NID_ext_key_usage, "serverAuth") &&
        add_extension(certificate, authority, NID_authority_key_identifier, "keyid") &&
        add_extension(certificate, authority, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost") &&
        X509_sign(certificate, authority_key, EVP_sha256()))
        return certificate;
    X509_free(certificate);
    return NULL;
}

static char *bio_text(BIO *bio)
{
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    return memory_copy_bytes(bytes, (size_t)length);
}

static char *certificate_pem(X509 *certificate)
{
    SCOPED_BIO *bio = BIO_new(BIO_s_mem());
    return bio && PEM_write_bio_X509(bio, certificate) ? bio_text(bio) : NULL;
}

static char *key_pem(EVP_PKEY *key)
{
    SCOPED_BIO *bio = BIO_new(BIO_s_mem());
    return bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) ? bio_text(bio) : NULL;
}

static int make_certificates(struct credentials *credentials, struct error *error)
{
    SCOPED_KEY *authority_key = EVP_EC_gen("P-256");
    SCOPED_KEY *key = EVP_EC_gen("P-256");
    SCOPED_CERTIFICATE *authority = authority_key && key ? make_authority(authority_key) : NULL;
    SCOPED_CERTIFICATE *certificate = authority ? make_server(key, authority, authority_key) : NULL;
    if (certificate == NULL)
        return fail(error, "make a certificate");
    credentials->ca_pem = certificate_pem(authority);
    credentials->cert_pem = certificate_pem(certificate);
    credentials->key_pem = key_pem(key);
    return credentials->ca_pem && credentials->cert_pem && credentials->key_pem ? 0
                                                                                : fail(error, "print a certificate");
}

static bool is_usable(const char *pem)
{
    SCOPED_BIO *bio = BIO_new_mem_buf(pem, -1);
    SCOPED_CERTIFICATE *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    int days = 0, seconds = 0;
    return certificate && ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) && days >= RENEW_DAYS;
}

/* ---- files ---- */

static char *file_path(const char *directory, const char *name)
{
    return memory_format("%s/pki/%s", directory, name);
}

/* NULL when it is not there or cannot be read. */
static char *read_file(const char *directory, const char *name)
{
    SCOPED_FREE char *path = file_path(directory, name);
    SCOPED_BUFFER text;
    buffer_init(&text, FILE_MAX);
    return buffer_read_file(&text, path, NULL) == 0 && text.length ? buffer_take(&text) : NULL;
}

static int write_file(const char *directory, const char *name, const char *text, struct error *error)
{
    SCOPED_FREE char *path = file_path(directory, name);
    return private_file_write(path, text, strlen(text), error);
}

static bool read_all(const char *directory, struct credentials *credentials)
{
    credentials->ca_pem = read_file(directory, "ca.crt");
    credentials->cert_pem = read_file(directory, "server.crt");
    credentials->key_pem = read_file(directory, "server.key");
    return credentials->ca_pem && credentials->cert_pem && credentials->key_pem && is_usable(credentials->cert_pem);
}

static int write_all(const char *directory, const struct credentials *credentials, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/pki", directory);
    if (private_directory_make(path, error) < 0)
        return -1;
    if (write_file(directory, "ca.crt", credentials->ca_pem, error) < 0 ||
        write_file(directory, "server.key", credentials->key_pem, error) < 0 ||
        write_file(directory, "token", credentials->token, error) < 0)
        return -1;
    return write_file(directory, "server.crt", credentials->cert_pem, error);
}

static int make_token(struct credentials *credentials, struct error *error)
{
    unsigned char bytes[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 1];
    static const char digits[] = "0123456789abcdef";
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return fail(error, "make a token");
    for (size_t i = 0; i < TOKEN_BYTES; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    credentials->token = memory_copy_bytes(text, 2 * TOKEN_BYTES);
    return 0;
}

static int make_all(const char *directory, struct credentials *credentials, struct error *error)
{
    credentials_release(credentials);
    if (make_certificates(credentials, error) < 0 || make_token(credentials, error) < 0)
        return -1;
    return write_all(directory, credentials, error);
}

int credentials_load(const char *state_directory, struct credentials *ret_credentials, struct error *error)
{
    struct credentials credentials = {.token = read_file(state_directory, "token")};
    bool complete = read_all(state_directory, &credentials) && credentials.token;
    if (!complete && make_all(state_directory, &credentials, error) < 0) {
        credentials_release(&credentials);
        return -1;
    }
    *ret_credentials = credentials;
    return 0;
}

void credentials_release(struct credentials *credentials)
{
    free(credentials->ca_pem);
    free(credentials->cert_pem);
    free(credentials->key_pem);
    free(credentials->token);
    *credentials = (struct credentials){0};
}

static const char kubeconfig[] = "apiVersion: v1\n"
                                 "kind: Config\n"
                                 "current-context: coxswain\n"
                                 "clusters:\n"
                                 "- name: coxswain\n"
                                 "  cluster:\n"
                                 "    server: https://127.0.0.1:%u\n"
                                 "    certificate-authority-data: %s\n"
                                 "users:\n"
                                 "- name: coxswain\n"
                                 "  user:\n"
                                 "    token: %s\n"
                                 "contexts:\n"
                                 "- name: coxswain\n"
                                 "  context:\n"
                                 "    cluster: coxswain\n"
                                 "    namespace: default\n"
                                 "    user: coxswain\n";

int credentials_write_kubeconfig(const struct credentials *credentials, const char *state_directory, uint16_t port,
                                 struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/kubeconfig", state_directory);
    SCOPED_FREE char *authority = base64_encode(credentials->ca_pem, strlen(credentials->ca_pem));
    SCOPED_FREE char *text = memory_format(kubeconfig, port, authority, credentials->token);
    return private_file_write(path, text, strlen(text), error);
}
