/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_certificates.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/lock.h"
#include "common/memory.h"
#include "common/scope.h"

#define CERTIFICATE "CERTIFICATE"
#define PRIVATE_KEY "PRIVATE KEY"
#define REMEMBERED 4 /* generations: two that are mounted, two that were */

struct generation_file {
    const char *name;
    struct stat seen;
    int64_t from_s;
    char *certificate_pem, *key_pem; /* NULL: nothing to be used yet */
};

static struct {
    pthread_mutex_t lock;
    char *directory;
    struct generation_file files[2];
    char *believed[REMEMBERED];
    unsigned next_believed;
    uint64_t changes; /* files taken or forgotten so far */
} crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .files = {{.name = CREW_TLS_EVEN}, {.name = CREW_TLS_ODD}}};

/* A copy of the first block of that kind, with its lines around it; NULL when there is none. */
static char *copy_block(const char *pem, const char *kind)
{
    char first[64], last[64];
    snprintf(first, sizeof(first), "-----BEGIN %s-----", kind);
    snprintf(last, sizeof(last), "-----END %s-----", kind);
    const char *begin = strstr(pem, first), *end = begin ? strstr(begin, last) : NULL;
    if (end == NULL)
        return NULL;
    SCOPED_FREE char *block = memory_copy_bytes(begin, (size_t)(end - begin) + strlen(last));
    return memory_format("%s\n", block);
}

static void believe(const char *certificate_pem)
{
    for (unsigned i = 0; i < REMEMBERED; i++)
        if (crew.believed[i] != NULL && strcmp(crew.believed[i], certificate_pem) == 0)
            return;
    char **place = &crew.believed[crew.next_believed++ % REMEMBERED];
    free(*place);
    *place = memory_copy_string(certificate_pem);
}

static int take_text(struct generation_file *file, const char *path, const char *pem, struct error *error)
{
    long long from_s;
    SCOPED_FREE char *certificate = copy_block(pem, CERTIFICATE), *key = copy_block(pem, PRIVATE_KEY);
    if (sscanf(pem, "from %lld", &from_s) != 1 || certificate == NULL || key == NULL)
        return error_set(error, ERROR_INVALID,
                         "%s is not the operator's: it begins with \"from\" and a time, then a certificate, then a key",
                         path);
    free(file->certificate_pem);
    free(file->key_pem);
    crew.changes++;
    file->from_s = from_s;
    file->certificate_pem = certificate;
    file->key_pem = key;
    certificate = key = NULL; /* kept */
    believe(file->certificate_pem);
    return 0;
}

static bool is_the_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int read_again(struct generation_file *file, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", crew.directory, file->name);
    struct stat now;
    if (stat(path, &now) < 0)
        return error_set_errno(error, "read the crew's certificate %s", path);
    if (file->certificate_pem != NULL && is_the_same(&now, &file->seen))
        return 0;
    SCOPED_BUFFER text = BUFFER_INIT(CREW_CERTIFICATE_FILE_MAX);
    if (buffer_read_file(&text, path, error) < 0 || take_text(file, path, buffer_text(&text), error) < 0)
        return -1;
    file->seen = now;
    return 0;
}

/* Returns the newest certificate whose time has come; if there is none, the one whose time comes first. */
static const struct generation_file *choose(int64_t now_s)
{
    const struct generation_file *best = NULL;
    for (unsigned i = 0; i < 2; i++) {
        const struct generation_file *file = &crew.files[i];
        if (file->certificate_pem == NULL)
            continue;
        bool has_come = file->from_s <= now_s, bests = best && best->from_s <= now_s;
        if (best == NULL || (has_come && !bests) || (has_come == bests && (file->from_s > best->from_s) == has_come))
            best = file;
    }
    return best;
}

static void forget(void)
{
    crew.changes++;
    for (unsigned i = 0; i < 2; i++) {
        free(crew.files[i].certificate_pem);
        free(crew.files[i].key_pem);
        crew.files[i] = (struct generation_file){.name = crew.files[i].name};
    }
    for (unsigned i = 0; i < REMEMBERED; i++) {
        free(crew.believed[i]);
        crew.believed[i] = NULL;
    }
    free(crew.directory);
    crew.directory = NULL;
}

static int open_directory(const char *directory, struct error *error)
{
    crew.directory = memory_copy_string(directory);
    int even = read_again(&crew.files[0], error), odd = read_again(&crew.files[1], even < 0 ? NULL : error);
    if (even == 0 || odd == 0)
        return 0;
    forget();
    return -1;
}

int crew_certificates_open(const char *directory, struct error *error)
{
    SCOPED_LOCK(&crew.lock);
    forget();
    return directory ? open_directory(directory, error) : 0;
}

bool crew_certificates_are_set(void)
{
    SCOPED_LOCK(&crew.lock);
    return crew.directory != NULL;
}

static const struct generation_file *choose_now(void)
{
    for (unsigned i = 0; i < 2; i++)
        (void)read_again(&crew.files[i], NULL); /* between two versions of a file there may be none */
    return choose(clock_now_ms() / 1000);
}

uint64_t crew_identity_number(void)
{
    SCOPED_LOCK(&crew.lock);
    const struct generation_file *chosen = choose_now();
    return 2 * crew.changes + (chosen == &crew.files[1]);
}

void crew_identity_now(struct crew_identity *ret_identity)
{
    SCOPED_BUFFER trusted = BUFFER_INIT(REMEMBERED * CREW_CERTIFICATE_FILE_MAX);
    SCOPED_LOCK(&crew.lock);
    const struct generation_file *chosen = choose_now();
    for (unsigned i = 0; i < REMEMBERED; i++)
        if (crew.believed[i] != NULL)
            buffer_format(&trusted, "%s", crew.believed[i]);
    *ret_identity = (struct crew_identity){memory_copy_string(chosen->certificate_pem),
                                           memory_copy_string(chosen->key_pem), buffer_take(&trusted)};
}

void crew_identity_release(struct crew_identity *identity)
{
    if (identity->key_pem != NULL)
        explicit_bzero(identity->key_pem, strlen(identity->key_pem));
    free(identity->certificate_pem);
    free(identity->key_pem);
    free(identity->trusted_pem);
    *identity = (struct crew_identity){0};
}
