/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are an image whose size the head has said, in as many channels as were wanted, or an error that says why. It can be resized.
 */
#include <stdlib.h>

#include "common/data/image.h"
#include "common/data/image_resize.h"
#include "common/data/jpeg_image.h"

#define PIXELS_TRIED (1 << 16) /* larger images only take longer */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const int64_t channels[] = {1, 3, 4};
    struct error error = ERROR_INIT;
    struct image head, image;
    uint8_t pixels[5 * 7 * 4];
    int orientation = jpeg_orientation(bytes, length);
    if (orientation < 1 || orientation > 8)
        abort();
    if (image_look(bytes, length, &head, &error) < 0) {
        if (error.message[0] == '\0' || image_read(bytes, length, 3, &image, &error) == 0)
            abort();
        return 0;
    }
    if (head.pixels || head.width < 1 || head.height < 1)
        abort();
    if (head.width * head.height > PIXELS_TRIED)
        return 0;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        if (image_read(bytes, length, channels[i], &image, &error) < 0)
            return 0;
        if (image.width != head.width || image.height != head.height || image.channels != channels[i])
            abort();
        if (image_resize(&image, i == 0, 5, 7, pixels, &error) < 0)
            abort();
        image_release(&image);
    }
    return 0;
}
