/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/address_book.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/lock.h"
#include "common/memory.h"

#define ENTRIES_MAX (CREW_SIZE_MAX + 1) /* all of one kind, and a chief */

enum entry_state { ENTRY_IDLE, ENTRY_WANTED, ENTRY_FOUND };

struct entry {
    char *host;
    enum entry_state state;
    bool lacking; /* the last lookup has found nothing */
    char address[RESOLVE_ADDRESS_MAX];
};

struct address_book {
    struct entry entries[ENTRIES_MAX];
    unsigned size;
    void (*found)(void *context);
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool stopping;
};

static struct entry *next_wanted(struct address_book *book)
{
    for (unsigned rank = 0; rank < book->size; rank++)
        if (book->entries[rank].state == ENTRY_WANTED)
            return &book->entries[rank];
    return NULL;
}

static void look_up(struct address_book *book, struct entry *entry)
{
    char address[RESOLVE_ADDRESS_MAX];
    pthread_mutex_unlock(&book->lock);
    bool found = resolve_host(entry->host, address, NULL) == 0;
    pthread_mutex_lock(&book->lock);
    entry->state = found ? ENTRY_FOUND : ENTRY_IDLE;
    entry->lacking = !found;
    if (!found)
        return;
    memcpy(entry->address, address, sizeof(address));
    pthread_mutex_unlock(&book->lock);
    book->found(book->context);
    pthread_mutex_lock(&book->lock);
}

static void *book_run(void *context)
{
    struct address_book *book = context;
    SCOPED_LOCK(&book->lock);
    while (!book->stopping) {
        struct entry *entry = next_wanted(book);
        if (entry == NULL)
            pthread_cond_wait(&book->changed, &book->lock);
        else
            look_up(book, entry);
    }
    return NULL;
}

static void book_release(struct address_book *book)
{
    for (unsigned rank = 0; rank < book->size; rank++)
        free(book->entries[rank].host);
    pthread_cond_destroy(&book->changed);
    pthread_mutex_destroy(&book->lock);
    free(book);
}

int address_book_new(const struct crew_seat *seats, unsigned size, void (*found)(void *context), void *context,
                     struct address_book **ret_book, struct error *error)
{
    if (size > ENTRIES_MAX)
        return error_set(error, ERROR_INVALID, "%u names are more than %d", size, ENTRIES_MAX);
    struct address_book *book = memory_allocate(1, sizeof(*book));
    book->size = size;
    book->found = found;
    book->context = context;
    for (unsigned rank = 0; rank < size; rank++)
        book->entries[rank].host = memory_copy_string(seats[rank].host);
    pthread_mutex_init(&book->lock, NULL);
    pthread_cond_init(&book->changed, NULL);
    errno = pthread_create(&book->thread, NULL, book_run, book);
    if (errno != 0) {
        error_set_errno(error, "cannot start the thread that looks up host names");
        book_release(book);
        return -1;
    }
    *ret_book = book;
    return 0;
}

void address_book_free(struct address_book *book)
{
    if (book == NULL)
        return;
    pthread_mutex_lock(&book->lock);
    book->stopping = true;
    pthread_cond_signal(&book->changed);
    pthread_mutex_unlock(&book->lock);
    pthread_join(book->thread, NULL);
    book_release(book);
}

bool address_book_ask(struct address_book *book, unsigned rank, char ret_address[RESOLVE_ADDRESS_MAX])
{
    struct entry *entry = &book->entries[rank];
    SCOPED_LOCK(&book->lock);
    bool found = entry->state == ENTRY_FOUND;
    if (found)
        memcpy(ret_address, entry->address, sizeof(entry->address));
    entry->state = found ? ENTRY_IDLE : ENTRY_WANTED;
    pthread_cond_signal(&book->changed);
    return found;
}

bool address_book_lacks(struct address_book *book, unsigned rank)
{
    SCOPED_LOCK(&book->lock);
    bool lacking = book->entries[rank].lacking;
    return lacking;
}
