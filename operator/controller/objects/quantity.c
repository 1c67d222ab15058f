/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THOUSANDTHS_MAX 9000000000000000000.0L
#define ROUNDING 1e-7L /* what a decimal fraction is off in binary must not make it a thousandth more */

static const struct {
    const char *name;
    long double factor;
} suffixes[] = {
    {"", 1.0L},
    {"n", 1e-9L},
    {"u", 1e-6L},
    {"m", 1e-3L},
    {"k", 1e3L},
    {"M", 1e6L},
    {"G", 1e9L},
    {"T", 1e12L},
    {"P", 1e15L},
    {"E", 1e18L},
    {"Ki", 1024.0L},
    {"Mi", 1048576.0L},
    {"Gi", 1073741824.0L},
    {"Ti", 1099511627776.0L},
    {"Pi", 1125899906842624.0L},
    {"Ei", 1152921504606846976.0L},
};

static bool suffix_factor(const char *text, long double *ret_factor)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strcmp(suffixes[i].name, text) != 0)
            continue;
        *ret_factor = suffixes[i].factor;
        return true;
    }
    bool exponent = (*text == 'e' || *text == 'E') && text[1] != '\0';
    char *end = NULL;
    long power = exponent && !isspace((unsigned char)text[1]) ? strtol(text + 1, &end, 10) : 0;
    *ret_factor = powl(10.0L, (long double)(power > 40 ? 40 : power < -40 ? -40 : power));
    return exponent && end && end != text + 1 && *end == '\0';
}

bool quantity_parse(const char *text, int64_t *ret_thousandths)
{
    size_t digits = strspn(text, "0123456789."), dots = 0;
    for (size_t i = 0; i < digits; i++)
        dots += text[i] == '.';
    long double factor;
    if (digits == 0 || digits > 30 || digits == dots || dots > 1 || !suffix_factor(text + digits, &factor))
        return false;
    char number[32];
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    long double thousandths = ceill(strtold(number, NULL) * factor * 1000.0L - ROUNDING);
    if (!(thousandths <= THOUSANDTHS_MAX))
        return false;
    *ret_thousandths = (int64_t)thousandths;
    return true;
}

void quantity_print(int64_t thousandths, char text[QUANTITY_TEXT_MAX])
{
    if (thousandths % 1000 == 0)
        snprintf(text, QUANTITY_TEXT_MAX, "%" PRId64, thousandths / 1000);
    else
        snprintf(text, QUANTITY_TEXT_MAX, "%" PRId64 "m", thousandths);
}

/* Amounts may be written as numbers too. */
static bool amount_of(const struct json *value, int64_t *ret_thousandths)
{
    char number[QUANTITY_TEXT_MAX];
    snprintf(number, sizeof number, "%" PRId64, json_integer(value, -1));
    return quantity_parse(json_string(value, number), ret_thousandths);
}

static void set_amount(struct json *amounts, const char *name, int64_t thousandths)
{
    char text[QUANTITY_TEXT_MAX];
    quantity_print(thousandths, text);
    json_set_string(amounts, name, text);
}

void quantities_add(struct json *sum, const struct json *more, int64_t times)
{
    for (const struct json *item = json_first(more); item; item = json_next(item)) {
        int64_t amount, before = 0, product, total;
        amount_of(json_member(sum, json_key(item)), &before);
        if (amount_of(item, &amount) && !__builtin_mul_overflow(amount, times, &product) &&
            !__builtin_add_overflow(before, product, &total))
            set_amount(sum, json_key(item), total);
    }
}

static void raise_to(struct json *amounts, const struct json *least)
{
    for (const struct json *item = json_first(least); item; item = json_next(item)) {
        int64_t wanted, has = 0;
        amount_of(json_member(amounts, json_key(item)), &has);
        if (amount_of(item, &wanted) && wanted > has)
            set_amount(amounts, json_key(item), wanted);
    }
}

static struct json *of_container(const struct json *container)
{
    struct json *amounts = json_new_object();
    quantities_add(amounts, json_at(container, "resources.limits"), 1);
    const struct json *requests = json_at(container, "resources.requests");
    for (const struct json *item = json_first(requests); item; item = json_next(item))
        json_remove(amounts, json_key(item));
    quantities_add(amounts, requests, 1);
    return amounts;
}

static bool is_sidecar(const struct json *container)
{
    return strcmp(json_string_at(container, "restartPolicy", ""), "Always") == 0;
}

/* The most that is needed at a time before the containers start, and what of it runs on beside them. */
static struct json *of_init_containers(const struct json *containers, struct json *ret_sidecars)
{
    struct json *most = json_new_object();
    for (const struct json *item = json_first(containers); item; item = json_next(item)) {
        SCOPED_JSON *amounts = of_container(item);
        if (is_sidecar(item)) {
            quantities_add(ret_sidecars, amounts, 1);
            raise_to(most, ret_sidecars);
        } else {
            quantities_add(amounts, ret_sidecars, 1);
            raise_to(most, amounts);
        }
    }
    return most;
}

/* Applies the resources of the pod as a whole. As in the API server, a limit is the request if there is no request. */
static void take_whole(const struct json *resources, struct json *sum)
{
    const struct json *requests = json_member(resources, "requests");
    for (const struct json *item = json_first(requests); item; item = json_next(item))
        json_remove(sum, json_key(item));
    quantities_add(sum, requests, 1);
    SCOPED_JSON *limits = json_new_object();
    quantities_add(limits, json_member(resources, "limits"), 1);
    for (const struct json *item = json_first(limits); item; item = json_next(item))
        if (!json_member(sum, json_key(item)))
            json_set(sum, json_key(item), json_copy(item));
}

struct json *quantities_of_pod(const struct json *spec)
{
    struct json *sum = json_new_object();
    const struct json *containers = json_member(spec, "containers");
    SCOPED_JSON *most = of_init_containers(json_member(spec, "initContainers"), sum);
    for (const struct json *item = json_first(containers); item; item = json_next(item)) {
        SCOPED_JSON *amounts = of_container(item);
        quantities_add(sum, amounts, 1);
    }
    raise_to(sum, most);
    take_whole(json_member(spec, "resources"), sum);
    quantities_add(sum, json_member(spec, "overhead"), 1);
    return sum;
}
