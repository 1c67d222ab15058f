/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/tensor_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    const char *own, *foreign;
    bool transposed;
};

static const struct pair outside[] = {
    {"embedding.weight", "wte.weight", false},  {"embedding.position", "wpe.weight", false},
    {"norm.weight", "ln_f.weight", false},      {"norm.bias", "ln_f.bias", false},
    {"output.weight", "lm_head.weight", false},
};

/* Tensors of a block: "h<n>.<own>" corresponds to "h.<n>.<foreign>". */
static const struct pair inside[] = {
    {"norm1.weight", "ln_1.weight", false},
    {"norm1.bias", "ln_1.bias", false},
    {"attention.qkv.weight", "attn.c_attn.weight", true},
    {"attention.qkv.bias", "attn.c_attn.bias", false},
    {"attention.output.weight", "attn.c_proj.weight", true},
    {"attention.output.bias", "attn.c_proj.bias", false},
    {"norm2.weight", "ln_2.weight", false},
    {"norm2.bias", "ln_2.bias", false},
    {"mlp.input.weight", "mlp.c_fc.weight", true},
    {"mlp.input.bias", "mlp.c_fc.bias", false},
    {"mlp.output.weight", "mlp.c_proj.weight", true},
    {"mlp.output.bias", "mlp.c_proj.bias", false},
};

static const struct pair *find(const struct pair *pairs, size_t count, const char *own)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i].own, own) == 0)
            return &pairs[i];
    return NULL;
}

bool tensor_name_of_gpt2(const char *own, char foreign[FOREIGN_NAME_MAX], bool *ret_transposed)
{
    const struct pair *pair = find(outside, sizeof outside / sizeof *outside, own);
    char *rest = NULL;
    long block = own[0] == 'h' ? strtol(own + 1, &rest, 10) : -1;
    if (pair)
        snprintf(foreign, FOREIGN_NAME_MAX, "%s", pair->foreign);
    else if (block >= 0 && rest > own + 1 && *rest == '.' &&
             (pair = find(inside, sizeof inside / sizeof *inside, rest + 1)))
        snprintf(foreign, FOREIGN_NAME_MAX, "h.%ld.%s", block, pair->foreign);
    else
        return false;
    *ret_transposed = pair->transposed;
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool tensor_name_is_no_weight(const char *foreign, bool tied)
{
    return ends_with(foreign, ".attn.bias") || ends_with(foreign, ".attn.masked_bias") ||
           (tied && strcmp(foreign, "lm_head.weight") == 0);
}
