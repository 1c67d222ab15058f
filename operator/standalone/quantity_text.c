/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/quantity_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DIGITS "0123456789"

/* Of "e-3". */
static bool is_exponent(const char *text)
{
    if (*text != 'e' && *text != 'E')
        return false;
    text += text[1] == '+' || text[1] == '-' ? 2 : 1;
    size_t digits = strspn(text, DIGITS);
    return digits > 0 && text[digits] == '\0';
}

static bool is_suffix(const char *text)
{
    static const char *const suffixes[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
                                           "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(text, suffixes[i]) == 0)
            return true;
    return is_exponent(text);
}

/* Of the form that the message below names. */
static bool has_form(const char *suffix)
{
    suffix += strspn(suffix, "eEinumkKMGTP");
    suffix += *suffix == '+' || *suffix == '-' ? 1 : 0;
    return suffix[strspn(suffix, DIGITS)] == '\0';
}

const char *quantity_text_flaw(const char *text)
{
    text += *text == '+' || *text == '-' ? 1 : 0;
    size_t whole = strspn(text, DIGITS), point = text[whole] == '.' ? 1 : 0;
    size_t fraction = strspn(text + whole + point, DIGITS);
    const char *suffix = text + whole + point + fraction;
    if (whole + fraction == 0 || !has_form(suffix))
        return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    return is_suffix(suffix) ? NULL : "unable to parse quantity's suffix";
}
