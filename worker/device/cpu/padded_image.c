/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/device/cpu/conv2d.h"

bool padded_image_is_plain(const struct padded_image *view)
{
    return view->left == 0 && view->width == view->w;
}

int64_t padded_image_fitting(const struct padded_image *view)
{
    return CONV2D_BAND_BYTES / (int64_t)sizeof(float) / (view->width * view->c);
}

static void zero(float *to, int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
}

const float *padded_image_rows(const struct padded_image *view, const float *image, int64_t first, int64_t rows,
                               float *buffer)
{
    int64_t length = view->w * view->c, pitch = view->width * view->c, left = view->left * view->c;
    if (padded_image_is_plain(view))
        return image + first * length;
    for (int64_t r = 0; r < rows; r++) {
        float *to = buffer + r * pitch;
        int64_t y = first + r;
        if (y < 0 || y >= view->h) {
            zero(to, pitch);
            continue;
        }
        zero(to, left);
        memcpy(to + left, image + y * length, (size_t)length * sizeof *to);
        zero(to + left + length, pitch - left - length);
    }
    return buffer;
}
