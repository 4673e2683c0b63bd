/* wire/view: what a sandboxed command can see, as data; and the tables behind the defaults.
 *
 * Theory. One owner decides the view (core/policy, from the registry and these tables), one
 * program builds it (codespace-linux-sandbox) and may refuse it but never widen it. Between them
 * travels this struct. The tables live here because both sides of the wire need them: a minimal
 * prepare request carries no lists and gets the defaults.
 *
 * Order of meaning, later wins: platform (read-only) or the whole file system (read-only), extra
 * mounts in order, the workspace, hidden paths, protected names. /tmp is private, /dev minimal,
 * /proc fresh. Nothing else of the host exists inside.
 *
 * Must not: look at the file system. What exists is the builder's business.
 */
#ifndef CODESPACE_WIRE_VIEW_H
#define CODESPACE_WIRE_VIEW_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* Limits of a view; a longer list is refused with the name. */
#define VIEW_MOUNTS_MAX 256
#define VIEW_PATHS_MAX 1024
#define VIEW_PROTECT_MAX 64
#define VIEW_DENY_MAX 256
#define VIEW_DEVICES_MAX 64

enum view_read {
    VIEW_READ_MINIMAL, /* the platform table and the workspace */
    VIEW_READ_ALL,     /* the whole file system read-only, minus the hidden paths */
};

/* What of the workspace's repositories a command may write (A1-A4). */
enum view_git {
    VIEW_GIT_READ_ONLY, /* nothing */
    VIEW_GIT_COMMIT,    /* everything but what makes the host execute code */
};

struct view_mount {
    char *path; /* absolute; seen at the same place inside */
    bool writable;
    bool protect; /* when writable: the names of view_protected in it stay read-only, too */
};

struct view {
    enum view_read read;
    char *workspace; /* absolute, canonical */
    bool workspace_writable;
    struct view_mount *mounts;
    size_t n_mounts;
    struct strv hidden;  /* absolute paths: files read as empty, directories as empty */
    struct strv protect; /* paths relative to the workspace that stay read-only */
    struct strv deny;    /* patterns (wire/glob) of what in the workspace reads as empty */
    enum view_git git;
    bool shared_tmp;     /* the host's /tmp, writable, instead of a private one */
    bool inherited_proc; /* the /proc of whoever starts us, read-only, instead of a fresh one */
    struct strv devices; /* below /dev (absolute) */
    bool masks_always; /* process 1 lays what it can, however little it is: a trial of that, too */
};

/* Directories and files of the platform, read-only in every view. NULL-terminated, absolute. */
extern const char *const view_platform[];

/* Below /etc (absolute), never shown: keys and password hashes. */
extern const char *const view_etc_secrets[];

/* Secret places below a home directory, relative to it: hidden when the whole file system shows. */
extern const char *const view_home_secrets[];

/* Secret places elsewhere on a host, absolute: run-time sockets of engines, cloud credentials. */
extern const char *const view_host_secrets[];

/* Names that stay read-only directly under a writable workspace: .git, .agents, .codex. ".git"
 * stands for every repository in it as well. */
extern const char *const view_protected[];

/* "NAME=VALUE" defaults that every sandboxed command starts with. NULL-terminated. */
extern const char *const view_environment[];

void view_fini(struct view *v);

#endif
