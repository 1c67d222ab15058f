/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/augmentation.h"

#include <string.h>

#include "common/philox.h"

/* Beside the words that the order of examples takes of the same seed and epoch (sampler.c). */
#define DOMAIN (UINT64_C(1) << 63)

/* -padding … padding, each as probable as the others. */
static int64_t shift_of(uint32_t word, int64_t padding)
{
    return (int64_t)((uint64_t)word * (uint64_t)(2 * padding + 1) >> 32) - padding;
}

struct augmentation_draw augmentation_draw(const struct augmentation *augmentation, uint64_t seed, int64_t epoch,
                                           int64_t example)
{
    struct philox_words words = philox(seed, (uint64_t)example, (uint64_t)epoch | DOMAIN);
    return (struct augmentation_draw){
        .down = shift_of(words.word[0], augmentation->padding),
        .right = shift_of(words.word[1], augmentation->padding),
        .mirrored = augmentation->horizontal_flip && words.word[2] >> 31,
    };
}

int augmentation_check(const struct augmentation_spec *spec, const int64_t image[3],
                       struct augmentation *ret_augmentation, struct error *error)
{
    struct augmentation augmentation = {.horizontal_flip = spec->horizontal_flip,
                                        .padding = spec->crop_padding == FIELD_UNSET ? 0 : spec->crop_padding};
    memcpy(augmentation.image, image, sizeof augmentation.image);
    if (augmentation_is_active(&augmentation) && image[0] == 0)
        return error_set(error, ERROR_INVALID,
                         "data.augmentation: is for images, which the model's input is not; leave it out, or give the "
                         "model an inputShape of H, W and C");
    if (spec->crop_padding > 0 && (spec->crop_padding >= image[0] || spec->crop_padding >= image[1]))
        return error_set(error, ERROR_INVALID,
                         "data.augmentation.cropPadding: %lld would leave nothing of an image of %lldx%lld; make it "
                         "smaller",
                         (long long)spec->crop_padding, (long long)image[0], (long long)image[1]);
    *ret_augmentation = augmentation;
    return 0;
}

bool augmentation_is_active(const struct augmentation *augmentation)
{
    return augmentation->horizontal_flip || augmentation->padding > 0;
}

static void mirror_row(float *row, int64_t width, int64_t channels)
{
    for (int64_t left = 0, right = width - 1; left < right; left++, right--)
        for (int64_t c = 0; c < channels; c++) {
            float value = row[left * channels + c];
            row[left * channels + c] = row[right * channels + c];
            row[right * channels + c] = value;
        }
}

void augmentation_apply(const struct augmentation *augmentation, const struct augmentation_draw *draw,
                        const float *pixels, float *ret_pixels)
{
    int64_t height = augmentation->image[0], width = augmentation->image[1], channels = augmentation->image[2];
    int64_t to = draw->right > 0 ? draw->right : 0, from = draw->right < 0 ? -draw->right : 0;
    int64_t shared = width - to - from; /* columns of the image that are in the piece */
    memset(ret_pixels, 0, (size_t)(height * width * channels) * sizeof *ret_pixels);
    for (int64_t y = 0; y < height; y++) {
        int64_t source = y - draw->down;
        float *row = ret_pixels + y * width * channels;
        if (source < 0 || source >= height)
            continue;
        memcpy(row + to * channels, pixels + (source * width + from) * channels,
               (size_t)(shared * channels) * sizeof *row);
        if (draw->mirrored)
            mirror_row(row, width, channels);
    }
}
