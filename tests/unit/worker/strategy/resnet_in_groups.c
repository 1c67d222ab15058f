/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/strategy/resnet_in_groups.h"

#include <criterion/criterion.h>

#include "common/buffer.h"
#include "common/memory.h"

#define RESNET_LAYERS 70

struct listing {
    struct buffer text;
    unsigned layers, stages;
};

/* One more layer, on the device of its group. */
static void list_layer(struct listing *listing, const char *layer)
{
    buffer_format(&listing->text, "%s{%s,\"device\":%u}", listing->layers ? "," : "", layer,
                  listing->layers * listing->stages / RESNET_LAYERS);
    listing->layers++;
}

#define LIST(listing, ...)                                                                                             \
    do {                                                                                                               \
        SCOPED_FREE char *layer_ = memory_format(__VA_ARGS__);                                                         \
        list_layer(listing, layer_);                                                                                   \
    } while (0)

static void list_conv(struct listing *listing, const char *from, int filters, int stride)
{
    LIST(listing, "\"type\":\"Conv2D\",\"filters\":%d,\"kernel\":3,\"padding\":1,\"stride\":%d,\"bias\":false%s%s%s",
         filters, stride, from ? ",\"inputs\":[\"" : "", from ? from : "", from ? "\"]" : "");
}

static void list_block(struct listing *listing, int block, int filters, int stride)
{
    SCOPED_FREE char *before = memory_format("out%d", block - 1);
    list_conv(listing, before, filters, stride);
    LIST(listing, "\"type\":\"BatchNorm\"");
    LIST(listing, "\"type\":\"ReLU\"");
    list_conv(listing, NULL, filters, 1);
    LIST(listing, "\"type\":\"BatchNorm\",\"name\":\"branch%d\"", block);
    if (stride > 1)
        LIST(listing, "\"type\":\"Shortcut\",\"name\":\"past%d\",\"filters\":%d,\"stride\":%d,\"inputs\":[\"%s\"]",
             block, filters, stride, before);
    LIST(listing, "\"type\":\"Add\",\"inputs\":[\"%s%d\",\"branch%d\"]", stride > 1 ? "past" : "out",
         stride > 1 ? block : block - 1, block);
    LIST(listing, "\"type\":\"ReLU\",\"name\":\"out%d\"", block);
}

char *resnet_in_groups(unsigned stages)
{
    struct listing listing = {.stages = stages};
    buffer_init(&listing.text, 1 << 16);
    buffer_format(&listing.text, "{\"inputShape\":[8,8,2],\"layers\":[");
    list_conv(&listing, NULL, 4, 1);
    LIST(&listing, "\"type\":\"BatchNorm\"");
    LIST(&listing, "\"type\":\"ReLU\",\"name\":\"out0\"");
    for (int block = 1; block <= 9; block++)
        list_block(&listing, block, 4 << (block - 1) / 3, block == 4 || block == 7 ? 2 : 1);
    LIST(&listing, "\"type\":\"GlobalAveragePool\"");
    LIST(&listing, "\"type\":\"Dense\",\"units\":10");
    cr_assert_eq(listing.layers, RESNET_LAYERS);
    buffer_format(&listing.text, "]}");
    return buffer_take(&listing.text);
}
