/* SPDX-License-Identifier: Apache-2.0 */
#include "common/data/image_folder.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/directory.h"
#include "common/memory.h"

static char root[] = "/tmp/coxswain-images-XXXXXX";

static void setup(void)
{
    cr_assert(mkdtemp(root));
}

static void teardown(void)
{
    directory_remove(root);
}

TestSuite(image_folder, .init = setup, .fini = teardown);

static void put(const char *name)
{
    SCOPED_FREE char *path = memory_format("%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    if (path[strlen(path) - 1] == '/')
        return;
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert_geq(file, 0);
    close(file);
}

static void refused(const char *words)
{
    struct image_folder folder;
    struct error error = ERROR_INIT;
    cr_expect_eq(image_folder_list(root, &folder, &error), -1);
    cr_expect(strstr(error.message, words), "%s", error.message);
    cr_expect(strstr(error.message, root), "%s", error.message);
}

Test(image_folder, classes_and_images_are_in_the_order_of_their_names)
{
    static const struct {
        const char *path;
        unsigned class;
    } wanted[] = {{"Zebra/1.png", 0}, {"cats/a-b.JPG", 1}, {"cats/a/1.jpeg", 1}, {"cats/a/nested/2.png", 1},
                  {"cats/b.png", 1},  {"dogs/10.png", 2},  {"dogs/9.png", 2}};
    const char *names[] = {"dogs/9.png",          "dogs/10.png",      "cats/b.png",     "cats/a/1.jpeg",
                           "cats/a/nested/2.png", "cats/a-b.JPG",     "Zebra/1.png",    ".cache/x.png",
                           "lost+found/x.png",    "cats/.hidden.png", "cats/notes.txt", "README.md"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(names[i]);
    struct image_folder folder;
    struct error error = ERROR_INIT;
    cr_assert_eq(image_folder_list(root, &folder, &error), 0, "%s", error.message);
    cr_assert_eq(folder.class_count, 3u);
    cr_expect_str_eq(folder.classes[0], "Zebra");
    cr_expect_str_eq(folder.classes[1], "cats");
    cr_assert_eq(folder.count, (int64_t)(sizeof wanted / sizeof *wanted));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        cr_expect_str_eq(folder.files[i].path, wanted[i].path);
        cr_expect_eq(folder.files[i].class, wanted[i].class);
    }
    image_folder_release(&folder);
    cr_expect(image_folder_has_classes(root, 3) && !image_folder_has_classes(root, 4));
    cr_expect(!image_folder_has_images(root));
    cr_assert_eq(image_folder_list_all(root, &folder, &error), 0, "%s", error.message);
    cr_expect_eq(folder.count, (int64_t)(sizeof wanted / sizeof *wanted));
    cr_expect_eq(folder.class_count, 0u);
    image_folder_release(&folder);
}

Test(image_folder, more_images_than_are_allocated_at_first)
{
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "%c/%03d.png", i % 2 ? 'a' : 'b', i);
        put(name);
    }
    struct image_folder folder;
    struct error error = ERROR_INIT;
    cr_assert_eq(image_folder_list(root, &folder, &error), 0, "%s", error.message);
    cr_assert_eq(folder.count, 300);
    cr_expect_str_eq(folder.files[299].path, "b/298.png");
    image_folder_release(&folder);
}

Test(image_folder, one_image_is_a_folder_of_one)
{
    put("a/1.png");
    struct image_folder folder;
    struct error error = ERROR_INIT;
    SCOPED_FREE char *path = memory_format("%s/a/1.png", root);
    cr_assert_eq(image_folder_list_all(path, &folder, &error), 0, "%s", error.message);
    cr_assert_eq(folder.count, 1);
    cr_expect_str_eq(folder.files[0].path, "1.png");
    image_folder_release(&folder);
}

Test(image_folder, no_folder_of_a_class)
{
    put("a.png");
    cr_expect(image_folder_has_images(root));
    refused("there is no folder of a class; put the images of each class into a folder");
}

Test(image_folder, a_class_without_images)
{
    put("cats/1.png");
    put("dogs/notes.txt");
    refused("dogs: the folder of this class holds no PNG or JPEG file; take it out");
}

Test(image_folder, an_image_beside_the_classes)
{
    put("cats/1.png");
    put("2.jpg");
    refused("2.jpg lies beside the folders of the classes");
}

Test(image_folder, images_of_other_kinds_are_not_passed_over)
{
    put("cats/1.png");
    put("cats/2.WebP");
    refused("cats/2.WebP: only PNG and JPEG files are read; convert it, or take it out");
}

Test(image_folder, folders_that_lie_too_deep)
{
    put("cats/1/2/3/4/5/6/7/8/9/1.png");
    refused("folders lie deeper than 8 within one another");
}
