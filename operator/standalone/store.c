/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/memory.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS objects (resource TEXT, namespace TEXT, name TEXT, uid TEXT, body TEXT,"
    " PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS objects_by_uid ON objects (uid);"
    "CREATE INDEX IF NOT EXISTS objects_by_namespace ON objects (namespace);"
    "CREATE TABLE IF NOT EXISTS owners (owner TEXT, resource TEXT, namespace TEXT, name TEXT,"
    " PRIMARY KEY (owner, resource, namespace, name)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS owners_by_object ON owners (resource, namespace, name);"
    "CREATE TABLE IF NOT EXISTS changes (revision INTEGER PRIMARY KEY, resource TEXT, change INTEGER, body TEXT,"
    " previous TEXT);"
    "CREATE INDEX IF NOT EXISTS changes_by_resource ON changes (resource, revision);"
    "CREATE TABLE IF NOT EXISTS revisions (newest INTEGER, compacted INTEGER);"
    "INSERT INTO revisions SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM revisions);";

#define AFTER_KEY " AND (namespace, name) > (?3, ?4)"
#define STATEMENTS(X)                                                                                                  \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ROLLBACK, "ROLLBACK")                                                                                            \
    X(READ_REVISIONS, "SELECT newest, compacted FROM revisions")                                                       \
    X(WRITE_REVISIONS, "UPDATE revisions SET newest = ?1, compacted = ?2")                                             \
    X(GET, "SELECT body FROM objects WHERE resource = ?1 AND namespace = ?2 AND name = ?3")                            \
    X(PUT, "INSERT OR REPLACE INTO objects VALUES (?1, ?2, ?3, ?4, ?5)")                                               \
    X(REMOVE, "DELETE FROM objects WHERE resource = ?1 AND namespace = ?2 AND name = ?3")                              \
    X(FORGET_OWNERS, "DELETE FROM owners WHERE resource = ?1 AND namespace = ?2 AND name = ?3")                        \
    X(ADD_OWNER, "INSERT OR IGNORE INTO owners VALUES (?4, ?1, ?2, ?3)")                                               \
    X(LOG, "INSERT INTO changes VALUES (?1, ?2, ?3, ?4, ?5)")                                                          \
    X(LIST, "SELECT body FROM objects WHERE resource = ?1" AFTER_KEY " ORDER BY namespace, name")                      \
    X(LIST_IN, "SELECT body FROM objects WHERE resource = ?1 AND namespace = ?2" AFTER_KEY " ORDER BY name")           \
    X(COUNT_ALL, "SELECT count(*) FROM objects WHERE resource = ?1" AFTER_KEY)                                         \
    X(COUNT_IN, "SELECT count(*) FROM objects WHERE resource = ?1 AND namespace = ?2" AFTER_KEY)                       \
    X(CHANGES, "SELECT change, body, previous FROM changes WHERE resource = ?1 AND revision > ?2 ORDER BY revision")   \
    X(COMPACT, "DELETE FROM changes WHERE revision <= ?1")                                                             \
    X(DEPENDENTS, "SELECT resource, namespace, name FROM owners WHERE owner = ?1")                                     \
    X(HAS_UID, "SELECT 1 FROM objects WHERE uid = ?1")                                                                 \
    X(KEYS, "SELECT resource, namespace, name FROM objects")                                                           \
    X(KEYS_IN, "SELECT resource, namespace, name FROM objects WHERE namespace = ?1")

enum statement {
#define X(name, sql) STATEMENT_##name,
    STATEMENTS(X)
#undef X
        STATEMENT_COUNT
};

static const char *const statement_sql[] = {
#define X(name, sql) [STATEMENT_##name] = sql,
    STATEMENTS(X)
#undef X
};

struct store {
    sqlite3 *database;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int64_t revision, compacted;
    int64_t committed_revision, committed_compacted;
    bool dirty;
};

static int fail(struct store *store, struct error *error, const char *doing)
{
    int code = sqlite3_errcode(store->database);
    enum error_kind kind = code == SQLITE_FULL      ? ERROR_NO_SPACE
                           : code == SQLITE_CORRUPT ? ERROR_CORRUPT
                           : code == SQLITE_BUSY    ? ERROR_UNAVAILABLE
                                                    : ERROR_SYSTEM;
    return error_set(error, kind, "store: cannot %s: %s", doing, sqlite3_errmsg(store->database));
}

/* Resets a statement when the block that used it ends. */
static void statement_reset(sqlite3_stmt **statement)
{
    sqlite3_reset(*statement);
    sqlite3_clear_bindings(*statement);
}
#define SCOPED_STATEMENT SCOPED(statement_reset) sqlite3_stmt

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    if (text)
        sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, index);
}

