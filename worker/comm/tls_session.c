/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/tls_session.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/lock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/crew_certificates.h"
#include "worker/comm/crew_hello.h"
#include "worker/comm/crew_key.h"

/* One record at a time (RFC 8446, 5.1). */
#define RECORD_BYTES ((size_t)16384)
#define READ_AHEAD_BYTES (2 * (RECORD_BYTES + 256)) /* two records */
/* A key of AES-GCM may protect 2^24.5 of them (RFC 8446, 5.5); ours take a new one long before. */
#define RECORDS_A_KEY ((uint64_t)1 << 20)
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"

/* A pre-shared key belongs to a hash, and these share theirs. */
#define KEY_SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
#define KEY_NAME "coxswain crew"
#define BINDING_LABEL "EXPORTER-Channel-Binding"

struct tls_session {
    SSL *ssl;
    bool by_key;   /* not by certificates */
    size_t unsent; /* length of the record that OpenSSL wants to see again, 0: none */
    uint64_t records;
    unsigned char record[RECORD_BYTES];
};

static void context_free(SSL_CTX **context)
{
    SSL_CTX_free(*context);
}
static void bio_free(BIO **bio)
{
    BIO_free(*bio);
}
#define SCOPED_BIO SCOPED(bio_free) BIO

static int fail(struct error *error, const char *what)
{
    char reason[256];
    ERR_error_string_n(ERR_peek_last_error(), reason, sizeof(reason));
    ERR_clear_error();
    return error_set(error, ERROR_FORBIDDEN, "%s: %s", what, reason);
}

static bool use_identity(SSL_CTX *context, const struct crew_identity *identity)
{
    SCOPED_BIO *certificate_text = BIO_new_mem_buf(identity->certificate_pem, -1);
    SCOPED_BIO *key_text = BIO_new_mem_buf(identity->key_pem, -1);
    X509 *certificate = certificate_text ? PEM_read_bio_X509(certificate_text, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = key_text ? PEM_read_bio_PrivateKey(key_text, NULL, NULL, NULL) : NULL;
    bool used = certificate && key && SSL_CTX_use_certificate(context, certificate) == 1 &&
                SSL_CTX_use_PrivateKey(context, key) == 1;
    X509_free(certificate);
    EVP_PKEY_free(key);
    return used;
}

static bool trust(SSL_CTX *context, const char *trusted_pem)
{
    SCOPED_BIO *text = BIO_new_mem_buf(trusted_pem, -1);
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    unsigned count = 0;
    for (X509 *next; text && (next = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL; count++) {
        X509_STORE_add_cert(store, next);
        X509_free(next);
    }
    ERR_clear_error(); /* the end of the text counts as one */
    return count > 0;
}

static bool use_certificates(SSL_CTX *context)
{
    SCOPED(crew_identity_release) struct crew_identity identity = {0};
    crew_identity_now(&identity);
    return SSL_CTX_set_ciphersuites(context, SUITES) && use_identity(context, &identity) &&
           trust(context, identity.trusted_pem);
}

/* ---------------------------------------------------------------- by the job's key */

static SSL_SESSION *secret_of_job(SSL *ssl)
{
    static const unsigned char suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256; its hash counts */
    const char *job_uid = pod_identity_own()->job_uid;
    unsigned char secret[CREW_PROOF_BYTES];
    SSL_SESSION *session = SSL_SESSION_new();
    crew_key_prove("control connection", job_uid, strlen(job_uid), secret);
    if (session != NULL &&
        !(SSL_SESSION_set1_master_key(session, secret, sizeof secret) &&
          SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)) &&
          SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
          SSL_SESSION_set1_id_context(session, (const unsigned char *)KEY_NAME, (unsigned)strlen(KEY_NAME)))) {
        SSL_SESSION_free(session);
        session = NULL;
    }
    OPENSSL_cleanse(secret, sizeof secret);
    return session;
}

static int show_key(SSL *ssl, const EVP_MD *hash, const unsigned char **ret_name, size_t *ret_length,
                    SSL_SESSION **ret_session)
{
    *ret_name = (const unsigned char *)KEY_NAME;
    *ret_length = strlen(KEY_NAME);
    *ret_session = hash == NULL || EVP_MD_is_a(hash, "SHA256") ? secret_of_job(ssl) : NULL;
    return *ret_session != NULL;
}

