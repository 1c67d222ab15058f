/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/enum_words.h"

#include <string.h>

#define X(name, text) text,
#define L(list, table) const char *const list[] = {table(X) NULL};
WORD_LISTS(L)
#undef L
#undef X

int words_find(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

const char *strategy_type_name(enum strategy_type value)
{
    return strategy_type_words[value];
}

const char *device_type_name(enum device_type value)
{
    return device_type_words[value];
}

const char *optimizer_type_name(enum optimizer_type value)
{
    return optimizer_type_words[value];
}

const char *layer_type_name(enum layer_type value)
{
    return layer_type_words[value];
}

const char *layer_default_name(enum layer_type value)
{
    static const char *const names[] = {
        [LAYER_DENSE] = "dense",
        [LAYER_CONV2D] = "conv2d",
        [LAYER_MAX_POOL] = "maxPool",
        [LAYER_AVERAGE_POOL] = "averagePool",
        [LAYER_RELU] = "relu",
        [LAYER_GELU] = "gelu",
        [LAYER_TANH] = "tanh",
        [LAYER_FLATTEN] = "flatten",
        [LAYER_LAYER_NORM] = "layerNorm",
        [LAYER_EMBEDDING] = "embedding",
        [LAYER_ATTENTION] = "attention",
        [LAYER_ADD] = "add",
        [LAYER_BATCH_NORM] = "batchNorm",
        [LAYER_SHORTCUT] = "shortcut",
        [LAYER_GLOBAL_AVERAGE_POOL] = "globalAveragePool",
        [LAYER_DROPOUT] = "dropout",
        [LAYER_CONCAT] = "concat",
    };
    return names[value];
}

const char *preset_name(enum preset value)
{
    return preset_words[value];
}

const char *condition_type_name(enum condition_type type)
{
    return condition_type_words[type];
}

const char *role_name(enum role role)
{
    return role_words[role];
}

bool role_parse(const char *name, enum role *ret_role)
{
    int index = words_find(role_words, name);
    if (index < 0)
        return false;
    *ret_role = (enum role)index;
    return true;
}
