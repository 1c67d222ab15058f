/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/npy.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "common/scope.h"

#define HEADER_START 10 /* bytes before the dictionary, in version 1 */

/* The dictionary, read once from left to right. */
struct cursor {
    const char *at, *end;
};

static void skip_spaces(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\n'))
        cursor->at++;
}

static bool take(struct cursor *cursor, const char *text)
{
    skip_spaces(cursor);
    size_t length = strlen(text);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, text, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* '<f4': order, kind and size of an element. */
static bool take_description(struct cursor *cursor, struct npy *npy)
{
    bool little = take(cursor, "'<") || take(cursor, "'|");
    if (!little || cursor->end - cursor->at < 3 || !strchr("uifb", cursor->at[0]) || cursor->at[2] != '\'')
        return false;
    npy->kind = cursor->at[0];
    npy->item_bytes = (unsigned)(cursor->at[1] - '0');
    cursor->at += 3;
    return npy->item_bytes == 1 || npy->item_bytes == 2 || npy->item_bytes == 4 || npy->item_bytes == 8;
}

static bool take_extent(struct cursor *cursor, int64_t *ret_extent)
{
    int64_t extent = 0;
    skip_spaces(cursor);
    const char *start = cursor->at;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
        if (__builtin_mul_overflow(extent, 10, &extent) || __builtin_add_overflow(extent, *cursor->at - '0', &extent))
            return false;
    *ret_extent = extent;
    return cursor->at > start;
}

static bool take_shape(struct cursor *cursor, struct npy *npy)
{
    if (!take(cursor, "("))
        return false;
    while (!take(cursor, ")")) {
        if (npy->rank == NPY_RANK_MAX || !take_extent(cursor, &npy->shape[npy->rank++]))
            return false;
        if (!take(cursor, ",") && !take(cursor, ")"))
            return false;
        if (cursor->at[-1] == ')')
            return true;
    }
    return true;
}

/* One entry, of which each of the three is wanted once. */
static bool take_entry(struct cursor *cursor, struct npy *npy, unsigned *seen)
{
    if (take(cursor, "'descr':")) {
        *seen += 1;
        return take_description(cursor, npy);
    }
    if (take(cursor, "'fortran_order':")) {
        *seen += 16;
        return take(cursor, "False");
    }
    *seen += 256;
    return take(cursor, "'shape':") && take_shape(cursor, npy);
}

static bool parse_dictionary(struct cursor *cursor, struct npy *npy)
{
    unsigned seen = 0;
    if (!take(cursor, "{"))
        return false;
    while (!take(cursor, "}"))
        if (seen >= 3 * 256 || !take_entry(cursor, npy, &seen) || (!take(cursor, ",") && *cursor->at != '}'))
            return false;
    skip_spaces(cursor);
    return seen == 1 + 16 + 256 && cursor->at == cursor->end;
}

static int find_header(const uint8_t *bytes, size_t length, size_t *ret_start, size_t *ret_bytes, struct error *error)
{
    if (length < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3)
        return error_set(error, ERROR_INVALID, "it is not a NumPy array file (.npy)");
    *ret_start = bytes[6] == 1 ? HEADER_START : 12;
    *ret_bytes = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1 && length >= 12)
        *ret_bytes |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length < *ret_start || *ret_bytes > NPY_HEADER_MAX || *ret_bytes > length - *ret_start || *ret_bytes == 0)
        return error_set(error, ERROR_CORRUPT,
                         "its header of %zu bytes is empty, cut off or longer than the limit of %d", *ret_bytes,
                         NPY_HEADER_MAX);
    return 0;
}

static int measure(struct npy *npy, size_t left, struct error *error)
{
    int64_t bytes = npy->item_bytes;
    for (unsigned i = 0; i < npy->rank; i++)
        if (__builtin_mul_overflow(bytes, npy->shape[i], &bytes))
            return error_set(error, ERROR_INVALID, "its shape is too large: it would have more than 2^63 - 1 bytes");
    if ((uint64_t)bytes != left)
        return error_set(error, ERROR_CORRUPT, "its shape asks for %lld bytes, but %zu follow the header",
                         (long long)bytes, left);
    npy->elements = bytes / npy->item_bytes;
    return 0;
}

