/* wire/plan: what `prepare` decided, as a file that `run` and process 1 inside only carry out.
 *
 * Theory. Everything that costs time or can be refused is done once, at `prepare`: the view as
 * bubblewrap arguments, the filter as BPF, the command with its environment. The file is a fixed
 * head and then the sections of PLAN_SECTIONS in that order, nothing between them and nothing
 * after, so one addition checks every length. The arguments of bubblewrap are the last section:
 * `run` gives bubblewrap a descriptor that stands at their beginning and ends at their end.
 * Numbers are little-endian.
 *
 * The file is ours and private, but it is read as if it were not: every length is checked, every
 * text ends in its NUL, no count is trusted. Must not: look at the file system.
 */
#ifndef CODESPACE_WIRE_PLAN_H
#define CODESPACE_WIRE_PLAN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define PLAN_VERSION 3u
/* A request of HELPER_REQUEST_MAX, the view's arguments and a filter fit. */
#define PLAN_MAX (8u << 20)
/* Instructions of a filter: the kernel's BPF_MAXINSNS. */
#define PLAN_FILTER_MAX 4096u
/* Descriptors that the view needs (paths opened at run, empty files). */
#define PLAN_SOURCES_MAX 2048u

/* Places that process 1 lays over the view itself; about 20 us each. */
#define PLAN_MASKS_MAX 32768u
/* An egress policy as the helper writes it; that of EGRESS_POLICY_MAX fits. */
#define PLAN_EGRESS_MAX (3u << 20)
/* Paths that are watched because nothing can be mounted there. */
#define PLAN_GUARDS_MAX 4096u

/* The first byte of a mask; its absolute path follows. */
enum plan_mask {
    PLAN_MASK_FILE = 'f',  /* an empty read-only file in its place */
    PLAN_MASK_DIR = 'd',   /* an empty read-only directory in its place */
    PLAN_MASK_FIXED = 'w', /* a mount of its own, so that it cannot be renamed */
    PLAN_MASK_READ = 'r',  /* the same, read-only */
};

/* Limits of a command's resources, in this order in plan.limits; 0 = none. */
enum plan_limit {
    PLAN_LIMIT_CPU_SECONDS, /* of one process (RLIMIT_CPU) */
    PLAN_LIMIT_FILE_SIZE,   /* bytes of one file (RLIMIT_FSIZE) */
    PLAN_LIMIT_FILES,       /* open at once in one process (RLIMIT_NOFILE) */
    PLAN_LIMIT_DATA,        /* bytes of one process's data (RLIMIT_DATA) */
    PLAN_LIMIT_MAX
};

/* Descriptor numbers on the way through bubblewrap; the arguments are written for these.
 * bubblewrap itself has /dev/null as 0 and 1 and the control socket as 2: it stays until the
 * namespaces are gone, and must not hold the command's pipes open as long. Process 1 inside puts
 * them back. */
enum plan_fd {
    PLAN_FD_PLAN = 3,
    PLAN_FD_HELPER = 4, /* this executable */
    PLAN_FD_STDIN = 5,  /* the command's */
    PLAN_FD_STDOUT = 6,
    PLAN_FD_STDERR = 7,
    PLAN_FD_ARGS = 8,
    PLAN_FD_SOURCE = 9, /* source i is PLAN_FD_SOURCE + i */
};

/* With `namespaces`, what root outside is called inside. The kernel lets nobody map the 0 of a user
 * namespace into another one who does not hold CAP_SETFCAP in it, and a command holds nothing; also
 * a browser refuses to use its sandbox as root. */
#define PLAN_ROOT_SHOWN 1000u

struct plan {
    bool tty;         /* descriptor 0 becomes the command's controlling terminal */
    bool zygote;      /* instead of a command: take commands over the control socket (wire/warm) */
    bool keep;        /* what the command leaves lives on until its last process has ended */
    bool own_network; /* with zygote: each command gets a network namespace of its own */
    bool report;      /* instead of a command: report what is seen inside (probe) */
    bool search;      /* tell which repositories the command made */
    bool namespaces;  /* the command may make user namespaces */
    char *bwrap;      /* absolute path of bubblewrap */
    char *workspace;
    char *cwd;
    struct strv argv;
    struct strv env;
    struct strv sources; /* "" = an empty file; =TEXT = a file of this text; else a path to open
                          * without symbolic links */
    struct strv guards;  /* pairs: a protected path that is not mounted, what it links to or "" */
    struct strv masks;   /* in the order of laying them: enum plan_mask, then the path */
    struct strv repositories; /* paths of every ".git" that was there; others are new */
    char *proxy;              /* absolute path of the egress proxy; "" = no network */
    struct buf egress;        /* the policy, one JSON object (wire/egress) */
    struct strv publish;      /* ports that the host can reach, in decimal */
    struct strv groups; /* control groups: directory to make it in, file in it, text; and so on */
    uint64_t limits[PLAN_LIMIT_MAX];
    struct buf filter; /* struct sock_filter[] */
    struct buf args;   /* of bubblewrap, each with its NUL */
    size_t args_at;    /* filled by plan_read: offset of the arguments in the file */
};

void plan_fini(struct plan *p);

void plan_write(const struct plan *p, struct buf *out);

/* Errors: PARSE_ERROR with what is wrong. */
int plan_read(const char *bytes, size_t n, struct plan *ret, struct err *e);

#endif
