/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/protobuf_body.h"

#include <string.h>

#include "common/base64.h"
#include "common/memory.h"

/* ---- the wire ---- */

struct span {
    const unsigned char *at, *end;
};

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t integer;
    struct span bytes;
};

static bool read_varint(struct span *in, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        unsigned char byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct span *in, uint64_t length, struct span *ret_bytes)
{
    if (length > (uint64_t)(in->end - in->at))
        return false;
    *ret_bytes = (struct span){in->at, in->at + length};
    in->at += length;
    return true;
}

static bool read_field(struct span *in, struct wire_field *ret_field)
{
    uint64_t key, length;
    if (!read_varint(in, &key))
        return false;
    *ret_field = (struct wire_field){.number = (uint32_t)(key >> 3), .type = (enum wire_type)(key & 7)};
    switch (ret_field->type) {
    case WIRE_VARINT:
        return read_varint(in, &ret_field->integer);
    case WIRE_BYTES:
        return read_varint(in, &length) && take_bytes(in, length, &ret_field->bytes);
    case WIRE_FIXED64:
        return take_bytes(in, 8, &ret_field->bytes);
    case WIRE_FIXED32:
        return take_bytes(in, 4, &ret_field->bytes);
    }
    return false;
}

/* ---- messages ---- */

enum field_kind { TEXT, TEXTS, INTEGER, BOOLEAN, TEXT_MAP, BYTES_MAP, INT_OR_STRING, MESSAGE, MESSAGES };

struct field {
    uint32_t number;
    const char *name;
    enum field_kind kind;
    const struct field *message;
};

static const struct field owner_reference[] = {
    {1, "kind", TEXT, NULL}, {3, "name", TEXT, NULL}, {4, "uid", TEXT, NULL}, {5, "apiVersion", TEXT, NULL}, {0}};
static const struct field metadata[] = {
    {1, "name", TEXT, NULL},
    {2, "generateName", TEXT, NULL},
    {3, "namespace", TEXT, NULL},
    {5, "uid", TEXT, NULL},
    {6, "resourceVersion", TEXT, NULL},
    {11, "labels", TEXT_MAP, NULL},
    {12, "annotations", TEXT_MAP, NULL},
    {13, "ownerReferences", MESSAGES, owner_reference},
    {14, "finalizers", TEXTS, NULL},
    {0},
};
static const struct field only_metadata[] = {{1, "metadata", MESSAGE, metadata}, {0}};
static const struct field config_map[] = {{1, "metadata", MESSAGE, metadata},
                                          {2, "data", TEXT_MAP, NULL},
                                          {3, "binaryData", BYTES_MAP, NULL},
                                          {4, "immutable", BOOLEAN, NULL},
                                          {0}};
static const struct field secret[] = {
    {1, "metadata", MESSAGE, metadata}, {2, "data", BYTES_MAP, NULL},    {3, "type", TEXT, NULL},
    {4, "stringData", TEXT_MAP, NULL},  {5, "immutable", BOOLEAN, NULL}, {0}};
static const struct field service_port[] = {{1, "name", TEXT, NULL},        {2, "protocol", TEXT, NULL},
                                            {3, "port", INTEGER, NULL},     {4, "targetPort", INT_OR_STRING, NULL},
                                            {5, "nodePort", INTEGER, NULL}, {0}};
static const struct field service_spec[] = {{1, "ports", MESSAGES, service_port},
                                            {2, "selector", TEXT_MAP, NULL},
                                            {3, "clusterIP", TEXT, NULL},
                                            {4, "type", TEXT, NULL},
                                            {7, "sessionAffinity", TEXT, NULL},
                                            {10, "externalName", TEXT, NULL},
                                            {13, "publishNotReadyAddresses", BOOLEAN, NULL},
                                            {0}};
static const struct field service[] = {{1, "metadata", MESSAGE, metadata}, {2, "spec", MESSAGE, service_spec}, {0}};
static const struct field type_meta[] = {{1, "apiVersion", TEXT, NULL}, {2, "kind", TEXT, NULL}, {0}};

static const struct {
    const char *kind;
    const struct field *fields;
} kinds[] = {
    {"Namespace", only_metadata},
    {"ServiceAccount", only_metadata},
    {"ConfigMap", config_map},
    {"Secret", secret},
    {"Service", service},
    {"Eviction", only_metadata},
    {"SelfSubjectReview", only_metadata},
    {"SelfSubjectAccessReview", only_metadata},
};

static int malformed(struct error *error)
{
    return error_set(error, ERROR_INVALID, "the protobuf body is malformed");
}

static int decode(struct span in, const struct field *fields, struct json *object, struct error *error);

static char *text_of(struct span bytes)
{
    return memory_copy_bytes((const char *)bytes.at, (size_t)(bytes.end - bytes.at));
}

