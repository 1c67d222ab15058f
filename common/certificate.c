/* SPDX-License-Identifier: Apache-2.0 */
#include "common/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "common/memory.h"
#include "common/scope.h"

static void key_free(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}
static void x509_free(X509 **certificate)
{
    X509_free(*certificate);
}
static void bio_free(BIO **bio)
{
    BIO_free(*bio);
}
#define SCOPED_KEY SCOPED(key_free) EVP_PKEY
#define SCOPED_X509 SCOPED(x509_free) X509
#define SCOPED_BIO SCOPED(bio_free) BIO

static int fail(struct error *error, const char *doing)
{
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    return error_set(error, ERROR_INTERNAL, "cannot %s: %s", doing, reason);
}

static bool add_extension(X509 *certificate, X509 *issuer, int which, const char *value)
{
    if (value == NULL)
        return true;
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

static bool fill(X509 *made, EVP_PKEY *key, const struct certificate_request *request, X509 *issuer)
{
    const unsigned char *name = (const unsigned char *)request->common_name;
    return X509_set_version(made, X509_VERSION_3) && set_serial(made) &&
           ASN1_TIME_set(X509_getm_notBefore(made), (time_t)request->from_s) &&
           ASN1_TIME_set(X509_getm_notAfter(made), (time_t)request->until_s) &&
           X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC, name, -1, -1, 0) &&
           X509_set_issuer_name(made, X509_get_subject_name(issuer)) && X509_set_pubkey(made, key);
}

/* One that signs itself names its key as well: among several of one subject it is known by that alone. */
static bool extend(X509 *made, const struct certificate_request *request, X509 *issuer)
{
    bool authority = request->is_authority;
    return add_extension(made, issuer, NID_basic_constraints, authority ? "critical,CA:TRUE,pathlen:0" : "CA:FALSE") &&
           add_extension(made, issuer, NID_key_usage,
                         authority ? "critical,keyCertSign" : "critical,digitalSignature") &&
           add_extension(made, issuer, NID_ext_key_usage, request->extended_use) &&
           add_extension(made, issuer, NID_subject_key_identifier, "hash") &&
           add_extension(made, issuer, NID_authority_key_identifier, "keyid:always") &&
           add_extension(made, issuer, NID_subject_alt_name, request->names);
}

static char *bio_text(BIO *bio)
{
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    return memory_copy_bytes(bytes, (size_t)length);
}

static int print(X509 *made, EVP_PKEY *key, struct certificate *ret_made, struct error *error)
{
    SCOPED_BIO *public = BIO_new(BIO_s_mem()), *private = BIO_new(BIO_s_mem());
    if (!public || !private || !PEM_write_bio_X509(public, made) ||
        !PEM_write_bio_PrivateKey(private, key, NULL, NULL, 0, NULL, NULL))
        return fail(error, "print a certificate");
    *ret_made = (struct certificate){bio_text(public), bio_text(private)};
    return 0;
}

static X509 *read_certificate(const char *pem)
{
    SCOPED_BIO *bio = BIO_new_mem_buf(pem, -1);
    return bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
}

static EVP_PKEY *read_key(const char *pem)
{
    SCOPED_BIO *bio = BIO_new_mem_buf(pem, -1);
    return bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
}

int certificate_make(const struct certificate_request *request, const struct certificate *issuer,
                     struct certificate *ret_made, struct error *error)
{
    SCOPED_KEY *key = request->key_pem ? read_key(request->key_pem) : EVP_EC_gen("P-256"),
               *issuers_key = issuer ? read_key(issuer->key_pem) : NULL;
    SCOPED_X509 *made = X509_new(), *issuers = issuer ? read_certificate(issuer->certificate_pem) : NULL;
    if (!key || !made || (issuer && (!issuers || !issuers_key)))
        return fail(error, "make a certificate");
    X509 *by = issuer ? issuers : made;
    if (!fill(made, key, request, by) || !extend(made, request, by) ||
        !X509_sign(made, issuer ? issuers_key : key, EVP_sha256()))
        return fail(error, "make a certificate");
    return print(made, key, ret_made, error);
}

void certificate_release(struct certificate *certificate)
{
    if (certificate->key_pem)
        OPENSSL_cleanse(certificate->key_pem, strlen(certificate->key_pem));
    free(certificate->certificate_pem);
    free(certificate->key_pem);
    *certificate = (struct certificate){0};
}

bool certificate_has_key(const struct certificate *certificate)
{
    SCOPED_X509 *public = read_certificate(certificate->certificate_pem);
    SCOPED_KEY *private = read_key(certificate->key_pem);
    bool has = public && private && X509_check_private_key(public, private) == 1;
    ERR_clear_error();
    return has;
}

int certificate_end(const char *pem, int64_t *ret_until_s, struct error *error)
{
    SCOPED_X509 *certificate = read_certificate(pem);
    struct tm end;
    if (!certificate || !ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end)) {
        ERR_clear_error();
        return error_set(error, ERROR_INVALID, "not a certificate in PEM");
    }
    *ret_until_s = (int64_t)timegm(&end);
    return 0;
}