static void bind_key(sqlite3_stmt *statement, const struct store_key *key)
{
    bind_text(statement, 1, key->resource);
    bind_text(statement, 2, key->namespace);
    bind_text(statement, 3, key->name);
}

static int execute(struct store *store, enum statement which, struct error *error, const char *doing)
{
    SCOPED_STATEMENT *statement = store->statements[which];
    return sqlite3_step(statement) == SQLITE_DONE ? 0 : fail(store, error, doing);
}

static const char *column_text(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

static int column_object(sqlite3_stmt *statement, int column, struct json **ret_object, struct error *error)
{
    const char *text = column_text(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);
    *ret_object = NULL;
    if (text == NULL)
        return 0;
    if (json_parse(text, length, STORE_OBJECT_MAX, ret_object, error) < 0)
        return error_wrap(error, "store: an object on disk");
    return 0;
}

/* ---- open and close ---- */

static int read_revisions(struct store *store, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_READ_REVISIONS];
    if (sqlite3_step(statement) != SQLITE_ROW)
        return fail(store, error, "read the revision");
    store->revision = store->committed_revision = sqlite3_column_int64(statement, 0);
    store->compacted = store->committed_compacted = sqlite3_column_int64(statement, 1);
    return 0;
}

static int prepare(struct store *store, struct error *error)
{
    for (int i = 0; i < STATEMENT_COUNT; i++)
        if (sqlite3_prepare_v3(store->database, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &store->statements[i],
                               NULL) != SQLITE_OK)
            return fail(store, error, "prepare a statement");
    return 0;
}

/* One process a database: the lock is taken at once and kept. */
static const char settings[] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                               "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096;";

static int initialise(struct store *store, const char *path, struct error *error)
{
    mode_t mask = umask(0077);
    int opened = sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    umask(mask);
    if (opened != SQLITE_OK)
        return fail(store, error, path);
    if (sqlite3_exec(store->database, settings, NULL, NULL, NULL) != SQLITE_OK)
        return fail(store, error, "open the database (does another coxswain-standalone use this directory?)");
    if (sqlite3_exec(store->database, schema, NULL, NULL, NULL) != SQLITE_OK)
        return fail(store, error, "create the tables");
    /* The log is durable and is taken up by the next start: to copy it would only delay the end. */
    sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (prepare(store, error) < 0)
        return -1;
    return read_revisions(store, error);
}

int store_open(const char *path, struct store **ret_store, struct error *error)
{
    struct store *store = memory_allocate(1, sizeof *store);
    if (initialise(store, path, error) < 0) {
        store_close(store);
        return -1;
    }
    *ret_store = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    store_rollback(store);
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close(store->database);
    free(store);
}

/* ---- transactions ---- */

static int begin(struct store *store, struct error *error)
{
    if (store->dirty)
        return 0;
    if (execute(store, STATEMENT_BEGIN, error, "begin a transaction") < 0)
        return -1;
    store->dirty = true;
    return 0;
}

static int write_revisions(struct store *store, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_WRITE_REVISIONS];
    sqlite3_bind_int64(statement, 1, store->revision);
    sqlite3_bind_int64(statement, 2, store->compacted);
    return sqlite3_step(statement) == SQLITE_DONE ? 0 : fail(store, error, "write the revision");
}

int store_commit(struct store *store, struct error *error)
{
    if (!store->dirty)
        return 0;
    if (write_revisions(store, error) < 0 || execute(store, STATEMENT_COMMIT, error, "commit") < 0) {
        store_rollback(store);
        return -1;
    }
    store->dirty = false;
    store->committed_revision = store->revision;
    store->committed_compacted = store->compacted;
    return 0;
}

void store_rollback(struct store *store)
{
    if (!store->dirty)
        return;
    execute(store, STATEMENT_ROLLBACK, NULL, "roll back");
    store->dirty = false;
    store->revision = store->committed_revision;
    store->compacted = store->committed_compacted;
}

bool store_is_dirty(const struct store *store)
{
    return store->dirty;
}

int64_t store_revision(const struct store *store)
{
    return store->revision;
}

int64_t store_compacted_revision(const struct store *store)
{
    return store->compacted;
}

/* ---- objects ---- */