static int find_key(SSL *ssl, const unsigned char *name, size_t length, SSL_SESSION **ret_session)
{
    bool is_ours = length == strlen(KEY_NAME) && memcmp(name, KEY_NAME, length) == 0;
    *ret_session = is_ours ? secret_of_job(ssl) : NULL;
    return *ret_session != NULL;
}

/* Certificates are verified in this case too, and none is believed: a server without the key cannot show one instead. */
static bool use_key(SSL_CTX *context)
{
    SSL_CTX_set_psk_use_session_callback(context, show_key);
    SSL_CTX_set_psk_find_session_callback(context, find_key);
    return SSL_CTX_set_ciphersuites(context, KEY_SUITES) &&
           SSL_CTX_set_session_id_context(context, (const unsigned char *)KEY_NAME, (unsigned)strlen(KEY_NAME));
}

/* ---------------------------------------------------------------- sessions */

static SSL_CTX *new_context(bool by_key)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    if (context == NULL)
        return NULL;
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (!SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) || !SSL_CTX_set_num_tickets(context, 0) ||
        !(by_key ? use_key(context) : use_certificates(context))) {
        SSL_CTX_free(context);
        return NULL;
    }
    return context;
}

/* The contexts of all sessions. Making one takes as long as a handshake, so a stranger that only connects must not cause it. */
static struct {
    pthread_mutex_t lock;
    struct made_context {
        SSL_CTX *context;  /* NULL: not made yet */
        uint64_t identity; /* the number of the identity that it presents; 0: the job's key */
    } by_key, by_certificates;
} made = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The caller frees its reference. */
static SSL_CTX *get_context(bool by_key)
{
    SCOPED_LOCK(&made.lock);
    struct made_context *one = by_key ? &made.by_key : &made.by_certificates;
    uint64_t identity = by_key ? 0 : crew_identity_number();
    if (one->identity != identity) {
        SSL_CTX_free(one->context);
        one->context = NULL;
    }
    if (one->context == NULL)
        one->context = new_context(by_key);
    one->identity = identity;
    if (one->context != NULL)
        SSL_CTX_up_ref(one->context);
    return one->context;
}

int tls_session_new(int socket, bool answers, struct tls_session **ret_session, struct error *error)
{
    bool by_key = !crew_certificates_are_set();
    SCOPED(context_free) SSL_CTX *context = get_context(by_key);
    if (context == NULL)
        return fail(error, by_key ? "prepare TLS with the job's key" : "prepare TLS with the crew's certificate");
    SSL *ssl = SSL_new(context);
    if (ssl == NULL || SSL_set_fd(ssl, socket) != 1 || (!answers && SSL_set1_host(ssl, CREW_TLS_NAME) != 1)) {
        SSL_free(ssl);
        return fail(error, "prepare TLS");
    }
    if (answers)
        SSL_set_accept_state(ssl);
    else
        SSL_set_connect_state(ssl);
    *ret_session = memory_allocate(1, sizeof(**ret_session));
    (*ret_session)->ssl = ssl;
    (*ret_session)->by_key = by_key;
    return 0;
}

void tls_session_free(struct tls_session *session)
{
    if (session == NULL)
        return;
    SSL_free(session->ssl);
    free(session);
}

