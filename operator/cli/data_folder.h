/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the training files in a folder for `cox generate --data`, by the names that files of each data format
 * usually have. A name with "train" takes precedence, and one with "test", "t10k", "val", "valid" or "validation" is
 * not that of a file to learn from, unless images (IDX) or an array (NPY) with labels have it and nothing else is there. Labels may have
 * their name in another case (X.npy, Y.npy). Images are found in a folder for each class, or in the folders train and val (valid,
 * validation, test, testing) with a folder for each class in them. The first line of a JSON Lines file says whether it is a table or texts;
 * the contents of other files are not read: data_shape.h does that.
 */
#ifndef COXSWAIN_CLI_DATA_FOLDER_H
#define COXSWAIN_CLI_DATA_FOLDER_H

#include "common/error.h"

/* `files` if the folders of classes are in the given folder itself: the job need not name it. */
#define DATA_FILES_HERE "."

/* File names as data.train takes them: of the images or the text, or a pattern for all files, and
 * of the labels if they are in a file of their own. */
struct data_files_found {
    const char *format; /* a word of data_format_words */
    char *folder;       /* that they are in; NULL: only usual names */
    char *files;
    char *labels; /* NULL: none, or in the same files */
    /* The same of the files to test with, named like the others with "test" for "train"; NULL: none. */
    char *test_files, *test_labels;
    char *unlabelled; /* a table to test with that has no labels, so that it is none (data_shape_read); NULL: none */
    char *unused;     /* the next file that could be learned from instead of `files`; NULL: none */
    bool of_test;     /* `files` are by their name those of a test, and the only ones there */
};

/* Looks in the folder `path` for files of `format`, or of any format if that is NULL. If `path` is a file, this is the table or text to
 * learn from. Release the result with data_files_release. ERROR_NOT_FOUND names the files that are there, or the labels that are
 * missing; ERROR_INVALID is for a file that is neither a table nor a text. */
int data_folder_look(const char *path, const char *format, struct data_files_found *ret_found, struct error *error);
/* Sets the usual names of files of `format`. Returns false if the format is unknown or has no
 * files. */
bool data_files_usual(const char *format, struct data_files_found *ret_found);
void data_files_release(struct data_files_found *found);

#endif
