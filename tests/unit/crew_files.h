/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory with a crew's certificates, as the operator mounts it.
 */
#ifndef COXSWAIN_TESTS_CREW_FILES_H
#define COXSWAIN_TESTS_CREW_FILES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/certificate.h"
#include "common/clock.h"
#include "common/contract/environment.h"
#include "worker/comm/crew_certificates.h"
#include "worker/comm/tls_session.h"

struct crew_files {
    char directory[64];
};

static inline void crew_files_open(struct crew_files *files)
{
    snprintf(files->directory, sizeof files->directory, "/tmp/coxswain-tls-XXXXXX");
    cr_assert_not_null(mkdtemp(files->directory));
}

static inline void crew_files_write(const struct crew_files *files, const char *name, const char *text)
{
    char path[128], fresh[128];
    snprintf(path, sizeof path, "%s/%s", files->directory, name);
    snprintf(fresh, sizeof fresh, "%s/new", files->directory);
    FILE *file = fopen(fresh, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
    cr_assert_eq(rename(fresh, path), 0);
}

/* A new certificate, to be presented from `from_s` seconds after now. All have one subject, as those of one job do. */
static inline void crew_files_make(const struct crew_files *files, const char *name, int64_t from_s)
{
    int64_t now_s = clock_now_ms() / 1000;
    const struct certificate_request request = {.common_name = "3fcd97cd-f136-4ea8-a0de-2320a808e023",
                                                .names = "DNS:" CREW_TLS_NAME,
                                                .from_s = now_s - 3600,
                                                .until_s = now_s + 3600};
    struct certificate made;
    char text[16384];
    cr_assert_eq(certificate_make(&request, NULL, &made, NULL), 0);
    snprintf(text, sizeof text, "from %lld\n%s%s", (long long)(now_s + from_s), made.certificate_pem, made.key_pem);
    certificate_release(&made);
    crew_files_write(files, name, text);
}

static inline void crew_files_remove(const struct crew_files *files, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", files->directory, name);
    unlink(path);
}

static inline void crew_files_close(struct crew_files *files)
{
    crew_certificates_open(NULL, NULL);
    crew_files_remove(files, CREW_TLS_EVEN);
    crew_files_remove(files, CREW_TLS_ODD);
    rmdir(files->directory);
}

#endif
