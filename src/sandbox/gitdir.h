/* sandbox/gitdir: what of a git repository stays read-only (A1-A5).
 *
 * Theory. Whoever may write into a repository's directory makes its owner's next git command run
 * code: a hook, a setting (core.fsmonitor, filters, aliases), an attribute, a pointer to another
 * directory. With `git: read-only` all of it is read-only. With `git: commit` git may write, and
 * what makes the host execute code stays as it is: hooks, config, config.worktree, info, commondir
 * and gitdir, in the repository itself, in the directories of its linked worktrees and in those of
 * its submodules.
 *
 * `.git` may be a file that points elsewhere. A directory outside the workspace is shown (and with
 * `commit` made writable) only when it says itself that it belongs to this work tree: the file
 * `gitdir` in it (worktrees) or core.worktree in its config (submodules) names the pointer back. A
 * workspace cannot claim somebody else's repository.
 *
 * Must not: run git, or believe a pointer that is not answered.
 */
#ifndef CODESPACE_SANDBOX_GITDIR_H
#define CODESPACE_SANDBOX_GITDIR_H

#include "sandbox/layout.h"
#include "sandbox/listings.h"
#include "wire/view.h"

/* Entries of the workspace that are looked at for nested repositories, before a command and after
 * it; the shallow ones first. What lies deeper in a larger tree is not found. */
#define GITDIR_SCAN_MAX 50000u

/* Protect the repository behind the absolute path `dot_git`, which may be missing. */
void gitdir_protect(const struct view *v, const char *dot_git, struct layout *l, struct plan *p);

/* The same for every repository below the workspace's root, and note them all in p->repositories,
 * the root's included. */
void gitdir_protect_nested(const struct view *v, struct layout *l, struct plan *p);

/* Every ".git" below `workspace` that is not in `known`, relative, sorted by depth. 1 when the tree
 * was too large to be seen in full. `listings` (NULL = none) spares the reading of directories that
 * have not changed. */
int gitdir_find_new(const char *workspace, const struct strv *known, struct listings *listings,
                    struct strv *ret);

#endif