/* A map's entry is a message of key (1) and value (2). */
static int add_entry(struct json *map, struct span in, bool encode, struct error *error)
{
    SCOPED_FREE char *key = NULL;
    SCOPED_FREE char *value = NULL;
    struct wire_field field;
    while (in.at < in.end) {
        if (!read_field(&in, &field) || field.type != WIRE_BYTES)
            return malformed(error);
        char **into = field.number == 1 ? &key : &value;
        free(*into);
        bool encoded = encode && field.number == 2;
        *into =
            encoded ? base64_encode(field.bytes.at, (size_t)(field.bytes.end - field.bytes.at)) : text_of(field.bytes);
    }
    json_set_string(map, key ? key : "", value ? value : "");
    return 0;
}

/* intstr.IntOrString: type (0 integer, 1 string), integer, string. */
static int add_int_or_string(struct json *object, const char *name, struct span in, struct error *error)
{
    struct wire_field field;
    uint64_t is_string = 0, integer = 0;
    SCOPED_FREE char *text = NULL;
    while (in.at < in.end) {
        if (!read_field(&in, &field))
            return malformed(error);
        if (field.number == 3 && field.type == WIRE_BYTES) {
            free(text);
            text = text_of(field.bytes);
        } else if (field.number == 1) {
            is_string = field.integer;
        } else if (field.number == 2) {
            integer = field.integer;
        }
    }
    if (is_string)
        json_set_string(object, name, text ? text : "");
    else if (integer)
        json_set_integer(object, name, (int32_t)integer);
    return 0;
}

static int add_message(struct json *object, const struct field *field, struct span in, struct error *error)
{
    SCOPED_JSON *below = json_new_object();
    if (decode(in, field->message, below, error) < 0)
        return -1;
    if (field->kind == MESSAGE && json_count(below) == 0)
        return 0;
    struct json *taken = below;
    below = NULL;
    if (field->kind == MESSAGE)
        json_set(object, field->name, taken);
    else
        json_append(json_set_array(object, field->name), taken);
    return 0;
}

static int add_bytes(struct json *object, const struct field *field, struct span bytes, struct error *error)
{
    SCOPED_FREE char *text = text_of(bytes);
    switch (field->kind) {
    case TEXT:
        if (text[0])
            json_set_string(object, field->name, text);
        return 0;
    case TEXTS:
        json_append_string(json_set_array(object, field->name), text);
        return 0;
    case TEXT_MAP:
    case BYTES_MAP:
        return add_entry(json_set_object(object, field->name), bytes, field->kind == BYTES_MAP, error);
    case INT_OR_STRING:
        return add_int_or_string(object, field->name, bytes, error);
    case MESSAGE:
    case MESSAGES:
        return add_message(object, field, bytes, error);
    default:
        return malformed(error);
    }
}

static void add_integer(struct json *object, const struct field *field, uint64_t integer)
{
    if (field->kind == INTEGER && integer)
        json_set_integer(object, field->name, (int64_t)integer);
    if (field->kind == BOOLEAN && integer)
        json_set(object, field->name, json_new_boolean(true));
}

static int decode(struct span in, const struct field *fields, struct json *object, struct error *error)
{
    struct wire_field wire;
    while (in.at < in.end) {
        if (!read_field(&in, &wire))
            return malformed(error);
        const struct field *field = fields;
        while (field->number && field->number != wire.number)
            field++;
        if (field->number == 0)
            continue;
        if (wire.type == WIRE_VARINT)
            add_integer(object, field, wire.integer);
        else if (wire.type == WIRE_BYTES && add_bytes(object, field, wire.bytes, error) < 0)
            return -1;
    }
    return 0;
}

/* ---- the envelope ---- */

static int read_envelope(struct span in, struct json *object, struct span *ret_raw, struct error *error)
{
    struct wire_field field;
    while (in.at < in.end) {
        if (!read_field(&in, &field))
            return malformed(error);
        if (field.number == 1 && field.type == WIRE_BYTES && decode(field.bytes, type_meta, object, error) < 0)
            return -1;
        if (field.number == 2 && field.type == WIRE_BYTES)
            *ret_raw = field.bytes;
    }
    return 0;
}

int protobuf_body_parse(const void *bytes, size_t length, struct json **ret_object, struct error *error)
{
    static const char magic[] = {'k', '8', 's', '\0'};
    if (length < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return malformed(error);
    struct span in = {(const unsigned char *)bytes + sizeof magic, (const unsigned char *)bytes + length}, raw = {0};
    SCOPED_JSON *object = json_new_object();
    if (read_envelope(in, object, &raw, error) < 0)
        return -1;
    const char *kind = json_string_at(object, "kind", "");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        if (decode(raw, kinds[i].fields, object, error) < 0)
            return -1;
        *ret_object = object;
        object = NULL;
        return 0;
    }
    return error_set(error, ERROR_UNSUPPORTED, "objects of kind %s are not accepted as protobuf; send JSON", kind);
}
