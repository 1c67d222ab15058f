/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores a UID in sixteen bytes; pod_record.h saves memory with it. API servers use UUIDs in lower
 * case; other UIDs are refused here and must be stored as strings.
 */
#ifndef COXSWAIN_CONTROLLER_UID_BYTES_H
#define COXSWAIN_CONTROLLER_UID_BYTES_H

#include <stdbool.h>

#define UID_BYTES 16
#define UID_TEXT_MAX 37 /* includes the NUL */

/* Parses a UID. Returns false if it is not a UUID in lower case, so that uid_bytes_print would not
 * return the same text. */
bool uid_bytes_parse(const char *text, unsigned char ret_bytes[UID_BYTES]);
void uid_bytes_print(const unsigned char bytes[UID_BYTES], char ret_text[UID_TEXT_MAX]);

#endif