#define SAVE_CLASSES                                                                                                   \
    "it holds texts; save numbers, which numpy.unique(labels, return_inverse=True)[1] makes of the names of classes"

/* Arrays that NumPy can save and that cannot be read here: what numpy.save writes into their header, and what to save instead. */
static const struct {
    const char *words, *message;
} refusals[] = {
    {"'descr': '<U", SAVE_CLASSES},
    {"'descr': '|S", SAVE_CLASSES},
    {"'descr': '|O'", "it holds Python objects; save an array of one number type, such as array.astype('float32')"},
    {"'descr': '>", "its numbers are big-endian; save them as little-endian: "
                    "array.astype(array.dtype.newbyteorder('<'))"},
    {"'fortran_order': True", "it is in Fortran order; save numpy.ascontiguousarray(array), which is in C order"},
};

static int refuse_header(const char *header, size_t length, struct error *error)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (memmem(header, length, refusals[i].words, strlen(refusals[i].words)))
            return error_set(error, ERROR_INVALID, "%s", refusals[i].message);
    return error_set(error, ERROR_INVALID,
                     "its header is not {'descr': …, 'fortran_order': False, 'shape': (…)} of little-endian numbers; "
                     "write it with numpy.save(path, numpy.ascontiguousarray(array))");
}

int npy_parse(const uint8_t *bytes, size_t length, struct npy *ret_npy, struct error *error)
{
    size_t start, header;
    struct npy npy = {0};
    if (find_header(bytes, length, &start, &header, error) < 0)
        return -1;
    const char *text = (const char *)bytes + start;
    /* The last byte is a newline, so that looking at the byte behind a token stays inside. */
    struct cursor cursor = {text, text + header - 1};
    if (text[header - 1] != '\n' || !parse_dictionary(&cursor, &npy))
        return refuse_header(text, header, error);
    if (measure(&npy, length - start - header, error) < 0)
        return -1;
    npy.data = bytes + start + header;
    *ret_npy = npy;
    return 0;
}

int npy_append_header(struct buffer *file, const struct npy *npy, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(512);
    buffer_format(&text, "{'descr': '<%c%u', 'fortran_order': False, 'shape': (", npy->kind, npy->item_bytes);
    for (unsigned i = 0; i < npy->rank; i++)
        buffer_format(&text, i > 0 ? " %lld," : "%lld,", (long long)npy->shape[i]);
    buffer_format(&text, "), }");
    while ((HEADER_START + text.length + 1) % 64 != 0)
        buffer_append_byte(&text, ' ', NULL);
    buffer_append_byte(&text, '\n', NULL);
    const char start[HEADER_START] = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)text.length, (char)(text.length >> 8)};
    return buffer_append(file, start, sizeof start, error) < 0 ? -1
                                                               : buffer_append(file, text.data, text.length, error);
}

bool npy_has_numbers(const struct npy *npy)
{
    return npy->kind != 'f' || npy->item_bytes == sizeof(float) || npy->item_bytes == sizeof(double);
}

static float float_at(const struct npy *npy, int64_t index)
{
    double value;
    if (npy->kind != 'f')
        return (float)npy_integer_at(npy, index);
    memcpy(&value, npy->data + index * (int64_t)sizeof value, sizeof value);
    return (float)value;
}

void npy_floats(const struct npy *npy, int64_t first, int64_t count, float *ret_values)
{
    if (npy->kind == 'f' && npy->item_bytes == sizeof *ret_values)
        memcpy(ret_values, npy->data + first * (int64_t)sizeof *ret_values, (size_t)count * sizeof *ret_values);
    else
        for (int64_t i = 0; i < count; i++)
            ret_values[i] = float_at(npy, first + i);
}

int64_t npy_integer_at(const struct npy *npy, int64_t index)
{
    const uint8_t *at = npy->data + index * npy->item_bytes;
    uint64_t value = 0;
    memcpy(&value, at, npy->item_bytes);
    value = le64toh(value);
    unsigned unused = 64 - 8 * npy->item_bytes;
    return npy->kind == 'i' ? (int64_t)(value << unused) >> unused : (int64_t)value;
}
