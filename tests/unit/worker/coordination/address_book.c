/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/address_book.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/contract/environment.h"

struct shelf {
    char path[64];
    sem_t found;
    struct address_book *book;
};

static void one_found(void *context)
{
    sem_post(&((struct shelf *)context)->found);
}

static void publish(const struct shelf *shelf, const char *text)
{
    FILE *file = fopen(shelf->path, "we");
    fputs(text, file);
    fclose(file);
}

static void shelf_open(struct shelf *shelf, const char *hosts)
{
    static const struct crew_seat seats[2] = {{"worker", 0, "book-0.crew.invalid", 1},
                                              {"worker", 1, "book-1.crew.invalid", 1}};
    snprintf(shelf->path, sizeof(shelf->path), "/tmp/coxswain-hosts-XXXXXX");
    close(mkstemp(shelf->path));
    publish(shelf, hosts);
    setenv(ENV_HOSTS_FILE, shelf->path, 1);
    sem_init(&shelf->found, 0, 0);
    cr_assert_eq(address_book_new(seats, 2, one_found, shelf, &shelf->book, NULL), 0);
}

static void shelf_close(struct shelf *shelf)
{
    address_book_free(shelf->book);
    sem_destroy(&shelf->found);
    unlink(shelf->path);
}

static void expect(struct shelf *shelf, unsigned rank, const char *expected)
{
    char address[RESOLVE_ADDRESS_MAX];
    cr_assert_not(address_book_ask(shelf->book, rank, address), "an answer without a look-up");
    sem_wait(&shelf->found);
    cr_assert(address_book_ask(shelf->book, rank, address));
    cr_assert_str_eq(address, expected);
}

Test(address_book, every_question_is_looked_up_afresh, .timeout = 120)
{
    struct shelf shelf;
    shelf_open(&shelf, "127.1.0.1 book-0.crew.invalid\n127.1.0.2 book-1.crew.invalid\n");
    expect(&shelf, 0, "127.1.0.1");
    expect(&shelf, 1, "127.1.0.2");
    publish(&shelf, "127.1.0.9 book-1.crew.invalid\n");
    expect(&shelf, 1, "127.1.0.9");
    shelf_close(&shelf);
}

Test(address_book, knows_what_it_has_not_found, .timeout = 120)
{
    struct shelf shelf;
    char address[RESOLVE_ADDRESS_MAX];
    shelf_open(&shelf, "127.1.0.1 book-0.crew.invalid\n");
    cr_assert_not(address_book_lacks(shelf.book, 1), "nobody has asked");
    while (!address_book_lacks(shelf.book, 1)) {
        cr_assert_not(address_book_ask(shelf.book, 1, address));
        usleep(1000);
    }
    expect(&shelf, 0, "127.1.0.1");
    cr_assert_not(address_book_lacks(shelf.book, 0));
    publish(&shelf, "127.1.0.9 book-1.crew.invalid\n");
    while (!address_book_ask(shelf.book, 1, address))
        usleep(1000);
    cr_assert_not(address_book_lacks(shelf.book, 1));
    shelf_close(&shelf);
}

Test(address_book, may_be_closed_with_a_question_open, .timeout = 120)
{
    struct shelf shelf;
    char address[RESOLVE_ADDRESS_MAX];
    shelf_open(&shelf, "");
    cr_assert_not(address_book_ask(shelf.book, 0, address));
    shelf_close(&shelf);
}
