/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/string_format.h"

#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/memory.h"

struct format {
    const char *expression;
    const char *words;
};

static const struct format formats[] = {
#define X(name, expression, words) [STRING_FORMAT_##name] = {expression, words},
    STRING_FORMATS(X)
#undef X
};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

/* Compiled once, at the first use, and kept: a job is parsed at every change of it. */
static regex_t compiled[FORMAT_COUNT];
static pthread_once_t compiled_once = PTHREAD_ONCE_INIT;

static void compile_all(void)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (regcomp(&compiled[i], formats[i].expression, REG_EXTENDED | REG_NOSUB) != 0)
            abort();
}

const char *string_format_expression(enum string_format format)
{
    return formats[format].expression;
}

const char *string_format_words(enum string_format format)
{
    return formats[format].words;
}

bool string_format_matches(enum string_format format, const char *text)
{
    if (format == STRING_FORMAT_ANY)
        return true;
    pthread_once(&compiled_once, compile_all);
    return regexec(&compiled[format], text, 0, NULL, 0) == 0;
}

/* ---------------------------------------------------------------- decimals */

double decimal_value(const char *text)
{
    return strtod(text, NULL);
}

bool finite_number(const char *text, double *ret_value)
{
    char *end;
    *ret_value = strtod(text, &end);
    return end > text && *end == '\0' && isfinite(*ret_value);
}

char *decimal_text(double value)
{
    for (int digits = 1;; digits++) {
        char *text = memory_format("%.*g", digits, value);
        if (digits == 17 || strtod(text, NULL) == value)
            return text;
        free(text);
    }
}
