/* SPDX-License-Identifier: Apache-2.0
 *
 * Which training files a folder holds, by the names that such files usually have.
 */
#ifndef COXSWAIN_CLI_DATA_FOLDER_H
#define COXSWAIN_CLI_DATA_FOLDER_H

#include "common/error.h"

/* Names as data.train has them: of the images, the text or all files (with a *), and of the labels where those are apart. */
struct data_files_found {
    const char *format; /* a word of data_format_words */
    char *files;
    char *labels; /* NULL: there are none, or they are in the same files */
};

/* Of that format, or of any with `format` NULL; release with data_files_release. ERROR_NOT_FOUND says what was looked for. */
int data_folder_look(const char *folder, const char *format, struct data_files_found *ret_found, struct error *error);
/* The names that files of that format usually have; false where there are no files, or no such format. */
bool data_files_usual(const char *format, struct data_files_found *ret_found);
void data_files_release(struct data_files_found *found);

#endif
