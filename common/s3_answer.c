/* SPDX-License-Identifier: Apache-2.0 */
#include "common/s3_answer.h"

#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/hexadecimal.h"
#include "common/memory.h"

#define DEPTH_MAX 4
#define NAME_MAX_BYTES 64
#define TEXT_MAX 8192 /* of one element; a percent-encoded key needs 3072 */

struct reader;
/* Called at the end of each element, with the text of the element and the name of its parent. */
typedef void on_element(struct reader *reader, const char *parent, const char *name, const char *text);

struct reader {
    XML_Parser parser;
    on_element *on_element;
    char names[DEPTH_MAX][NAME_MAX_BYTES];
    unsigned depth;
    struct buffer text;
    const char *refusal; /* why parsing was stopped; NULL: it was not */
    /* the results */
    struct s3_list *list;
    struct s3_object object;
    bool truncated, too_many, encoded; /* encoded: the server has percent-encoded the keys */
    size_t most;
    struct s3_failure *failure;
    char *upload_id;
    struct s3_credentials credentials;
};

static void refuse(struct reader *reader, const char *why)
{
    reader->refusal = why;
    XML_StopParser(reader->parser, XML_FALSE);
}

static void begin_element(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *reader = context;
    (void)attributes;
    size_t length = strlen(name);
    if (reader->refusal)
        return;
    if (reader->depth == DEPTH_MAX || length >= NAME_MAX_BYTES) {
        refuse(reader, "it is nested too deeply, or the name of an element is too long");
        return;
    }
    memcpy(reader->names[reader->depth++], name, length + 1);
    buffer_clear(&reader->text);
}

static void end_element(void *context, const XML_Char *name)
{
    struct reader *reader = context;
    if (reader->refusal) /* expat still reports the end of an empty element, which begin_element may have refused */
        return;
    reader->depth--;
    const char *parent = reader->depth > 0 ? reader->names[reader->depth - 1] : "";
    reader->on_element(reader, parent, name, buffer_text(&reader->text));
    buffer_clear(&reader->text);
}

static void append_text(void *context, const XML_Char *bytes, int length)
{
    struct reader *reader = context;
    if (buffer_append(&reader->text, bytes, (size_t)length, NULL) < 0)
        refuse(reader, "the text of an element is too long");
}

static void refuse_document_type(void *context, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                                 int internal)
{
    (void)name, (void)system, (void)public, (void)internal;
    refuse(context, "it has a document type");
}

static int read_xml(struct reader *reader, const char *xml, size_t length, struct error *error)
{
    if (length > S3_ANSWER_MAX)
        return error_set(error, ERROR_TOO_LARGE, "the storage server's answer is longer than %zu bytes", S3_ANSWER_MAX);
    while (length > 0 && isspace((unsigned char)*xml)) /* sent while the server works, and not allowed before "<?xml" */
        xml++, length--;
    reader->parser = XML_ParserCreate(NULL);
    if (!reader->parser)
        return error_set(error, ERROR_NO_SPACE, "no memory for an XML parser");
    buffer_init(&reader->text, TEXT_MAX);
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(reader->parser, append_text);
    XML_SetStartDoctypeDeclHandler(reader->parser, refuse_document_type);
    bool good = XML_Parse(reader->parser, xml, (int)length, 1) == XML_STATUS_OK;
    const char *why = reader->refusal ? reader->refusal : XML_ErrorString(XML_GetErrorCode(reader->parser));
    if (!good)
        error_set(error, ERROR_CORRUPT, "the storage server's answer is not the XML of S3: %s", why ? why : "");
    XML_ParserFree(reader->parser);
    buffer_release(&reader->text);
    return good ? 0 : -1;
}

/* Decodes "a%2Fb+c" to "a/b c" in place. Returns -1 if the result cannot be a key: it is too long or empty, or has a NUL. */
static int decode_key(char *text)
{
    char *end = text;
    for (const char *from = text; *from; from++) {
        int high = *from == '%' ? hexadecimal_digit(from[1]) : -1, low = high >= 0 ? hexadecimal_digit(from[2]) : -1;
        if (*from == '%' && (low < 0 || high * 16 + low == 0))
            return -1;
        *end++ = (char)(low >= 0 ? high * 16 + low : *from == '+' ? ' ' : *from);
        from += low >= 0 ? 2 : 0;
    }
    *end = '\0';
    return 0;
}

/* Decodes the keys of a page if the server has encoded them, which it says in an element that may stand behind them. */
static int decode_keys(struct reader *reader, size_t before, struct error *error)
{
    for (size_t i = before; i < reader->list->count; i++) {
        char *key = reader->list->objects[i].key;
        if ((reader->encoded && decode_key(key) < 0) || *key == '\0' || strlen(key) > S3_KEY_MAX)
            return error_set(error, ERROR_CORRUPT, "the storage server lists an object whose key is not valid");
    }
    return 0;
}

static void end_object(struct reader *reader)
{
    struct s3_list *list = reader->list;
    if (!reader->object.key || reader->object.size < 0) {
        refuse(reader, "an object has no valid key or size");
        return;
    }
    if (list->count == reader->most) {
        reader->too_many = true;
        refuse(reader, "it has too many objects");
        return;
    }
    if ((list->count & (list->count - 1)) == 0)
        list->objects = memory_resize(list->objects, list->count ? 2 * list->count : 1, sizeof *list->objects);
    list->objects[list->count++] = reader->object;
    reader->object = (struct s3_object){.size = -1};
}

