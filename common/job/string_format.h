/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the formats that strings of a TrainingJob may have, such as names, paths and decimals, and checks strings against them. Each format
 * is one regular expression that POSIX and RE2 interpret alike, so that the CRD (RE2, in the API server) and the C code (POSIX) accept the
 * same strings.
 */
#ifndef COXSWAIN_JOB_STRING_FORMAT_H
#define COXSWAIN_JOB_STRING_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* name, expression, what it is in words, with an example */
#define PATH_PART "([^./][^/]*|[.][^./][^/]*|[.][.][^/]+)"
#define PATH_EXPRESSION "/?" PATH_PART "(/" PATH_PART ")*"
#define STRING_FORMATS(X)                                                                                              \
    X(ANY, "", "any text")                                                                                             \
    X(NAME, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a name of lower-case letters, digits and '-', such as runs-2")         \
    X(JOB_NAME, "^[a-z]([-a-z0-9]*[a-z0-9])?$",                                                                        \
      "a name of lower-case letters, digits and '-' that begins with a letter, such as digits")                        \
    X(DOTTED_NAME, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",                               \
      "names joined by dots, such as example.com")                                                                     \
    X(QUALIFIED_NAME, "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",                  \
      "a qualified name, such as nvidia.com/gpu")                                                                      \
    X(WORD, "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",                                                              \
      "a word of letters, digits, '-', '_' and '.', such as conv1")                                                    \
    X(CONDITION_TYPE,                                                                                                  \
      "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"                                          \
      "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",                                                                     \
      "a type of condition, such as Running or example.com/Billed")                                                    \
    X(REASON, "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "one word, such as CrewComplete")                            \
    X(PATH, "^" PATH_EXPRESSION "$", "a path without empty, '.' and '..' parts, such as mnist/train.gz")               \
    X(ABSOLUTE_PATH, "^/" PATH_PART "(/" PATH_PART ")*$", "a path that begins with /, such as /opt/plugin.so")         \
    X(FIELD_PATH, "^[A-Za-z][-A-Za-z0-9_]*([.][-A-Za-z0-9_]+)*$",                                                      \
      "names of fields and numbers of elements joined by dots, such as coxswain.training.batchSize")                   \
    X(VARIABLE, "^[A-Za-z_][A-Za-z0-9_]*$", "a variable's name, such as LEARNING_RATE")                                \
    X(ARGUMENT, "^[-+]{0,2}[A-Za-z][-A-Za-z0-9_./]*$", "the name of an argument, such as --learning-rate")             \
    X(ENDPOINT, "^https?://([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?/?$",           \
      "an address without a path, such as https://s3.eu-central-1.amazonaws.com")                                      \
    X(DOWNLOAD,                                                                                                        \
      "^(https://[^/[:space:]#]+/[^[:space:]#]*[^/[:space:]#]|"                                                        \
      "hf://(datasets/)?[A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.]*(@[A-Za-z0-9][-A-Za-z0-9_.]*)?"           \
      "(/[^[:space:]#]+)?|(s3|oci)://[^[:space:]#]+)$", /* the latter are refused by a rule that says what to write */ \
      "an address such as https://example.com/a.npy or hf://openai-community/gpt2@main")                               \
    X(SHA256, "^[0-9a-f]{64}$", "a SHA-256 of 64 lower-case hexadecimal digits")                                       \
    X(BYTES, "^[1-9][0-9]{0,14}([kMGT]|[KMGT]i)?$", "an amount of bytes, such as 10Gi")                                \
    X(IMAGE, "^[^[:space:]]+$", "an image reference without spaces, such as registry.example/trainer:1")               \
    X(DECIMAL, "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?$", "a number, such as 0.01 or 3e-4")

enum string_format {
#define X(name, expression, words) STRING_FORMAT_##name,
    STRING_FORMATS(X)
#undef X
};

/* Returns the format's regular expression; "" for STRING_FORMAT_ANY. */
const char *string_format_expression(enum string_format format);
const char *string_format_words(enum string_format format);
bool string_format_matches(enum string_format format, const char *text);

/* The value of a text that matches STRING_FORMAT_DECIMAL. */
double decimal_value(const char *text);

/* Reads a text that is a number as a whole. Returns false for any other text, and for NaN and infinity;
 * `*ret_value` is then of no use. */
bool finite_number(const char *text, double *ret_value);

/* Returns the shortest text that is parsed as the same double. Release with free(). */
char *decimal_text(double value);

#endif
