/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_certificates.h"

#include <string.h>

#include "tests/unit/crew_files.h"

static unsigned count_trusted(const struct crew_identity *identity)
{
    unsigned count = 0;
    for (const char *at = identity->trusted_pem; (at = strstr(at, "BEGIN CERTIFICATE")) != NULL; at++)
        count++;
    return count;
}

/* Whether what is presented now is the certificate of that file. */
static bool presents(const struct crew_files *files, const char *name)
{
    char path[128], text[16384] = "";
    snprintf(path, sizeof path, "%s/%s", files->directory, name);
    FILE *file = fopen(path, "r");
    cr_assert_gt(fread(text, 1, sizeof text - 1, file), 0);
    fclose(file);
    struct crew_identity identity;
    crew_identity_now(&identity);
    bool same = strstr(text, identity.certificate_pem) != NULL && strstr(text, identity.key_pem) != NULL;
    crew_identity_release(&identity);
    return same;
}

Test(crew_certificates, the_newest_whose_time_has_come_is_presented)
{
    struct crew_files files;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -100);
    crew_files_make(&files, CREW_TLS_ODD, 1000);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    cr_assert(crew_certificates_are_set());
    cr_assert(presents(&files, CREW_TLS_EVEN));
    crew_files_make(&files, CREW_TLS_ODD, -50);
    cr_assert(presents(&files, CREW_TLS_ODD), "a changed file is read again");
    crew_files_make(&files, CREW_TLS_EVEN, 2000);
    cr_assert(presents(&files, CREW_TLS_ODD));
    crew_files_make(&files, CREW_TLS_ODD, 3000);
    cr_assert(presents(&files, CREW_TLS_EVEN), "before all of them, the first");
    crew_files_close(&files);
}

/* What is made from an identity, such as a TLS context, is kept as long as the number is the same. */
Test(crew_certificates, another_identity_has_another_number)
{
    struct crew_files files;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -100);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    uint64_t first = crew_identity_number();
    cr_expect_eq(crew_identity_number(), first);
    crew_files_make(&files, CREW_TLS_ODD, 1000);
    uint64_t second = crew_identity_number();
    cr_expect_neq(second, first, "another certificate is trusted");
    crew_files_make(&files, CREW_TLS_ODD, -50);
    uint64_t third = crew_identity_number();
    cr_expect(third != second && third != first, "another one is presented");
    cr_expect_eq(crew_identity_number(), third);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    cr_expect_neq(crew_identity_number(), third);
    crew_files_close(&files);
}

Test(crew_certificates, all_that_were_seen_are_believed)
{
    struct crew_files files;
    struct crew_identity identity;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -100);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0, "one of the two is enough");
    crew_files_make(&files, CREW_TLS_ODD, 100);
    crew_identity_now(&identity);
    cr_assert_eq(count_trusted(&identity), 2);
    crew_identity_release(&identity);
    for (int generation = 0; generation < 6; generation++) {
        crew_files_make(&files, generation % 2 ? CREW_TLS_ODD : CREW_TLS_EVEN, generation);
        crew_identity_now(&identity);
        cr_assert_eq(count_trusted(&identity), generation == 0 ? 3 : 4);
        crew_identity_release(&identity);
    }
    crew_files_close(&files);
}

Test(crew_certificates, a_file_that_is_gone_or_broken_leaves_what_was_there)
{
    struct crew_files files;
    struct crew_identity before, after;
    crew_files_open(&files);
    crew_files_make(&files, CREW_TLS_EVEN, -100);
    cr_assert_eq(crew_certificates_open(files.directory, NULL), 0);
    crew_identity_now(&before);
    crew_files_write(&files, CREW_TLS_EVEN, "from 12\n-----BEGIN CERTIFICATE-----\nno end");
    crew_identity_now(&after);
    cr_assert_str_eq(before.certificate_pem, after.certificate_pem);
    crew_identity_release(&after);
    crew_files_remove(&files, CREW_TLS_EVEN);
    crew_identity_now(&after);
    cr_assert_str_eq(before.certificate_pem, after.certificate_pem);
    crew_identity_release(&after);
    crew_identity_release(&before);
    crew_files_close(&files);
}

Test(crew_certificates, what_is_not_the_operators_is_refused)
{
    struct crew_files files;
    struct error error = ERROR_INIT;
    crew_files_open(&files);
    cr_assert_eq(crew_certificates_open(files.directory, &error), -1);
    cr_assert_eq(error.kind, ERROR_NOT_FOUND);
    crew_files_write(&files, CREW_TLS_ODD, "hello\n");
    crew_files_write(&files, CREW_TLS_EVEN, "from 1\n");
    cr_assert_eq(crew_certificates_open(files.directory, &error), -1);
    cr_assert_not(crew_certificates_are_set());
    crew_files_close(&files);
}