int store_get(struct store *store, const struct store_key *key, struct json **ret_object, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_GET];
    bind_key(statement, key);
    int step = sqlite3_step(statement);
    if (step == SQLITE_DONE)
        return error_set(error, ERROR_NOT_FOUND, "%s \"%s\" not found", key->resource, key->name);
    if (step != SQLITE_ROW)
        return fail(store, error, "read an object");
    return column_object(statement, 0, ret_object, error);
}

static int log_change(struct store *store, const struct store_key *key, enum store_change change, const char *body,
                      const char *previous, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_LOG];
    sqlite3_bind_int64(statement, 1, store->revision);
    bind_text(statement, 2, key->resource);
    sqlite3_bind_int(statement, 3, change);
    bind_text(statement, 4, body);
    bind_text(statement, 5, previous);
    return sqlite3_step(statement) == SQLITE_DONE ? 0 : fail(store, error, "log a change");
}

static int read_text(struct store *store, const struct store_key *key, char **ret_text, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_GET];
    bind_key(statement, key);
    int step = sqlite3_step(statement);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        return fail(store, error, "read an object");
    *ret_text = step == SQLITE_ROW ? memory_copy_string(column_text(statement, 0)) : NULL;
    return 0;
}

static int write_object(struct store *store, const struct store_key *key, const char *uid, const char *body,
                        struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_PUT];
    bind_key(statement, key);
    bind_text(statement, 4, uid);
    bind_text(statement, 5, body);
    return sqlite3_step(statement) == SQLITE_DONE ? 0 : fail(store, error, "write an object");
}

static int execute_on_key(struct store *store, enum statement which, const struct store_key *key, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[which];
    bind_key(statement, key);
    return sqlite3_step(statement) == SQLITE_DONE ? 0 : fail(store, error, "change an object");
}

static int write_owners(struct store *store, const struct store_key *key, const struct json *object,
                        struct error *error)
{
    if (execute_on_key(store, STATEMENT_FORGET_OWNERS, key, error) < 0)
        return -1;
    const struct json *owners = json_at(object, "metadata.ownerReferences");
    for (const struct json *owner = json_first(owners); owner; owner = json_next(owner)) {
        SCOPED_STATEMENT *statement = store->statements[STATEMENT_ADD_OWNER];
        bind_key(statement, key);
        bind_text(statement, 4, json_string_at(owner, "uid", ""));
        if (sqlite3_step(statement) != SQLITE_DONE)
            return fail(store, error, "write an owner");
    }
    return 0;
}

static void stamp_revision(struct store *store, struct json *object)
{
    char revision[24];
    store->revision++;
    snprintf(revision, sizeof revision, "%" PRId64, store->revision);
    json_set_string(json_set_object(object, "metadata"), "resourceVersion", revision);
}

/* A statement that fails in the middle of a write leaves the transaction half done: take all of it back. */
static int undo(struct store *store)
{
    store_rollback(store);
    return -1;
}

/* The object gets the next revision. Gives its text and that of the one before. */
static int begin_change(struct store *store, const struct store_key *key, struct json *object, char **ret_previous,
                        struct buffer *ret_text, struct error *error)
{
    if (begin(store, error) < 0 || read_text(store, key, ret_previous, error) < 0)
        return -1;
    stamp_revision(store, object);
    if (json_print(object, ret_text, error) == 0)
        return 0;
    store->revision--;
    return error_wrap(error, "%s \"%s\" is too large", key->resource, key->name);
}

int store_put(struct store *store, const struct store_key *key, struct json *object, struct error *error)
{
    SCOPED_BUFFER body = BUFFER_INIT(STORE_OBJECT_MAX);
    SCOPED_FREE char *previous = NULL;
    if (begin_change(store, key, object, &previous, &body, error) < 0)
        return -1;
    if (write_object(store, key, json_string_at(object, "metadata.uid", ""), buffer_text(&body), error) < 0 ||
        write_owners(store, key, object, error) < 0 ||
        log_change(store, key, previous ? STORE_MODIFIED : STORE_ADDED, buffer_text(&body), previous, error) < 0)
        return undo(store);
    return 0;
}

int store_remove(struct store *store, const struct store_key *key, struct json *object, struct error *error)
{
    SCOPED_BUFFER body = BUFFER_INIT(STORE_OBJECT_MAX);
    SCOPED_FREE char *previous = NULL;
    if (begin_change(store, key, object, &previous, &body, error) < 0)
        return -1;
    if (execute_on_key(store, STATEMENT_REMOVE, key, error) < 0 ||
        execute_on_key(store, STATEMENT_FORGET_OWNERS, key, error) < 0 ||
        log_change(store, key, STORE_DELETED, buffer_text(&body), previous, error) < 0)
        return undo(store);
    return 0;
}

