/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/image_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/data/image.h"
#include "common/memory.h"
#include "common/regular_file.h"
#include "common/scope.h"

#define HEAD_BYTES ((off_t)1 << 20) /* nearly always enough to find the size of the image */

static const char *const readable[] = {".png", ".jpg", ".jpeg", NULL};
static const char *const unreadable[] = {".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".avif", NULL};

static bool ends_with_one_of(const char *name, const char *const *ends)
{
    const char *end = strrchr(name, '.');
    for (; end && *ends; ends++)
        if (strcasecmp(end, *ends) == 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------- a directory's entries */

struct listing {
    struct dirent **entries;
    int count;
};

static void listing_release(struct listing *listing)
{
    for (int i = 0; i < listing->count; i++)
        free(listing->entries[i]);
    free(listing->entries);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strcmp(entry->d_name, "lost+found") != 0;
}

/* In the order of their bytes, whatever the locale. */
static int compare_names(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static int list(const char *path, struct listing *ret_listing, struct error *error)
{
    ret_listing->count = scandir(path, &ret_listing->entries, is_visible, compare_names);
    if (ret_listing->count >= 0)
        return 0;
    *ret_listing = (struct listing){.count = 0};
    return error_set_errno(error, "cannot list %s", path);
}

/* Leaves out the fraction of the second, which some file systems do not keep. */
static uint32_t stamp_of(const struct stat *status)
{
    const int64_t facts[] = {status->st_size, status->st_mtim.tv_sec};
    return crc32c(0, facts, sizeof facts);
}

/* Follows links. */
static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---------------------------------------------------------------- images */

static char *join(const char *folder, const char *name)
{
    return *folder ? memory_format("%s/%s", folder, name) : memory_copy_string(name);
}

static int add_file(struct image_folder *folder, const char *path, const struct stat *status, unsigned class,
                    struct error *error)
{
    if (folder->count == IMAGE_FOLDER_FILES_MAX)
        return error_set(error, ERROR_TOO_LARGE, "%s: more than %lld images", folder->root,
                         (long long)IMAGE_FOLDER_FILES_MAX);
    if (folder->count == 0 || (folder->count >= 64 && (folder->count & (folder->count - 1)) == 0))
        folder->files =
            memory_resize(folder->files, folder->count ? 2 * (size_t)folder->count : 64, sizeof *folder->files);
    folder->files[folder->count++] = (struct image_folder_file){memory_copy_string(path), class, stamp_of(status)};
    return 0;
}

/* Adds the images in the folder `below`, a path relative to the root, and in the folders within it. */
static int add_images(struct image_folder *folder, const char *below, unsigned class, unsigned depth,
                      struct error *error)
{
    SCOPED(listing_release) struct listing listing = {.count = 0};
    SCOPED_FREE char *path = memory_format("%s/%s", folder->root, below);
    if (depth > IMAGE_FOLDER_DEPTH_MAX)
        return error_set(error, ERROR_INVALID, "%s: folders lie deeper than %d within one another", path,
                         IMAGE_FOLDER_DEPTH_MAX);
    if (list(path, &listing, error) < 0)
        return -1;
    for (int i = 0; i < listing.count; i++) {
        const char *name = listing.entries[i]->d_name;
        SCOPED_FREE char *own = join(below, name);
        SCOPED_FREE char *full = memory_format("%s/%s", folder->root, own);
        struct stat status;
        int result = 0;
        bool exists = stat(full, &status) == 0; /* false: a link that leads nowhere */
        if (exists && S_ISDIR(status.st_mode))
            result = add_images(folder, own, class, depth + 1, error);
        else if (ends_with_one_of(name, unreadable))
            result = error_set(error, ERROR_INVALID, "%s: only PNG and JPEG files are read; convert it, or take it out",
                               full);
        else if (ends_with_one_of(name, readable))
            result =
                exists ? add_file(folder, own, &status, class, error) : error_set_errno(error, "cannot read %s", full);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int compare_files(const void *left, const void *right)
{
    const struct image_folder_file *one = left, *other = right;
    if (one->class != other->class)
        return one->class < other->class ? -1 : 1;
    return strcmp(one->path, other->path);
}

static int add_class(struct image_folder *folder, const char *name, struct error *error)
{
    int64_t before = folder->count;
    if (folder->class_count == IMAGE_FOLDER_CLASSES_MAX)
        return error_set(error, ERROR_TOO_LARGE, "%s: more than %d folders of classes", folder->root,
                         IMAGE_FOLDER_CLASSES_MAX);
    if (folder->class_count % 64 == 0)
        folder->classes = memory_resize(folder->classes, folder->class_count + 64, sizeof *folder->classes);
    folder->classes[folder->class_count++] = memory_copy_string(name);
    if (add_images(folder, name, folder->class_count - 1, 1, error) < 0)
        return -1;
    if (folder->count == before)
        return error_set(error, ERROR_INVALID, "%s/%s: the folder of this class holds no PNG or JPEG file; take it out",
                         folder->root, name);
    return 0;
}

static int add_classes(struct image_folder *folder, struct error *error)
{
    SCOPED(listing_release) struct listing listing = {.count = 0};
    if (list(folder->root, &listing, error) < 0)
        return -1;
    for (int i = 0; i < listing.count; i++) {
        const char *name = listing.entries[i]->d_name;
        SCOPED_FREE char *path = memory_format("%s/%s", folder->root, name);
        if (is_directory(path) && add_class(folder, name, error) < 0)
            return -1;
    }
    if (folder->class_count == 0)
        return error_set(error, ERROR_INVALID,
                         "%s: there is no folder of a class; put the images of each class into a "
                         "folder that has the class's name",
                         folder->root);
    for (int i = 0; i < listing.count; i++)
        if (ends_with_one_of(listing.entries[i]->d_name, readable))
            return error_set(error, ERROR_INVALID,
                             "%s/%s lies beside the folders of the classes; put it into one of them, or take it out",
                             folder->root, listing.entries[i]->d_name);
    return 0;
}

int image_folder_list(const char *path, struct image_folder *ret_folder, struct error *error)
{
    struct image_folder folder = {.root = memory_copy_string(path)};
    if (add_classes(&folder, error) < 0) {
        image_folder_release(&folder);
        return -1;
    }
    qsort(folder.files, (size_t)folder.count, sizeof *folder.files, compare_files);
    *ret_folder = folder;
    return 0;
}

/* Splits the path of one image into the folder and the file. */
static int add_one(struct image_folder *folder, struct error *error)
{
    SCOPED_FREE char *path = folder->root;
    const char *slash = strrchr(path, '/');
    struct stat status;
    folder->root = slash ? memory_copy_bytes(path, (size_t)(slash - path)) : memory_copy_string(".");
    if (access(path, R_OK) < 0 || stat(path, &status) < 0)
        return error_set_errno(error, "cannot read %s", path);
    return add_file(folder, slash ? slash + 1 : path, &status, 0, error);
}

int image_folder_list_all(const char *path, struct image_folder *ret_folder, struct error *error)
{
    struct image_folder folder = {.root = memory_copy_string(path)};
    int result = is_directory(path) ? add_images(&folder, "", 0, 0, error) : add_one(&folder, error);
    if (result == 0 && folder.count == 0)
        result = error_set(error, ERROR_INVALID, "%s: there is no PNG or JPEG file in this folder", path);
    if (result < 0) {
        image_folder_release(&folder);
        return -1;
    }
    qsort(folder.files, (size_t)folder.count, sizeof *folder.files, compare_files);
    *ret_folder = folder;
    return 0;
}

void image_folder_release(struct image_folder *folder)
{
    for (unsigned i = 0; i < folder->class_count; i++)
        free(folder->classes[i]);
    for (int64_t i = 0; i < folder->count; i++)
        free(folder->files[i].path);
    free(folder->classes);
    free(folder->files);
    free(folder->root);
    *folder = (struct image_folder){.root = NULL};
}

bool image_folder_has_images(const char *path)
{
    SCOPED(listing_release) struct listing listing = {.count = 0};
    if (list(path, &listing, NULL) < 0)
        return false;
    for (int i = 0; i < listing.count; i++)
        if (ends_with_one_of(listing.entries[i]->d_name, readable))
            return true;
    return false;
}

bool image_folder_has_classes(const char *path, unsigned least)
{
    SCOPED(listing_release) struct listing listing = {.count = 0};
    unsigned found = 0;
    if (list(path, &listing, NULL) < 0)
        return false;
    for (int i = 0; i < listing.count && found < least; i++) {
        SCOPED_FREE char *folder = memory_format("%s/%s", path, listing.entries[i]->d_name);
        found += is_directory(folder) && image_folder_has_images(folder);
    }
    return found >= least;
}

/* ---------------------------------------------------------------- bytes */

/* Reads at most `most` bytes from the file's beginning; *ret_whole says whether these are all. */
static int read_bytes(const struct image_folder *folder, int64_t index, off_t most, struct buffer *bytes,
                      bool *ret_whole, struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder->root, folder->files[index].path);
    SCOPED_CLOSE int descriptor = -1;
    struct stat status;
    off_t size;
    if (regular_file_open(path, &descriptor, &size, error) < 0)
        return -1;
    if (fstat(descriptor, &status) < 0 || stamp_of(&status) != folder->files[index].stamp)
        return error_set(error, ERROR_CORRUPT,
                         "%s has changed since the folder was listed; leave images as they are "
                         "while a job learns from them",
                         path);
    if (size > (off_t)IMAGE_BYTES_MAX)
        return error_set(error, ERROR_TOO_LARGE, "%s: the file has %lld bytes; an image may have at most %zu", path,
                         (long long)size, IMAGE_BYTES_MAX);
    *ret_whole = size <= most;
    SCOPED_FREE char *part = malloc((size_t)(size < most ? size : most) + 1);
    ssize_t length = part ? pread(descriptor, part, (size_t)(size < most ? size : most), 0) : -1;
    if (length < 0)
        return error_set_errno(error, "cannot read %s", path);
    buffer_clear(bytes);
    return buffer_append(bytes, part, (size_t)length, error);
}

int image_folder_read(const struct image_folder *folder, int64_t index, struct buffer *bytes, struct error *error)
{
    bool whole;
    return read_bytes(folder, index, (off_t)IMAGE_BYTES_MAX, bytes, &whole, error);
}

int image_folder_check(const struct image_folder *folder, int64_t index, struct error *error)
{
    SCOPED_BUFFER bytes = BUFFER_INIT(IMAGE_BYTES_MAX);
    SCOPED(image_release) struct image image = {.pixels = NULL};
    if (image_folder_read(folder, index, &bytes, error) < 0)
        return -1;
    if (image_read((const uint8_t *)bytes.data, bytes.length, 3, &image, error) < 0)
        return error_wrap(error, "%s/%s", folder->root, folder->files[index].path);
    return 0;
}

int image_folder_look(const struct image_folder *folder, int64_t index, struct image *ret_image, struct error *error)
{
    bool whole = false;
    SCOPED_BUFFER bytes = BUFFER_INIT(IMAGE_BYTES_MAX);
    for (off_t most = HEAD_BYTES; !whole; most = (off_t)IMAGE_BYTES_MAX) {
        if (read_bytes(folder, index, most, &bytes, &whole, error) < 0)
            return -1;
        if (image_look((const uint8_t *)bytes.data, bytes.length, ret_image, whole ? error : NULL) == 0)
            return 0;
    }
    return error_wrap(error, "%s/%s", folder->root, folder->files[index].path);
}
