/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/data/image.h"
#include "common/data/image_folder.h"
#include "common/data/image_resize.h"
#include "common/lock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/data/dataset_format.h"
#include "worker/data/pixels.h"

/* Counts the pixels that all threads decode at this time. They may be as many as one image may have, since each takes up to twelve bytes
 * until its image is resized. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    int64_t pixels;
} decoding = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

enum keeping { NOT_KEPT, BEING_KEPT, KEPT };

struct image_dataset {
    struct dataset base;
    struct image_folder folder;
    int32_t *classes; /* of the folder's classes, their numbers among those of the training data; NULL: not known */
    int64_t height, width, channels;
    bool channels_first; /* the model takes C H W, as programs from PyTorch do */
    bool crop;
    uint8_t *kept;          /* the resized images; NULL: they are decoded each time */
    _Atomic uint8_t *state; /* of each kept image: enum keeping */
};

static void images_free(struct dataset *base)
{
    struct image_dataset *dataset = (struct image_dataset *)base;
    image_folder_release(&dataset->folder);
    free(dataset->classes);
    free(dataset->kept);
    free((void *)dataset->state);
}

/* ---------------------------------------------------------------- opening */

static bool is_channels(int64_t count)
{
    return count == 1 || count == 3 || count == 4;
}

/* Takes the size of the images from the shape of the model's input. */
static int take_shape(struct image_dataset *dataset, const struct example_format *format, struct error *error)
{
    const struct example_shape *shape = &format->input_shape;
    const int64_t *dims = shape->dims;
    dataset->channels_first = shape->rank == 3 && !is_channels(dims[2]) && is_channels(dims[0]);
    dataset->channels = shape->rank == 2 ? 1 : dims[dataset->channels_first ? 0 : 2];
    dataset->height = dims[dataset->channels_first];
    dataset->width = dims[dataset->channels_first + 1];
    if ((shape->rank == 2 || shape->rank == 3) && is_channels(dataset->channels))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "data.format ImageFolder needs a model whose input is an image; make model.inputShape [height, "
                     "width, channels] with 1 channel for grey, 3 for RGB or 4 for RGB and alpha");
}

/* Returns the path of the folder that the split names, or else of the folder of all data. */
static int folder_path(const struct dataset_source *source, const struct data_files *files, char **ret_path,
                       struct error *error)
{
    const struct data_spec *spec = source->spec;
    if (files->images)
        return dataset_path(source, files->images, ret_path, error);
    if (!spec->storage && !spec->path)
        return error_set(error, ERROR_INVALID, "%s: format ImageFolder needs images, the folder of the classes",
                         dataset_section(source));
    return storage_map_resolve(source->storage, spec->storage, spec->path ? spec->path : ".", ret_path, error);
}

static bool is_named(const struct json *class, const char *name)
{
    return class && strcmp(json_string(class, ""), name) == 0;
}

/* Finds the class of each folder. Returns the first folder whose name is no class, or NULL. */
static const char *find_classes(struct image_dataset *dataset, const struct json *classes)
{
    const struct image_folder *folder = &dataset->folder;
    const struct json *class = NULL;
    int32_t number = 0;
    dataset->classes = memory_allocate(folder->class_count, sizeof *dataset->classes);
    for (unsigned i = 0; i < folder->class_count; i++, class = json_next(class), number++) {
        const char *name = folder->classes[i];
        if (!is_named(class, name)) /* mostly it is the class after the one before */
            for (class = json_first(classes), number = 0; class && !is_named(class, name); class = json_next(class))
                number++;
        if (!class)
            return name;
        dataset->classes[i] = number;
    }
    return NULL;
}

static int take_class_names(struct dataset *dataset, const struct image_folder *folder, struct error *error)
{
    for (unsigned i = 0; i < folder->class_count; i++) {
        const char *name = folder->classes[i];
        if (!training_facts_append(&dataset->facts.classes, name, strlen(name)))
            return error_set(error, ERROR_INVALID, "%s: the name of folder %u of a class is not UTF-8; rename it",
                             folder->root, i + 1);
        dataset->labels_digest = crc32c(dataset->labels_digest, name, strlen(name));
        dataset->labels_digest = crc32c(dataset->labels_digest, "\n", 1);
    }
    dataset->has_labels = true;
    return 0;
}

