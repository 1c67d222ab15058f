/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates made on the spot, for tests of TLS.
 */
#ifndef COXSWAIN_TESTS_TEST_CERTIFICATE_H
#define COXSWAIN_TESTS_TEST_CERTIFICATE_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

struct test_certificate {
    EVP_PKEY *key;
    X509 *certificate;
    char *certificate_pem, *key_pem;
};

static inline char *test_bio_text(BIO *bio)
{
    char *data;
    long length = BIO_get_mem_data(bio, &data);
    char *text = strndup(data, (size_t)length);
    BIO_free(bio);
    return text;
}

static inline void test_extension(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

/* `names` as in "IP:127.0.0.1,DNS:api.test"; `issuer` NULL: an authority that signs itself. */
static inline struct test_certificate test_certificate_make(const char *subject, const char *names,
                                                            const struct test_certificate *issuer)
{
    static long serial = 1;
    struct test_certificate made = {.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)subject, -1, -1, 0);
    X509_set_issuer_name(made.certificate, X509_get_subject_name(issuer ? issuer->certificate : made.certificate));
    X509_set_pubkey(made.certificate, made.key);
    if (names)
        test_extension(made.certificate, NID_subject_alt_name, names);
    if (issuer == NULL)
        test_extension(made.certificate, NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(made.certificate, issuer ? issuer->key : made.key, EVP_sha256());
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, made.certificate);
    made.certificate_pem = test_bio_text(bio);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, made.key, NULL, NULL, 0, NULL, NULL);
    made.key_pem = test_bio_text(bio);
    return made;
}

static inline void test_certificate_release(struct test_certificate *made)
{
    EVP_PKEY_free(made->key);
    X509_free(made->certificate);
    free(made->certificate_pem);
    free(made->key_pem);
    *made = (struct test_certificate){0};
}

/* `client_authority` not NULL: clients must show a certificate that it signed. */
static inline SSL_CTX *test_tls_server(const struct test_certificate *own,
                                       const struct test_certificate *client_authority)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(context, own->certificate);
    SSL_CTX_use_PrivateKey(context, own->key);
    if (client_authority) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), client_authority->certificate);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return context;
}

#endif
