/* SPDX-License-Identifier: Apache-2.0
 *
 * UIDs as API servers make them, UUIDs in lower case, in sixteen bytes. Whatever else is called a UID stays a text.
 */
#ifndef COXSWAIN_CONTROLLER_UID_BYTES_H
#define COXSWAIN_CONTROLLER_UID_BYTES_H

#include <stdbool.h>

#define UID_BYTES 16
#define UID_TEXT_MAX 37 /* with its end */

/* False: it is none of those, so that uid_bytes_print would not give the same text. */
bool uid_bytes_parse(const char *text, unsigned char ret_bytes[UID_BYTES]);
void uid_bytes_print(const unsigned char bytes[UID_BYTES], char ret_text[UID_TEXT_MAX]);

#endif
