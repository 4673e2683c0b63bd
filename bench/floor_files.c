/* bench/floor_files: the least that changing a file, or keeping a record of it, can cost.
 *
 *   floor-files rewrite [--runs N] [--no-sync] [--samples FILE] PATH
 *   floor-files record  [--runs N] [--samples FILE] DATABASE
 *
 * rewrite: read the file, write it with one line more beside it, fsync (unless told not to), rename
 * over it, fsync the directory; so that a power cut leaves the old file or the new one. record: one
 * row into a fresh SQLite database in a transaction of its own (WAL, synchronous FULL, so each is
 * an fsync). Each run is a sample; prints one JSON line.
 */
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1u << 20)

struct options {
    uint64_t runs;
    bool no_sync;
    const char *samples;
    char *path;
};

static void write_or_die(int fd, const char *bytes, size_t n)
{
    if (write(fd, bytes, n) != (ssize_t)n)
        die("write: %m");
}

static void sync_or_die(const struct options *o, int fd)
{
    if (!o->no_sync && fsync(fd) < 0)
        die("fsync: %m");
}

static void rewrite(const struct options *o, int dir, const char *name)
{
    static char bytes[FILE_MAX];
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    if (n < 0)
        die("read %s: %m", name);
    close(fd);
    fd = openat(dir, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        die("create: %m");
    write_or_die(fd, bytes, (size_t)n);
    write_or_die(fd, "one line\n", 9);
    sync_or_die(o, fd);
    close(fd);
    if (renameat(dir, ".new", dir, name) < 0)
        die("rename: %m");
    sync_or_die(o, dir);
}

static void run_rewrite(const struct options *o, struct samples *s)
{
    char *copy = strdup(o->path);
    char *name = strdup(o->path);
    if (copy == NULL || name == NULL)
        die("no memory");
    int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        die("open the directory: %m");
    for (uint64_t i = 0; i < o->runs; i++) {
        uint64_t start = now_ns();
        rewrite(o, dir, basename(name));
        samples_add(s, now_ns() - start);
    }
    close(dir);
    free(copy);
    free(name);
}

static void sql(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        die("%s: %s", text, sqlite3_errmsg(db));
}

static void run_record(const struct options *o, struct samples *s)
{
    sqlite3 *db;
    sqlite3_stmt *insert;
    if (sqlite3_open(o->path, &db) != SQLITE_OK)
        die("open the database: %s", sqlite3_errmsg(db));
    sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE t (id INTEGER PRIMARY KEY, what TEXT, before TEXT, after TEXT) STRICT");
    if (sqlite3_prepare_v2(db, "INSERT INTO t (what, before, after) VALUES ('patch', ?1, ?1)", -1,
                           &insert, NULL) != SQLITE_OK)
        die("prepare: %s", sqlite3_errmsg(db));
    char version[72];
    memset(version, 'a', sizeof(version));
    for (uint64_t i = 0; i < o->runs; i++) {
        uint64_t start = now_ns();
        sqlite3_bind_text(insert, 1, version, sizeof(version), SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE)
            die("insert: %s", sqlite3_errmsg(db));
        sqlite3_reset(insert);
        samples_add(s, now_ns() - start);
    }
    sqlite3_finalize(insert);
    sqlite3_close(db);
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"runs", required_argument, NULL, 'n'},
        {"samples", required_argument, NULL, 's'},
        {"no-sync", no_argument, NULL, 'q'},
        {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0) {
        if (c == 'n')
            o->runs = number_or_die(optarg);
        else if (c == 's')
            o->samples = optarg;
        else if (c == 'q')
            o->no_sync = true;
        else
            exit(2);
    }
    if (argc - optind != 2)
        die("rewrite or record, and a path");
    o->path = argv[optind + 1];
}

int main(int argc, char **argv)
{
    struct options o = {.runs = 100};
    struct samples s = {0};
    parse(argc, argv, &o);
    if (strcmp(argv[optind], "rewrite") == 0)
        run_rewrite(&o, &s);
    else if (strcmp(argv[optind], "record") == 0)
        run_record(&o, &s);
    else
        die("%s: rewrite or record", argv[optind]);
    samples_save(&s, o.samples);
    printf("{");
    samples_print(&s);
    printf("}\n");
    return 0;
}