/* The classes are those of the training data, also for images to test with. */
static int take_classes(struct image_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    struct dataset *base = &dataset->base;
    bool own = source->files == &source->spec->train;
    if (own && take_class_names(base, &dataset->folder, error) < 0)
        return -1;
    if (!own && source->known && source->known->classes)
        base->facts.classes = json_copy(source->known->classes);
    else if (!own) {
        SCOPED(image_folder_release) struct image_folder training = {.root = NULL};
        SCOPED_FREE char *path = NULL;
        if (folder_path(source, &source->spec->train, &path, error) < 0 ||
            image_folder_list(path, &training, error) < 0 || take_class_names(base, &training, error) < 0)
            return -1;
    }
    if ((int64_t)json_count(base->facts.classes) > base->format.classes)
        return error_set(error, ERROR_INVALID,
                         "there are %zu folders of classes, but the model has %lld classes; make model.classes %zu, "
                         "or the units of the last one of model.layers",
                         json_count(base->facts.classes), (long long)base->format.classes,
                         json_count(base->facts.classes));
    const char *unknown = find_classes(dataset, base->facts.classes);
    return unknown ? error_set(error, ERROR_INVALID, "%s/%s: the training images have no class of this name",
                               dataset->folder.root, unknown)
                   : 0;
}

/* New images have classes if all folders that they are in are named like classes. */
static int list_new(struct image_dataset *dataset, const char *path, const struct json *classes, struct error *error)
{
    struct image_folder *folder = &dataset->folder;
    dataset->base.has_targets = image_folder_list(path, folder, NULL) == 0 && !find_classes(dataset, classes);
    if (dataset->base.has_targets)
        return 0;
    free(dataset->classes);
    dataset->classes = NULL;
    image_folder_release(folder);
    return image_folder_list_all(path, folder, error);
}

static int64_t images_keep(struct dataset *base, int64_t most)
{
    struct image_dataset *dataset = (struct image_dataset *)base;
    int64_t image = dataset->height * dataset->width * dataset->channels, bytes = dataset->folder.count * image;
    if (dataset->kept || dataset->folder.count > most / image)
        return 0;
    dataset->kept = malloc((size_t)bytes); /* touched as images are kept */
    if (!dataset->kept)
        return 0;
    dataset->state = memory_allocate((size_t)dataset->folder.count, sizeof *dataset->state);
    return bytes;
}

static void describe(struct image_dataset *dataset)
{
    snprintf(dataset->base.description, sizeof dataset->base.description,
             "images %s %lldx%lldx%lld, %zu classes, from %.120s", dataset->crop ? "cropped to" : "of",
             (long long)dataset->height, (long long)dataset->width, (long long)dataset->channels,
             json_count(dataset->base.facts.classes), dataset->folder.root);
}

static int fill(struct image_dataset *dataset, const struct dataset_source *source, struct error *error)
{
    SCOPED_FREE char *path = NULL;
    if (pixels_check_wanted(source->format, "ImageFolder", error) < 0 ||
        take_shape(dataset, source->format, error) < 0 || folder_path(source, source->files, &path, error) < 0)
        return -1;
    if (source->is_new) {
        if (list_new(dataset, path, source->known ? source->known->classes : NULL, error) < 0)
            return -1;
    } else if (image_folder_list(path, &dataset->folder, error) < 0 || take_classes(dataset, source, error) < 0)
        return -1;
    dataset->base.count = dataset->folder.count;
    describe(dataset);
    return 0;
}

