/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/faultproxy/rules.h"

#include <string.h>

#include "common/memory.h"

static const char *const words[] = {
#define X(name, word) [FAULT_##name] = word,
    FAULTS(X)
#undef X
};

static int fault_parse(const char *word, enum fault *ret_fault, struct error *error)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i], word) == 0) {
            *ret_fault = (enum fault)i;
            return 0;
        }
    }
    return error_set(error, ERROR_INVALID, "\"%s\" is no fault", word);
}

static int rule_parse(const struct json *item, struct rule *rule, struct error *error)
{
    *rule = (struct rule){
        .method = json_string_at(item, "method", NULL),
        .path = json_string_at(item, "path", NULL),
        .watch = json_type(json_member(item, "watch")),
        .watch_wanted = json_boolean_at(item, "watch", false),
        .status = json_integer_at(item, "status", 500),
        .retry_after = json_integer_at(item, "retryAfter", -1),
        .delay_ms = json_integer_at(item, "delayMs", 0),
        .after_bytes = json_integer_at(item, "afterBytes", 0),
        .probability = json_number_at(item, "probability", 1),
        .times = json_integer_at(item, "times", -1),
        .writes = json_boolean_at(item, "writes", false),
        .afterwards = json_boolean_at(item, "afterwards", false),
        .skip = json_integer_at(item, "skip", 0),
    };
    return fault_parse(json_string_at(item, "fault", ""), &rule->fault, error);
}

int rules_parse(const char *text, size_t length, uint64_t seed, struct rules *ret_rules, struct error *error)
{
    struct rules rules = {.random = seed};
    if (json_parse(text, length, RULES_MAX, &rules.source, error) < 0)
        return -1;
    int result = json_type(rules.source) == JSON_ARRAY
                     ? 0
                     : error_set(error, ERROR_INVALID, "rules: write an array of objects, [{\"fault\": …}]");
    rules.list = memory_allocate(json_count(rules.source) + 1, sizeof *rules.list);
    for (const struct json *item = json_first(rules.source); item && result == 0; item = json_next(item))
        result = rule_parse(item, &rules.list[rules.count++], error);
    if (result < 0)
        rules_release(&rules);
    else
        *ret_rules = rules;
    return result;
}

int rules_read(const char *path, uint64_t seed, struct rules *ret_rules, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(RULES_MAX);
    if (buffer_read_file(&text, path, error) < 0)
        return -1;
    return rules_parse(buffer_text(&text), text.length, seed, ret_rules, error);
}

void rules_release(struct rules *rules)
{
    json_free(rules->source);
    free(rules->list);
    *rules = (struct rules){.count = 0};
}

static double random_fraction(struct rules *rules)
{
    uint64_t z = rules->random += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static bool fits(const struct rule *rule, const char *method, const char *path, bool watch)
{
    return (!rule->method || strcmp(rule->method, method) == 0) && (!rule->path || strstr(path, rule->path)) &&
           (!rule->writes || strcmp(method, "GET") != 0) &&
           (rule->watch == JSON_ABSENT || rule->watch_wanted == watch) && rule->times != 0;
}

const struct rule *rules_choose(struct rules *rules, const char *method, const char *path, bool watch)
{
    for (size_t i = 0; i < rules->count; i++) {
        struct rule *rule = &rules->list[i];
        if (!fits(rule, method, path, watch) || rule->skip-- > 0 || random_fraction(rules) >= rule->probability)
            continue;
        if (rule->times > 0)
            rule->times--;
        return rule->fault == FAULT_NONE ? NULL : rule;
    }
    return NULL;
}
