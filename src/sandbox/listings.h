/* sandbox/listings: what directories held when they were read, remembered for the next walk.
 *
 * Theory. A warm start looks for nested repositories before the command and after it, and nearly
 * always nothing has changed since. Whatever changes the entries of a directory changes its ctime,
 * which nobody inside can set; so a listing is known by device, inode and ctime (mtime, size and
 * links are compared as well), and is right for whoever finds a directory that still has them, by
 * whatever path. Only what the search looks at is kept: directories, and entries called
 * LISTINGS_NAME or LISTINGS_HEAD, with their places in the order of reading, and how many entries
 * there were.
 *
 * A listing is kept only when the ctime was older than the moment before the reading by more than
 * the clock's step (git calls the others "racily clean"), on file systems of the kernel's own that
 * promise the above. On others, and beyond LISTINGS_BYTES, a directory is read each time.
 *
 * The memory is shared by a zygote and its children, many of which walk at the same time, and any
 * of which may be killed anywhere. So there are no locks: a listing is written to a place that is
 * taken by one atomic step, and exists for others by a second one, after which it never changes.
 * Who is killed in between leaves a hole. What is out of date stays until the zygote, told by a
 * walk that little of it is of use, gives its next children new memory (listings_renew); the old
 * one goes with the last of those who have it.
 *
 * Must not: be in a command's memory (process 1 is not dumpable, and exec ends the mapping), hold a
 * path, or decide whether an entry may be reached: that is the walk's.
 */
#ifndef CODESPACE_SANDBOX_LISTINGS_H
#define CODESPACE_SANDBOX_LISTINGS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* All listings together; about 100 bytes are one directory, the names of its own included. */
#define LISTINGS_BYTES (4u << 20)

/* One listing; a directory with more to tell is read each time. */
#define LISTINGS_ONE_MAX (256u << 10)

/* The names that are told of entries that are no directories. */
#define LISTINGS_NAME ".git"
#define LISTINGS_HEAD "HEAD"

struct listings;

struct listing {
    uint64_t device, inode, size, links;
    struct timespec changed, modified;
    uint32_t count; /* entries of the directory, also those that are not told */
    uint32_t bytes; /* of `entries` */
    char entries[]; /* see listing_next() */
};

/* One that is told. */
struct listing_entry {
    uint32_t place; /* how many the kernel gave before it */
    bool directory;
    const char *name; /* borrowed */
};

/* A directory that is being read. Starts as {0}. */
struct listing_draft {
    bool keep;
    struct stat st;
    uint32_t count;
    struct buf entries;
};

/* What one walk needed, in bytes of listings. Starts as {0}. */
struct listings_use {
    size_t known; /* found, or put */
    size_t all;   /* also those for which there was no room */
};

/* NULL when there is no memory: then everything is read. */
struct listings *listings_new(void);
void listings_free(struct listings *l);

/* A new one in place of *l, when a walk found that it is worth it. For the zygote. */
void listings_renew(struct listings **l);

/* That of the directory with this state, or NULL. Valid while `l` is mapped. */
const struct listing *listings_find(const struct listings *l, const struct stat *st,
                                    struct listings_use *use);

/* The entry at *at (0 at first), which goes on to the next. False at the end. */
bool listing_next(const struct listing *it, size_t *at, struct listing_entry *ret);

/* The directory behind `fd` is about to be read: d->keep says whether it is worth listing. */
void listing_begin(struct listing_draft *d, int fd);
/* The next entry, in the order of reading. */
void listing_add(struct listing_draft *d, const char *name, bool directory);
/* All entries were read: keep it. */
void listings_put(struct listings *l, const struct listing_draft *d, struct listings_use *use);
void listing_fini(struct listing_draft *d);

/* Whether a change from `now` on is certain to give what was `changed` then another ctime. */
bool listing_settled(const struct timespec *now, const struct timespec *changed);

/* A walk is over. */
void listings_judge(struct listings *l, const struct listings_use *use);

#endif
