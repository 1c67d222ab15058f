/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_lexical.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/hexadecimal.h"
#include "common/json.h"
#include "common/utf8.h"

struct scanner {
    const char *text;
    size_t length;
    size_t offset;
    unsigned depth;
};

void json_lexical_describe(const char *text, size_t length, size_t offset, char description[JSON_BYTE_TEXT_MAX])
{
    if (offset >= length)
        snprintf(description, JSON_BYTE_TEXT_MAX, "the end");
    else if (text[offset] > ' ' && text[offset] < 0x7f)
        snprintf(description, JSON_BYTE_TEXT_MAX, "'%c'", text[offset]);
    else
        snprintf(description, JSON_BYTE_TEXT_MAX, "byte 0x%02x", (unsigned char)text[offset]);
}

static int refuse(const struct scanner *scanner, const char *expected, struct error *error)
{
    char found[JSON_BYTE_TEXT_MAX];
    json_lexical_describe(scanner->text, scanner->length, scanner->offset, found);
    return error_set(error, ERROR_INVALID, "not JSON: %s at offset %zu, where %s was expected", found, scanner->offset,
                     expected);
}

static int peek(const struct scanner *scanner)
{
    return scanner->offset < scanner->length ? (unsigned char)scanner->text[scanner->offset] : -1;
}

static bool accept(struct scanner *scanner, int byte)
{
    if (peek(scanner) != byte)
        return false;
    scanner->offset++;
    return true;
}

static bool is_digit(int byte)
{
    return byte >= '0' && byte <= '9';
}

static int scan_digits(struct scanner *scanner, struct error *error)
{
    if (!is_digit(peek(scanner)))
        return refuse(scanner, "a digit", error);
    while (is_digit(peek(scanner)))
        scanner->offset++;
    return 0;
}

static int scan_number(struct scanner *scanner, struct error *error)
{
    accept(scanner, '-');
    bool leading_zero = peek(scanner) == '0';
    size_t start = scanner->offset;
    if (scan_digits(scanner, error) < 0)
        return -1;
    if (leading_zero && scanner->offset > start + 1) {
        scanner->offset = start + 1;
        return refuse(scanner, "a number without leading zeros", error);
    }
    if (accept(scanner, '.') && scan_digits(scanner, error) < 0)
        return -1;
    if (!accept(scanner, 'e') && !accept(scanner, 'E'))
        return 0;
    if (!accept(scanner, '+'))
        accept(scanner, '-');
    return scan_digits(scanner, error);
}

static int scan_unicode_escape(struct scanner *scanner, struct error *error)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++, scanner->offset++) {
        int digit = hexadecimal_digit(peek(scanner));
        if (digit < 0)
            return refuse(scanner, "a hexadecimal digit", error);
        code = code << 4 | (unsigned)digit;
    }
    if (code == 0)
        return error_set(error, ERROR_INVALID, "the string has \\u0000 before offset %zu; strings must not contain NUL",
                         scanner->offset);
    return 0;
}

static int scan_escape(struct scanner *scanner, struct error *error)
{
    if (accept(scanner, 'u'))
        return scan_unicode_escape(scanner, error);
    int byte = peek(scanner);
    if (byte <= 0 || strchr("\"\\/bfnrt", byte) == NULL)
        return refuse(scanner, "an escape character", error);
    scanner->offset++;
    return 0;
}

static int scan_string(struct scanner *scanner, struct error *error)
{
    scanner->offset++;
    while (!accept(scanner, '"')) {
        if (peek(scanner) < ' ')
            return refuse(scanner, "the rest of a string", error);
        if (accept(scanner, '\\')) {
            if (scan_escape(scanner, error) < 0)
                return -1;
            continue;
        }
        size_t size = utf8_sequence(scanner->text + scanner->offset, scanner->length - scanner->offset);
        if (size == 0)
            return refuse(scanner, "UTF-8", error);
        scanner->offset += size;
    }
    return 0;
}

static int scan_word(struct scanner *scanner, struct error *error)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if (scanner->length - scanner->offset >= size && memcmp(scanner->text + scanner->offset, words[i], size) == 0) {
            scanner->offset += size;
            return 0;
        }
    }
    return refuse(scanner, "a value", error);
}

static int scan_punctuation(struct scanner *scanner, struct error *error)
{
    int byte = peek(scanner);
    if ((byte == '{' || byte == '[') && ++scanner->depth > JSON_DEPTH_MAX)
        return error_set(error, ERROR_INVALID, "JSON nested deeper than %d at offset %zu", JSON_DEPTH_MAX,
                         scanner->offset);
    if ((byte == '}' || byte == ']') && scanner->depth > 0)
        scanner->depth--;
    scanner->offset++;
    return 0;
}

static int scan_token(struct scanner *scanner, struct error *error)
{
    int byte = peek(scanner);
    if (byte == '"')
        return scan_string(scanner, error);
    if (byte == '-' || is_digit(byte))
        return scan_number(scanner, error);
    if (byte > 0 && strchr("{}[],: \t\r\n", byte))
        return scan_punctuation(scanner, error);
    return scan_word(scanner, error);
}

int json_lexical_check(const char *text, size_t length, struct error *error)
{
    struct scanner scanner = {.text = text, .length = length};
    while (scanner.offset < length)
        if (scan_token(&scanner, error) < 0)
            return -1;
    return 0;
}
