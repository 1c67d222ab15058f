/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/string_format.h"

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

/* ---------------------------------------------------------------- durations and decimals */

struct duration_unit {
    char letter;
    int64_t ms;
};

static const struct duration_unit duration_units[] = {{'h', 3600000}, {'m', 60000}, {'s', 1000}};

int64_t duration_value_ms(const char *text)
{
    char *end;
    int64_t number = strtoll(text, &end, 10);
    const struct duration_unit *unit = duration_units;
    while (unit->letter != *end && unit->letter != 's')
        unit++;
    return number * unit->ms;
}

char *duration_text(int64_t ms)
{
    const struct duration_unit *unit = duration_units;
    while (ms % unit->ms != 0 && unit->letter != 's')
        unit++;
    return memory_format("%lld%c", (long long)(ms / unit->ms), unit->letter);
}

double decimal_value(const char *text)
{
    return strtod(text, NULL);
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