/* ---- lists ---- */

static void bind_list(sqlite3_stmt *statement, const char *resource, const char *namespace, const char *after_namespace,
                      const char *after_name)
{
    bind_text(statement, 1, resource);
    if (namespace)
        bind_text(statement, 2, namespace);
    bind_text(statement, 3, after_namespace ? after_namespace : "");
    bind_text(statement, 4, after_name ? after_name : "");
}

int store_list(struct store *store, const char *resource, const char *namespace, const char *after_namespace,
               const char *after_name, store_visitor *visit, void *context, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[namespace ? STATEMENT_LIST_IN : STATEMENT_LIST];
    bind_list(statement, resource, namespace, after_namespace, after_name);
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        struct json *object;
        if (column_object(statement, 0, &object, error) < 0)
            return -1;
        if (!visit(context, object))
            return 0;
    }
    return step == SQLITE_DONE ? 0 : fail(store, error, "list objects");
}

int store_count(struct store *store, const char *resource, const char *namespace, const char *after_namespace,
                const char *after_name, int64_t *ret_count, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[namespace ? STATEMENT_COUNT_IN : STATEMENT_COUNT_ALL];
    bind_list(statement, resource, namespace, after_namespace, after_name);
    if (sqlite3_step(statement) != SQLITE_ROW)
        return fail(store, error, "count objects");
    *ret_count = sqlite3_column_int64(statement, 0);
    return 0;
}

static int visit_change(sqlite3_stmt *statement, store_change_visitor *visit, void *context, bool *ret_more,
                        struct error *error)
{
    struct json *object, *previous;
    if (column_object(statement, 1, &object, error) < 0)
        return -1;
    if (column_object(statement, 2, &previous, error) < 0) {
        json_free(object);
        return -1;
    }
    *ret_more = visit(context, (enum store_change)sqlite3_column_int(statement, 0), object, previous);
    return 0;
}

int store_changes(struct store *store, const char *resource, int64_t revision, store_change_visitor *visit,
                  void *context, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_CHANGES];
    bind_text(statement, 1, resource);
    sqlite3_bind_int64(statement, 2, revision);
    int step;
    bool more = true;
    while (more && (step = sqlite3_step(statement)) == SQLITE_ROW)
        if (visit_change(statement, visit, context, &more, error) < 0)
            return -1;
    return !more || step == SQLITE_DONE ? 0 : fail(store, error, "read the log of changes");
}

int store_compact(struct store *store, int64_t keep, struct error *error)
{
    int64_t newest_forgotten = store->revision - keep;
    if (newest_forgotten <= store->compacted)
        return 0;
    if (begin(store, error) < 0)
        return -1;
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_COMPACT];
    sqlite3_bind_int64(statement, 1, newest_forgotten);
    if (sqlite3_step(statement) != SQLITE_DONE)
        return fail(store, error, "compact the log of changes");
    store->compacted = newest_forgotten;
    return 0;
}

/* ---- keys ---- */

static int collect_keys(struct store *store, sqlite3_stmt *statement, struct json **ret_keys, struct error *error)
{
    SCOPED_JSON *keys = json_new_array();
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        struct json *key = json_append(keys, json_new_object());
        json_set_string(key, "resource", column_text(statement, 0));
        json_set_string(key, "namespace", column_text(statement, 1));
        json_set_string(key, "name", column_text(statement, 2));
    }
    if (step != SQLITE_DONE)
        return fail(store, error, "list keys");
    *ret_keys = keys;
    keys = NULL;
    return 0;
}

int store_dependents(struct store *store, const char *owner_uid, struct json **ret_keys, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_DEPENDENTS];
    bind_text(statement, 1, owner_uid);
    return collect_keys(store, statement, ret_keys, error);
}

int store_has_uid(struct store *store, const char *uid, bool *ret_found, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[STATEMENT_HAS_UID];
    bind_text(statement, 1, uid);
    int step = sqlite3_step(statement);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        return fail(store, error, "look for a uid");
    *ret_found = step == SQLITE_ROW;
    return 0;
}

int store_keys(struct store *store, const char *namespace, struct json **ret_keys, struct error *error)
{
    SCOPED_STATEMENT *statement = store->statements[namespace ? STATEMENT_KEYS_IN : STATEMENT_KEYS];
    if (namespace)
        bind_text(statement, 1, namespace);
    return collect_keys(store, statement, ret_keys, error);
}