static int images_open(const struct dataset_source *source, struct dataset **ret_dataset, struct error *error)
{
    struct image_dataset *dataset = memory_allocate(1, sizeof *dataset);
    dataset->base.kind = &dataset_images;
    dataset->base.format = *source->format;
    dataset->crop = source->spec->resize == IMAGE_RESIZE_CENTER_CROP;
    if (fill(dataset, source, error) < 0) {
        dataset_free(&dataset->base);
        return -1;
    }
    *ret_dataset = &dataset->base;
    return 0;
}

/* ---------------------------------------------------------------- reading */

/* Waits until so many more pixels may be decoded, and counts them. A negative number gives them back. */
static void take_pixels(int64_t pixels)
{
    SCOPED_LOCK(&decoding.lock);
    while (pixels > 0 && decoding.pixels > IMAGE_PIXELS_MAX - pixels)
        pthread_cond_wait(&decoding.given_back, &decoding.lock);
    decoding.pixels += pixels;
    pthread_cond_broadcast(&decoding.given_back);
}

static int decode(const struct image_dataset *dataset, int64_t index, uint8_t *ret_pixels, struct error *error)
{
    const struct image_folder *folder = &dataset->folder;
    SCOPED(image_release) struct image image = {.pixels = NULL};
    SCOPED_BUFFER bytes = BUFFER_INIT(IMAGE_BYTES_MAX);
    if (image_folder_read(folder, index, &bytes, error) < 0)
        return -1;
    const uint8_t *begin = (const uint8_t *)bytes.data;
    if (image_look(begin, bytes.length, &image, error) < 0)
        return error_wrap(error, "%s/%s", folder->root, folder->files[index].path);
    int64_t area = image.width * image.height;
    take_pixels(area);
    bool good = image_read(begin, bytes.length, dataset->channels, &image, error) == 0 &&
                image_resize(&image, dataset->crop, dataset->width, dataset->height, ret_pixels, error) == 0;
    image_release(&image);
    take_pixels(-area);
    if (!good)
        return error_wrap(error, "%s/%s", folder->root, folder->files[index].path);
    return 0;
}

static void give_values(const struct image_dataset *dataset, const uint8_t *pixels, float *values)
{
    int64_t area = dataset->height * dataset->width, channels = dataset->channels;
    int64_t step = dataset->channels_first ? 1 : channels, plane = dataset->channels_first ? area : 1;
    for (int64_t i = 0; i < area; i++)
        for (int64_t c = 0; c < channels; c++)
            values[i * step + c * plane] = pixel_value(pixels[i * channels + c]);
}

/* Another thread may decode the same image at this time. Then each uses its own pixels, and the first one to finish keeps them. */
static int images_read(const struct dataset *base, int64_t index, void *input, void *target, struct error *error)
{
    const struct image_dataset *dataset = (const struct image_dataset *)base;
    int64_t size = dataset->height * dataset->width * dataset->channels;
    uint8_t *kept = dataset->kept ? dataset->kept + index * size : NULL, none = NOT_KEPT;
    if (dataset->classes)
        *(int32_t *)target = dataset->classes[dataset->folder.files[index].class];
    else
        memset(target, 0, example_target_bytes(&base->format));
    if (kept && atomic_load_explicit(&dataset->state[index], memory_order_acquire) == KEPT) {
        give_values(dataset, kept, input);
        return 0;
    }
    SCOPED_FREE uint8_t *pixels = memory_allocate((size_t)size, 1);
    if (decode(dataset, index, pixels, error) < 0)
        return -1;
    give_values(dataset, pixels, input);
    if (kept && atomic_compare_exchange_strong(&dataset->state[index], &none, BEING_KEPT)) {
        memcpy(kept, pixels, (size_t)size);
        atomic_store_explicit(&dataset->state[index], KEPT, memory_order_release);
    }
    return 0;
}

static const char *images_name(const struct dataset *base, int64_t index)
{
    return ((const struct image_dataset *)base)->folder.files[index].path;
}

const struct dataset_kind dataset_images = {.open = images_open,
                                            .free = images_free,
                                            .read = images_read,
                                            .name = images_name,
                                            .keep = images_keep,
                                            .slow = true};
