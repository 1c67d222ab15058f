/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists a folder of images with one folder for each class, the layout of Keras' image_dataset_from_directory and torchvision's
 * ImageFolder. The classes are the folders' names in the order of their bytes. Images are files named *.png, *.jpg or *.jpeg, in letters of
 * either case, in the class's folder or below it; they are ordered by class, then by path. Files and folders whose names begin with a dot
 * are skipped, and so are lost+found, which a new file system has, and files that are no images by their names.
 */
#ifndef COXSWAIN_COMMON_DATA_IMAGE_FOLDER_H
#define COXSWAIN_COMMON_DATA_IMAGE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/data/image.h"
#include "common/error.h"

#define IMAGE_FOLDER_CLASSES_MAX 65536
#define IMAGE_FOLDER_FILES_MAX ((int64_t)1 << 24)
#define IMAGE_FOLDER_DEPTH_MAX 8

struct image_folder_file {
    char *path; /* relative to the root, such as "cats/a.png"; owned */
    unsigned class;
    uint32_t stamp; /* of the size and the time of change that the file had when it was listed */
};
struct image_folder {
    char *root;     /* the path of the folder; owned */
    char **classes; /* owned */
    unsigned class_count;
    struct image_folder_file *files; /* owned */
    int64_t count;
};

/* Lists the images of all classes. ERROR_INVALID if there is no folder of a class, if one of them holds no image, if an image lies beside
 * them, or if a file is an image of a kind that is not read (*.gif, *.bmp, *.webp, *.tif, *.tiff, *.heic, *.avif). ERROR_TOO_LARGE above
 * the limits. The messages name the path. */
int image_folder_list(const char *path, struct image_folder *ret_folder, struct error *error);
/* Lists all images in the folder and below it, without classes (`class_count` 0); or the one image, if `path` is a file. */
int image_folder_list_all(const char *path, struct image_folder *ret_folder, struct error *error);
void image_folder_release(struct image_folder *folder);

/* Returns whether an image lies in the folder itself, and not below it. */
bool image_folder_has_images(const char *path);
/* Returns whether at least `least` folders in the folder hold images themselves. */
bool image_folder_has_classes(const char *path, unsigned least);

/* Reads the bytes of one of the files, at most IMAGE_BYTES_MAX (image.h). Errors name its path; ERROR_CORRUPT if the file has changed since
 * it was listed. `bytes` is cleared first. */
int image_folder_read(const struct image_folder *folder, int64_t index, struct buffer *bytes, struct error *error);
/* Decodes one of them and checks that it is whole, without giving its pixels. */
int image_folder_check(const struct image_folder *folder, int64_t index, struct error *error);
/* Reads the size and channels of one of them: see image_look. */
int image_folder_look(const struct image_folder *folder, int64_t index, struct image *ret_image, struct error *error);

#endif