/* Returns whether OpenSSL only waits for the socket, which is not an error. */
static bool waits(const struct tls_session *session, int result)
{
    int why = SSL_get_error(session->ssl, result);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* Reports failures that are caused by the other side in our words, and the others with OpenSSL's reason. */
static int tell_failure(const struct tls_session *session, int why, struct error *error)
{
    unsigned long code = ERR_peek_last_error();
    int reason = ERR_GET_REASON(code);
    const char *text = ERR_reason_error_string(code);
    bool is_alert = reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
    long verdict = SSL_get_verify_result(session->ssl);
    ERR_clear_error();
    if (code == 0 || why == SSL_ERROR_SYSCALL || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return error_set(error, ERROR_UNAVAILABLE, "TLS: the other side closed the connection");
    if (reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA)
        return error_set(error, ERROR_FORBIDDEN, "TLS: the other side does not trust this one's certificate");
    if (session->by_key && is_alert)
        return error_set(error, ERROR_FORBIDDEN,
                         "TLS: the other side refused the connection: this process does not have its job's key");
    if (session->by_key && (reason == SSL_R_BINDER_DOES_NOT_VERIFY || reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM ||
                            reason == SSL_R_NO_SHARED_CIPHER || reason == SSL_R_BAD_EXTENSION ||
                            reason == SSL_R_CERTIFICATE_VERIFY_FAILED))
        return error_set(error, ERROR_FORBIDDEN, "TLS: the other side does not have this job's key");
    if (verdict != X509_V_OK)
        return error_set(error, ERROR_FORBIDDEN, "TLS: the other side's certificate is not this job's: %s",
                         X509_verify_cert_error_string(verdict));
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_UNSUPPORTED_PROTOCOL)
        return error_set(error, ERROR_FORBIDDEN,
                         "the other side does not speak TLS 1.3; do all pods of the job have the same image?");
    return error_set(error, ERROR_FORBIDDEN, "TLS: %s", text != NULL ? text : "the handshake failed");
}

int tls_session_handshake(struct tls_session *session, struct error *error)
{
    ERR_clear_error();
    int result = SSL_do_handshake(session->ssl);
    if (result == 1 && session->by_key && !SSL_session_reused(session->ssl))
        return error_set(error, ERROR_FORBIDDEN, "TLS: the other side does not have this job's key");
    if (result == 1)
        return 1;
    int why = SSL_get_error(session->ssl, result);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    return tell_failure(session, why, error);
}

int tls_session_binding(struct tls_session *session, unsigned char ret_binding[TLS_BINDING_BYTES], struct error *error)
{
    if (SSL_export_keying_material(session->ssl, ret_binding, TLS_BINDING_BYTES, BINDING_LABEL, strlen(BINDING_LABEL),
                                   NULL, 0, 0) != 1)
        return fail(error, "bind a proof to a TLS session");
    return 0;
}

/* As much as one record takes. */
static size_t fill_record(struct tls_session *session, const struct iovec *parts, int count)
{
    size_t filled = 0, most = session->unsent ? session->unsent : RECORD_BYTES;
    for (int i = 0; i < count && filled < most; i++) {
        size_t step = parts[i].iov_len < most - filled ? parts[i].iov_len : most - filled;
        memcpy(session->record + filled, parts[i].iov_base, step);
        filled += step;
    }
    return filled;
}

size_t tls_session_write(struct tls_session *session, const struct iovec *parts, int count, bool *closed)
{
    size_t length = fill_record(session, parts, count), written = 0;
    if (length == 0)
        return 0;
    ERR_clear_error();
    int result = SSL_write_ex(session->ssl, session->record, length, &written);
    if (result == 1) {
        session->unsent = 0;
        if (++session->records % RECORDS_A_KEY == 0)
            SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        return written;
    }
    if (waits(session, result))
        session->unsent = length;
    else
        *closed = true;
    return 0;
}

size_t tls_session_read(struct tls_session *session, void *bytes, size_t length, bool *closed)
{
    size_t got = 0;
    if (length == 0)
        return 0;
    ERR_clear_error();
    int result = SSL_read_ex(session->ssl, bytes, length, &got);
    if (result != 1 && !waits(session, result))
        *closed = true;
    return result == 1 ? got : 0;
}

short tls_session_events(const struct tls_session *session, bool reads, bool writes)
{
    if (!SSL_is_init_finished(session->ssl))
        return SSL_want_write(session->ssl) ? POLLOUT : POLLIN;
    return (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

/* Returns whether decrypted bytes can be read. Bytes of an incomplete record in OpenSSL do not count. */
bool tls_session_has_input(const struct tls_session *session)
{
    return SSL_pending(session->ssl) > 0;
}

void tls_session_read_ahead(struct tls_session *session)
{
    SSL_set_read_ahead(session->ssl, 1);
    SSL_set_default_read_buffer_len(session->ssl, READ_AHEAD_BYTES);
}

bool tls_session_has_unread(const struct tls_session *session)
{
    return SSL_has_pending(session->ssl) == 1;
}
