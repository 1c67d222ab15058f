/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/data_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/buffer.h"
#include "common/data/file_bytes.h"
#include "common/data/file_name.h"
#include "common/data/image_folder.h"
#include "common/data/json_lines.h"
#include "common/job/enum_words.h"
#include "common/memory.h"

#define LIST_MAX 1024
#define LISTED_FILES_MAX 12
#define CLASS_FOLDERS_DEPTH 2 /* as in train/cats/1.png */

/* Earlier rows take precedence. For files that are used together, the job gets the pattern. The labels' file name is that of the images
 * with one part changed. */
static const struct kind {
    enum data_format format;
    const char *pattern;
    bool together;
    const char *images, *labels; /* the part that tells them apart; NULL: there are no labels apart */
    const char *usual;
    bool of_test; /* files that have the name of a test: the only ones there */
} kinds[] = {
    {DATA_FORMAT_IDX, "*train*images*idx3*", false, "images-idx3", "labels-idx1", "train-images-idx3-ubyte.gz", false},
    {DATA_FORMAT_IDX, "*images*idx3*", false, "images-idx3", "labels-idx1", NULL, false},
    {DATA_FORMAT_CIFAR10, "data_batch_*.bin", true, NULL, NULL, "data_batch_*.bin", false},
    {DATA_FORMAT_TFRECORD, "*train*.tfrecord*", true, NULL, NULL, "*train*.tfrecord*", false},
    {DATA_FORMAT_TFRECORD, "*.tfrecord*", true, NULL, NULL, NULL, false},
    {DATA_FORMAT_NPY, "*train*images*.npy", false, "images", "labels", "train-images.npy", false},
    {DATA_FORMAT_NPY, "*images*.npy", false, "images", "labels", NULL, false},
    {DATA_FORMAT_NPY, "[xX]_train*.npy", false, "x_", "y_", NULL, false},
    {DATA_FORMAT_NPY, "[xX]*.npy", false, "x", "y", NULL, false},
    {DATA_FORMAT_NPY, "data*.npy", false, "data", "labels", NULL, false},
    {DATA_FORMAT_IMAGE_FOLDER, "folders of PNG and JPEG files", false, NULL, NULL, "train", false},
    {DATA_FORMAT_CSV, "*train*.csv*", false, NULL, NULL, "train.csv", false},
    {DATA_FORMAT_CSV, "*.csv*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_CSV, "*train*.tsv*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_CSV, "*.tsv*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_CSV, "*train*.jsonl*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_CSV, "*.jsonl*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_CSV, "*train*.ndjson*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_CSV, "*.ndjson*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_TOKENS, "*train*.bin", true, NULL, NULL, "*train*.bin", false},
    {DATA_FORMAT_BYTES, "*train*.jsonl*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_BYTES, "*.jsonl*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_BYTES, "*train*.ndjson*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_BYTES, "*.ndjson*", false, NULL, NULL, NULL, false},
    {DATA_FORMAT_IDX, "*images*idx3*", false, "images-idx3", "labels-idx1", NULL, true},
    {DATA_FORMAT_NPY, "*images*.npy", false, "images", "labels", NULL, true},
    {DATA_FORMAT_NPY, "[xX]*.npy", false, "x", "y", NULL, true},
    {DATA_FORMAT_NPY, "data*.npy", false, "data", "labels", NULL, true},
    {DATA_FORMAT_BYTES, "*.txt", false, NULL, NULL, "corpus.txt", false},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

static bool is_of(const struct kind *kind, const char *format)
{
    return !format || strcmp(data_format_words[kind->format], format) == 0;
}

/* Returns the name with `part`, of whatever case, replaced; NULL: it has no such part. */
static char *with_part(const char *name, const char *part, const char *other)
{
    const char *at = part ? strcasestr(name, part) : NULL;
    return at ? memory_format("%.*s%s%s", (int)(at - name), name, other, at + strlen(part)) : NULL;
}

static char *labels_of(const struct kind *kind, const char *images)
{
    return with_part(images, kind->images, kind->labels);
}

/* Returns the entry of that name, or else of that name in another case; NULL: there is none. */
static const char *listed(struct dirent **entries, int count, const char *name)
{
    const char *similar = NULL;
    for (int i = 0; i < count && name; i++) {
        if (strcmp(entries[i]->d_name, name) == 0)
            return entries[i]->d_name;
        if (!similar && strcasecmp(entries[i]->d_name, name) == 0)
            similar = entries[i]->d_name;
    }
    return similar;
}

/* ---------------------------------------------------------------- names of files to test with */

static const char *const test_words[] = {"test", "t10k", "val", "valid", "validation", "testing"};
#define TEST_WORD_COUNT (sizeof test_words / sizeof *test_words)

/* Whether a word ends before `at`: also "Xtest" and "dataTest" have the word "test", but "latest" has not. */
static bool begins_word(const char *name, const char *at)
{
    bool one_letter = at == name + 1 && strchr("xXyY", *name);
    return at == name || one_letter || !isalpha((unsigned char)at[-1]) ||
           (islower((unsigned char)at[-1]) && isupper((unsigned char)*at));
}

static bool is_for_test(const char *name)
{
    for (size_t i = 0; i < TEST_WORD_COUNT; i++)
        for (const char *at = name; (at = strcasestr(at, test_words[i])); at++)
            if (begins_word(name, at) && !islower((unsigned char)at[strlen(test_words[i])]))
                return true;
    return false;
}

static bool is_for_training(const char *name)
{
    return strcasestr(name, "train") != NULL;
}

/* Returns the name or pattern of the files to test with, if the folder has some. */
static char *test_files_of(const struct kind *kind, struct dirent **entries, int count, const char *wanted)
{
    for (int i = 0; i < count && kind->together; i++)
        if (fnmatch(wanted, entries[i]->d_name, FNM_PERIOD) == 0 && !is_for_training(entries[i]->d_name))
            return memory_copy_string(wanted);
    return kind->together ? NULL : memory_copy_string(listed(entries, count, wanted));
}

/* Finds the files to test with; of images and labels, only both. */
static void find_test(const struct kind *kind, struct dirent **entries, int count, struct data_files_found *found)
{
    for (size_t i = 0; i < TEST_WORD_COUNT; i++) {
        SCOPED_FREE char *wanted = with_part(found->files, "training", test_words[i]);
        if (!wanted)
            wanted = with_part(found->files, "train", test_words[i]);
        SCOPED_FREE char *files = wanted ? test_files_of(kind, entries, count, wanted) : NULL;
        SCOPED_FREE char *labels = files ? labels_of(kind, files) : NULL;
        const char *beside = listed(entries, count, labels);
        if (!files || (kind->images && !beside))
            continue;
        found->test_files = memory_copy_string(files);
        found->test_labels = memory_copy_string(beside);
        return;
    }
}

/* ---------------------------------------------------------------- files to learn from */

/* What a file of JSON Lines holds, as its first line says. */
enum content { CONTENT_NOT_READ, CONTENT_TABLE, CONTENT_TEXTS };

/* A folder that is looked through. */
struct search {
    const char *folder;
    struct dirent **entries;
    enum content *contents; /* of each entry */
    int count;
    char *lonely; /* what is missing beside the first images without labels; NULL: nothing */
};

static void search_release(struct search *search)
{
    for (int i = 0; i < search->count; i++)
        free(search->entries[i]);
    free(search->entries);
    free(search->contents);
    free(search->lonely);
}

static enum content content_of(const char *folder, const char *name)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    struct file_bytes file;
    if (file_bytes_open(path, &file, NULL) < 0)
        return CONTENT_TABLE; /* the reader of tables will report the error */
    bool texts = json_lines_are_texts(file.bytes, file.length);
    file_bytes_release(&file);
    return texts ? CONTENT_TEXTS : CONTENT_TABLE;
}

/* Several kinds have the same pattern of JSON Lines, but each file is read once: compressed ones are inflated for it. */
static bool has_content_of(const struct kind *kind, struct search *search, int entry)
{
    enum content *content = &search->contents[entry];
    const char *name = search->entries[entry]->d_name;
    if (!json_lines_named(name))
        return true;
    if (*content == CONTENT_NOT_READ)
        *content = content_of(search->folder, name);
    return (*content == CONTENT_TEXTS) == (kind->format == DATA_FORMAT_BYTES);
}

/* Returns the first file of the kind after `after`, in the order of names, that has labels beside it. */
static int next_of(const struct kind *kind, struct search *search, int after, bool training, const char **ret_labels)
{
    for (int i = after + 1; i < search->count; i++) {
        const char *name = search->entries[i]->d_name;
        if (fnmatch(kind->pattern, name, FNM_PERIOD) != 0 || is_for_training(name) != training ||
            (!training && is_for_test(name) != kind->of_test) || !has_content_of(kind, search, i))
            continue;
        SCOPED_FREE char *labels = labels_of(kind, name);
        *ret_labels = listed(search->entries, search->count, labels);
        if (*ret_labels || !kind->images)
            return i;
        if (labels && !search->lonely)
            search->lonely = memory_format("%s has no %s beside it", name, labels);
    }
    return -1;
}

/* Files with "train" in their names take precedence; those for the test are none. */
static bool find(const struct kind *kind, struct search *search, struct data_files_found *ret_found)
{
    const char *labels = NULL, *other_labels;
    bool training = true;
    int first = next_of(kind, search, -1, training, &labels);
    if (first < 0)
        first = next_of(kind, search, -1, training = false, &labels);
    if (first < 0)
        return false;
    int other = kind->together || kind->images ? -1 : next_of(kind, search, first, training, &other_labels);
    const char *name = search->entries[first]->d_name;
    *ret_found = (struct data_files_found){
        .format = data_format_words[kind->format],
        .files = memory_copy_string(kind->together ? kind->pattern : name),
        .labels = memory_copy_string(labels),
        .unused = other < 0 ? NULL : memory_copy_string(search->entries[other]->d_name),
        .of_test = kind->of_test,
    };
    find_test(kind, search->entries, search->count, ret_found);
    return true;
}

/* ---------------------------------------------------------------- folders of images */

static bool has_classes(const char *folder, const char *name, unsigned least)
{
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    return image_folder_has_classes(path, least);
}

/* Finds train/ and, to test with, val/ or a similar name in the folder; else the folder itself, if it has a folder for each class. A single
 * folder with images may be anything, such as plots beside a table, so it counts only if the caller has named the format. */
static bool find_images(const char *format, const struct search *search, struct data_files_found *ret_found)
{
    static const char *const train_words[] = {"train", "training"};
    static const char *const test_folders[] = {"val", "valid", "validation", "test", "testing"};
    unsigned least = format ? 1 : 2;
    const char *train = NULL, *test = NULL, *name;
    for (size_t i = 0; i < sizeof train_words / sizeof *train_words && !train; i++)
        if ((name = listed(search->entries, search->count, train_words[i])) && has_classes(search->folder, name, least))
            train = name;
    for (size_t i = 0; i < sizeof test_folders / sizeof *test_folders && train && !test; i++)
        if ((name = listed(search->entries, search->count, test_folders[i])) && has_classes(search->folder, name, 1))
            test = name;
    if (!train && !image_folder_has_classes(search->folder, least))
        return false;
    *ret_found = (struct data_files_found){.format = data_format_words[DATA_FORMAT_IMAGE_FOLDER],
                                           .files = memory_copy_string(train ? train : DATA_FILES_HERE),
                                           .test_files = memory_copy_string(test)};
    return true;
}

/* ---------------------------------------------------------------- what is not found */

static bool is_file(const char *folder, const char *name)
{
    struct stat status;
    SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
    return *name != '.' && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static void list_files(const struct search *search, struct buffer *out)
{
    unsigned files = 0, named = 0;
    for (int i = 0; i < search->count; i++) {
        const char *name = search->entries[i]->d_name;
        if (!is_file(search->folder, name))
            continue;
        bool fits = files++ == named && named < LISTED_FILES_MAX && out->length + strlen(name) + 2 < LIST_MAX / 2;
        if (fits && buffer_format(out, "%s%s", named > 0 ? ", " : "", name) == 0)
            named++;
    }
    if (files > named)
        buffer_format(out, " and %u more", files - named);
    if (files == 0)
        buffer_append_string(out, "no files", NULL);
}

static int refuse(const struct search *search, const char *format, struct error *error)
{
    SCOPED_BUFFER patterns = BUFFER_INIT(LIST_MAX);
    SCOPED_BUFFER files = BUFFER_INIT(LIST_MAX);
    for (size_t i = 0; i < KIND_COUNT && format; i++)
        if (is_of(&kinds[i], format) && !kinds[i].of_test)
            buffer_format(&patterns, "%s%s", patterns.length > 0 ? ", " : " (", kinds[i].pattern);
    if (format && patterns.length == 0)
        return error_set(error, ERROR_NOT_FOUND, "%s: format %s has no files to look for", search->folder, format);
    list_files(search, &files);
    return error_set(error, ERROR_NOT_FOUND,
                     "%s: no file there has a name of training data%s%s; it holds %s. Rename the files, or leave out "
                     "--data, give --format, and write the files' names into the manifest that is printed",
                     search->folder, buffer_text(&patterns), format ? ")" : "", buffer_text(&files));
}

/* ---------------------------------------------------------------- a folder or a file */

/* Finds the one file whose name is known: a table or a text. */
static int take_file(struct search *search, const char *name, const char *format, struct data_files_found *ret_found,
                     struct error *error)
{
    for (int entry = 0; entry < search->count; entry++) {
        if (strcmp(search->entries[entry]->d_name, name) != 0)
            continue;
        for (size_t i = 0; i < KIND_COUNT; i++) {
            const struct kind *kind = &kinds[i];
            if (kind->images || kind->together || !is_of(kind, format) || fnmatch(kind->pattern, name, 0) != 0 ||
                !has_content_of(kind, search, entry))
                continue;
            *ret_found =
                (struct data_files_found){.format = data_format_words[kind->format], .files = memory_copy_string(name)};
            find_test(kind, search->entries, search->count, ret_found);
            return 0;
        }
    }
    return error_set(error, ERROR_INVALID,
                     "%s/%s is a file, but not a table (*.csv, *.tsv, *.jsonl, *.ndjson) or a text (*.txt)%s%s; give "
                     "the folder that it is in (--data %s), or convert it to one of these",
                     search->folder, name, format ? " of format " : "", format ? format : "", search->folder);
}

/* Returns the path in the folder of an image that is neither PNG nor JPEG, at most `depth` folders down; NULL: there is none. Release with
 * free(). */
static char *other_image(const char *folder, unsigned depth)
{
    static const char *const ends[] = {".webp", ".gif", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".avif"};
    struct dirent **entries;
    char *found = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name, *end = strrchr(name, '.');
        for (size_t k = 0; k < sizeof ends / sizeof *ends && !found && end && end > name; k++)
            found = strcasecmp(end, ends[k]) == 0 ? memory_copy_string(name) : NULL;
        SCOPED_FREE char *path = memory_format("%s/%s", folder, name);
        SCOPED_FREE char *within = found || depth == 0 || *name == '.' ? NULL : other_image(path, depth - 1);
        if (within)
            found = memory_format("%s/%s", name, within);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return found;
}

static bool holds_files(const struct search *search)
{
    for (int i = 0; i < search->count; i++)
        if (is_file(search->folder, search->entries[i]->d_name))
            return true;
    return false;
}

static int refuse_images(const struct search *search, const char *other, struct error *error)
{
    if (other)
        return error_set(error, ERROR_INVALID,
                         "%s/%s: only PNG and JPEG images are read; convert the images, and put those of each class "
                         "into a folder that has the class's name",
                         search->folder, other);
    return error_set(error, ERROR_INVALID,
                     "%s holds images, and no folders of classes; put the images of each class into a folder that "
                     "has the class's name",
                     search->folder);
}

static int look(struct search *search, const char *format, struct data_files_found *ret_found, struct error *error)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        /* A text beside images is most likely their description, and what is missing beside others is said first. */
        bool beside = kinds[i].of_test || (kinds[i].format == DATA_FORMAT_BYTES && !format);
        if (!is_of(&kinds[i], format) || (beside && search->lonely))
            continue;
        if (kinds[i].format == DATA_FORMAT_IMAGE_FOLDER ? find_images(format, search, ret_found)
                                                        : find(&kinds[i], search, ret_found))
            return 0;
    }
    bool may_be_images = !format || strcmp(format, data_format_words[DATA_FORMAT_IMAGE_FOLDER]) == 0;
    bool has_images = may_be_images && image_folder_has_images(search->folder);
    SCOPED_FREE char *other =
        may_be_images && !holds_files(search) ? other_image(search->folder, CLASS_FOLDERS_DEPTH) : NULL;
    if (has_images || other)
        return refuse_images(search, other, error);
    return search->lonely ? error_set(error, ERROR_NOT_FOUND, "%s: %s", search->folder, search->lonely)
                          : refuse(search, format, error);
}

int data_folder_look(const char *path, const char *format, struct data_files_found *ret_found, struct error *error)
{
    struct stat status;
    bool single = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    const char *slash = single ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;
    SCOPED_FREE char *folder = !single ? memory_copy_string(path)
                               : slash ? memory_copy_bytes(path, slash > path ? (size_t)(slash - path) : 1)
                                       : memory_copy_string(".");
    SCOPED(search_release) struct search search = {.folder = folder};
    int count = scandir(folder, &search.entries, NULL, alphasort);
    if (count < 0 && errno != ENOENT)
        return error_set_errno(error, "open the folder %s", folder);
    if (count < 0) {
        SCOPED_BUFFER names = BUFFER_INIT(ERROR_MESSAGE_MAX);
        file_name_suggest(folder, &names);
        return error_set(error, ERROR_NOT_FOUND, "there is no file or folder %s%s", folder, buffer_text(&names));
    }
    search.count = count;
    search.contents = memory_allocate((size_t)count, sizeof *search.contents);
    if ((single ? take_file(&search, name, format, ret_found, error) : look(&search, format, ret_found, error)) < 0)
        return -1;
    ret_found->folder = memory_copy_string(folder);
    return 0;
}

bool data_files_usual(const char *format, struct data_files_found *ret_found)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (!is_of(&kinds[i], format) || !kinds[i].usual)
            continue;
        *ret_found = (struct data_files_found){.format = data_format_words[kinds[i].format],
                                               .files = memory_copy_string(kinds[i].usual),
                                               .labels = labels_of(&kinds[i], kinds[i].usual)};
        return true;
    }
    return false;
}

void data_files_release(struct data_files_found *found)
{
    free(found->folder);
    free(found->files);
    free(found->labels);
    free(found->test_files);
    free(found->test_labels);
    free(found->unlabelled);
    free(found->unused);
    *found = (struct data_files_found){.format = NULL};
}