static void on_list_element(struct reader *reader, const char *parent, const char *name, const char *text)
{
    if (strcmp(parent, "Contents") == 0 && strcmp(name, "Key") == 0) {
        free(reader->object.key);
        reader->object.key = memory_copy_string(text);
    } else if (strcmp(parent, "Contents") == 0 && strcmp(name, "Size") == 0) {
        char *end;
        errno = 0;
        long long size = strtoll(text, &end, 10);
        reader->object.size = errno == 0 && end != text && *end == '\0' ? size : -1;
    } else if (strcmp(parent, "Contents") == 0 && strcmp(name, "ETag") == 0) {
        if (strlen(text) < S3_ETAG_MAX)
            memcpy(reader->object.etag, text, strlen(text) + 1);
    } else if (reader->depth == 1 && strcmp(name, "Contents") == 0) {
        end_object(reader);
    } else if (reader->depth == 1 && strcmp(name, "IsTruncated") == 0) {
        reader->truncated = strcmp(text, "true") == 0;
    } else if (reader->depth == 1 && strcmp(name, "EncodingType") == 0) {
        reader->encoded = strcmp(text, "url") == 0;
    } else if (reader->depth == 1 && strcmp(name, "NextContinuationToken") == 0) {
        free(reader->list->next_page);
        reader->list->next_page = memory_copy_string(text);
    } else if (reader->depth == 0 && strcmp(name, "ListBucketResult") != 0) {
        refuse(reader, "it is not a list of objects");
    }
}

int s3_list_parse(const char *xml, size_t length, size_t most, struct s3_list *list, struct error *error)
{
    struct reader reader = {.on_element = on_list_element, .list = list, .object = {.size = -1}, .most = most};
    size_t before = list->count;
    free(list->next_page);
    list->next_page = NULL;
    int result = read_xml(&reader, xml, length, error);
    free(reader.object.key);
    if (decode_keys(&reader, before, result == 0 ? error : NULL) < 0) {
        while (list->count > before)
            free(list->objects[--list->count].key);
        result = -1;
    }
    if (result < 0 && reader.too_many)
        return error_set(error, ERROR_TOO_LARGE, "there are more than %zu objects; use a longer prefix", most);
    if (!reader.truncated) { /* some servers give an empty token after the last page */
        free(list->next_page);
        list->next_page = NULL;
    }
    if (result == 0 && reader.truncated && (!list->next_page || *list->next_page == '\0'))
        return error_set(error, ERROR_CORRUPT,
                         "the storage server's answer is incomplete and has no token for the next page");
    return result;
}

void s3_list_release(struct s3_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->objects[i].key);
    free(list->objects);
    free(list->next_page);
    *list = (struct s3_list){0};
}

static void copy_text(char *target, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(target, text, length);
    target[length] = '\0';
    for (char *c = target; *c; c++)
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
}

static void on_failure_element(struct reader *reader, const char *parent, const char *name, const char *text)
{
    if (strcmp(parent, "Error") != 0)
        return;
    if (strcmp(name, "Code") == 0)
        copy_text(reader->failure->code, sizeof reader->failure->code, text);
    if (strcmp(name, "Message") == 0)
        copy_text(reader->failure->message, sizeof reader->failure->message, text);
}

void s3_failure_parse(const char *xml, size_t length, struct s3_failure *ret_failure)
{
    *ret_failure = (struct s3_failure){0};
    struct reader reader = {.on_element = on_failure_element, .failure = ret_failure};
    read_xml(&reader, xml, length, NULL);
}

static void on_upload_element(struct reader *reader, const char *parent, const char *name, const char *text)
{
    if (strcmp(parent, "InitiateMultipartUploadResult") != 0 || strcmp(name, "UploadId") != 0 || *text == '\0')
        return;
    free(reader->upload_id);
    reader->upload_id = memory_copy_string(text);
}

int s3_upload_id_parse(const char *xml, size_t length, char **ret_id, struct error *error)
{
    struct reader reader = {.on_element = on_upload_element};
    if (read_xml(&reader, xml, length, error) < 0) {
        free(reader.upload_id);
        return -1;
    }
    if (!reader.upload_id)
        return error_set(error, ERROR_CORRUPT, "the storage server's answer has no UploadId");
    *ret_id = reader.upload_id;
    return 0;
}

static void replace_text(char **target, const char *text)
{
    free(*target);
    *target = *text ? memory_copy_string(text) : NULL;
}

static void on_credentials_element(struct reader *reader, const char *parent, const char *name, const char *text)
{
    struct s3_credentials *credentials = &reader->credentials;
    if (strcmp(parent, "Credentials") != 0)
        return;
    if (strcmp(name, "AccessKeyId") == 0)
        replace_text(&credentials->key, text);
    else if (strcmp(name, "SecretAccessKey") == 0)
        replace_text(&credentials->secret, text);
    else if (strcmp(name, "SessionToken") == 0)
        replace_text(&credentials->token, text);
    else if (strcmp(name, "Expiration") == 0 && !clock_parse(text, &credentials->expires_ms))
        refuse(reader, "the expiry time of the credentials is not a valid time");
}

int s3_credentials_parse(const char *xml, size_t length, struct s3_credentials *ret_credentials, struct error *error)
{
    struct reader reader = {.on_element = on_credentials_element};
    struct s3_credentials *read = &reader.credentials;
    int result = read_xml(&reader, xml, length, error);
    if (result == 0 && (!read->key || !read->secret || !read->token || read->expires_ms == 0))
        result = error_set(error, ERROR_CORRUPT, "the answer has no complete credentials");
    if (result < 0)
        s3_credentials_release(read);
    else
        *ret_credentials = *read;
    return result;
}

void s3_credentials_release(struct s3_credentials *credentials)
{
    free(credentials->key);
    free(credentials->secret);
    free(credentials->token);
    *credentials = (struct s3_credentials){0};
}
