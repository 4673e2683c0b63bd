/* core/journal_roots: see journal_roots.h. */
#include "core/journal_roots.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/version.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Hex digits of the root path's hash in a file's name. */
#define NAME_DIGITS 32
#define NAME_LEN (NAME_DIGITS + 4)

struct journal_roots {
    int dir;
    pthread_mutex_t mutex; /* over the map; a journal itself is the lane's */
    struct map open;       /* workspace id -> struct journal */
};

static int make_directories(const char *path, struct err *e)
{
    autofree char *part = mem_strdup(path);
    for (char *p = part + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return err_sys(e, ERR_FILE_OPERATION_FAILED, errno, "make %s for journals", part);
        *p = '/';
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, ERR_FILE_OPERATION_FAILED, errno, "make %s for journals", path);
    return 0;
}

int journal_roots_open(const char *path, struct journal_roots **ret, struct err *e)
{
    struct stat st;
    if (make_directories(path, e) < 0)
        return -1;
    autofd int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(e, ERR_FILE_OPERATION_FAILED, errno, "open %s", path);
    if (st.st_uid != geteuid() || (st.st_mode & 0022) != 0)
        return err_set(e, ERR_CONFIG_INVALID,
                       "others may write to %s, which keeps the journals of patches; make it "
                       "yours alone (chmod 700)",
                       path);
    struct journal_roots *j = mem_new(struct journal_roots);
    ensure(pthread_mutex_init(&j->mutex, NULL) == 0);
    j->dir = steal_fd(&dir);
    *ret = j;
    return 0;
}

void journal_roots_free(struct journal_roots *j)
{
    size_t pos = 0;
    if (j == NULL)
        return;
    for (struct journal *it; (it = map_next(&j->open, &pos, NULL)) != NULL;)
        journal_close(it);
    map_fini(&j->open);
    pthread_mutex_destroy(&j->mutex);
    close(j->dir);
    free(j);
}

static void name_slot(const struct workspace *ws, unsigned slot, char ret[NAME_LEN])
{
    char digest[FILES_VERSION_LEN];
    version_of(ws->root, strlen(ws->root), digest);
    snprintf(ret, NAME_LEN, "%.*s.%u", NAME_DIGITS, strchr(digest, ':') + 1, slot);
}

/* Open a slot and settle it: 1 usable, 0 somebody else's (another server's, or of another directory
 * that had this path), -1. */
static int open_slot(struct journal_roots *j, const struct workspace *ws, const char *name,
                     struct journal **ret, struct journal_report *report, struct err *e)
{
    struct journal *journal = NULL;
    struct err why;
    int rc = journal_open(j->dir, name, &journal, &why);
    if (rc == 0)
        rc = journal_recover(journal, ws->root_fd, report, &why);
    if (rc == 0) {
        *ret = journal;
        return 1;
    }
    journal_close(journal);
    if (why.code == ERR_WORKSPACE_BUSY)
        return 0;
    log_warn("the journal %s of %s: %s", name, ws->root, why.message);
    return why.code == ERR_CONFIG_INVALID ? 0 : err_set(e, why.code, "%s", why.message);
}

unsigned journal_roots_settle(struct journal_roots *j, const struct workspace *ws)
{
    unsigned settled = 0;
    for (unsigned slot = 0; slot < JOURNAL_SLOTS; slot++) {
        char name[NAME_LEN];
        struct journal *journal = NULL;
        struct journal_report report = {0};
        name_slot(ws, slot, name);
        if (faccessat(j->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
            open_slot(j, ws, name, &journal, &report, NULL) <= 0)
            continue;
        journal_close(journal);
        if (report.outcome == JOURNAL_CLEAN)
            continue;
        log_warn("workspace %s: %s", ws->id, report.text);
        settled++;
    }
    return settled;
}

static int take_slot(struct journal_roots *j, const struct workspace *ws, struct journal **ret,
                     struct err *e)
{
    int rc = 0;
    for (unsigned slot = 0; rc == 0 && slot < JOURNAL_SLOTS; slot++) {
        char name[NAME_LEN];
        struct journal_report report = {0};
        name_slot(ws, slot, name);
        rc = open_slot(j, ws, name, ret, &report, e);
        if (rc > 0 && report.outcome != JOURNAL_CLEAN)
            log_warn("workspace %s: %s", ws->id, report.text);
    }
    return rc < 0 ? -1 : 0;
}

int journal_roots_get(struct journal_roots *j, const struct workspace *ws, struct journal **ret,
                      struct err *e)
{
    ensure(pthread_mutex_lock(&j->mutex) == 0);
    struct journal *journal = map_get(&j->open, ws->id);
    int rc = journal == NULL ? take_slot(j, ws, &journal, e) : 0;
    if (rc == 0 && journal != NULL)
        map_set(&j->open, ws->id, journal);
    ensure(pthread_mutex_unlock(&j->mutex) == 0);
    if (rc == 0)
        *ret = journal;
    return rc;
}
