/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificates under which the pods of one job talk in private
 * (spec.coxswain.encryption: TLS). The operator makes them and mounts two files, even.pem
 * and odd.pem, the certificates of two generations that follow each other. Each
 * is one PEM text: a line "from <Unix time>", the certificate, its key. All pods
 * of a job present the same one: the newest whose time has come. They believe
 * both, and those that they have seen before, so that a crew goes on while the
 * operator puts the next generation into the place of the last but one, and while
 * its files reach one pod a minute before the other.
 *
 * Who trusts whom is a matter of the job's own certificates only: no other
 * authority is asked. One set a process; any thread.
 */
#ifndef COXSWAIN_COMM_CREW_CERTIFICATES_H
#define COXSWAIN_COMM_CREW_CERTIFICATES_H

#include <stdbool.h>

#include "common/error.h"

#define CREW_CERTIFICATE_FILE_MAX (64 * 1024)

/* What to present, and all that is believed, as PEM. Release with crew_identity_release. */
struct crew_identity {
    char *certificate_pem, *key_pem, *trusted_pem;
};

/* From now on the crew speaks TLS. ERROR_INVALID, ERROR_NOT_FOUND when `directory` has no file that can be used. NULL: in
 * the clear again, for tests. */
int crew_certificates_open(const char *directory, struct error *error);
bool crew_certificates_are_set(void);

/* Files that have changed are read again; one that is broken or gone leaves what was read before. */
void crew_identity_now(struct crew_identity *ret_identity);
void crew_identity_release(struct crew_identity *identity);

#endif
