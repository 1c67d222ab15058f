/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the XML answers of S3 servers: pages of ListObjectsV2, error documents, the id of a multipart upload and temporary credentials.
 * Uses expat. Refuses an answer that is longer than S3_ANSWER_MAX, has more than four nested elements, or has a document type.
 */
#ifndef COXSWAIN_COMMON_S3_ANSWER_H
#define COXSWAIN_COMMON_S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define S3_ANSWER_MAX ((size_t)8 * 1024 * 1024)
#define S3_KEY_MAX 1024 /* bytes of an object's key, as S3 limits it */
#define S3_ETAG_MAX 128

struct s3_object {
    char *key;
    int64_t size;
    char etag[S3_ETAG_MAX]; /* with its quotes, as If-Match wants it; "" if the server gave none */
};

/* Objects in the order of their keys. Begin with {0}. */
struct s3_list {
    struct s3_object *objects;
    size_t count;
    char *next_page; /* token of the next page; NULL after the last one */
};
void s3_list_release(struct s3_list *list);

/* Appends the objects of one page to the list and sets list->next_page. The request must have had encoding-type=url; if the answer has no
 * EncodingType, because the server does not know that parameter, the keys are not decoded. ERROR_CORRUPT if the answer is not a page of
 * ListObjectsV2; ERROR_TOO_LARGE if the list would have more than `most` objects. */
int s3_list_parse(const char *xml, size_t length, size_t most, struct s3_list *list, struct error *error);

/* An error document. `code` is "" if the answer is not one. */
struct s3_failure {
    char code[64];
    char message[256];
};
void s3_failure_parse(const char *xml, size_t length, struct s3_failure *ret_failure);

/* Returns the id of a new multipart upload; release with free(). ERROR_CORRUPT if the answer has none. */
int s3_upload_id_parse(const char *xml, size_t length, char **ret_id, struct error *error);

/* Temporary credentials. Begin with {0}. */
struct s3_credentials {
    char *key, *secret, *token;
    int64_t expires_ms; /* since 1970 */
};
void s3_credentials_release(struct s3_credentials *credentials);

/* Parses the answer to AssumeRoleWithWebIdentity. ERROR_CORRUPT if one of the four members is missing. */
int s3_credentials_parse(const char *xml, size_t length, struct s3_credentials *ret_credentials, struct error *error);

#endif
