/* run/msgs: see msgs.h. */
#include "run/msgs.h"

#include "base/mem.h"
#include "core/registry_egress.h"
#include "wire/glob.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_all(struct strv *to, char *const *from)
{
    for (; from != NULL && *from != NULL; from++)
        strv_add(to, *from);
}

static void add_strv(struct strv *to, const struct strv *from)
{
    for (size_t i = 0; i < from->len; i++)
        strv_add(to, from->items[i]);
}

/* ---- workspaces ---- */

static void put_limits(const struct helper_limits *l, struct runmsg_limits *ret)
{
    *ret = (struct runmsg_limits){
        .memory = l->memory,
        .pids = l->pids,
        .cpu_percent = l->cpu_percent,
        .cpu_seconds = l->cpu_seconds,
        .file_size = l->file_size,
        .open_files = l->open_files,
        .data = l->data,
    };
}

static void put_workspace(const struct workspace *ws, struct runmsg_workspace *ret)
{
    *ret = (struct runmsg_workspace){
        .id = mem_strdup(ws->id),
        .root = mem_strdup(ws->root),
        .dev = ws->dev,
        .ino = ws->ino,
        .profile = ws->profile,
        .network = ws->network,
        .sandbox = ws->sandbox,
        .read = ws->read,
        .git = ws->git,
        .network_scope = ws->network_scope,
        .shared_tmp = ws->shared_tmp,
        .inherited_proc = ws->inherited_proc,
        .debug = ws->debug,
        .user_namespaces = ws->user_namespaces,
        .cgroup_parent = mem_strdup(ws->cgroup_parent),
    };
    struct runmsg_mount *mounts = mem_zalloc(ws->n_mounts + 1, sizeof(*mounts));
    for (size_t i = 0; i < ws->n_mounts; i++) {
        mounts[i].path = mem_strdup(ws->mounts[i].path);
        mounts[i].writable = ws->mounts[i].writable;
    }
    ret->mounts = (struct runmsg_items){mounts, ws->n_mounts};
    add_strv(&ret->hide, &ws->hide);
    add_strv(&ret->hidden, &ws->hidden);
    add_strv(&ret->env, &ws->env);
    add_strv(&ret->protect, &ws->protect);
    add_strv(&ret->deny_read, &ws->deny_read);
    add_strv(&ret->devices, &ws->devices);
    registry_egress_write(ws, &ret->egress, &ret->publish);
    put_limits(&ws->limits, &ret->limits);
}

static void take_lists(const struct runmsg_workspace *m, struct workspace *ws)
{
    const struct runmsg_mount *mounts = m->mounts.items;
    ws->mounts = mem_zalloc(m->mounts.n + 1, sizeof(*ws->mounts));
    for (; ws->n_mounts < m->mounts.n; ws->n_mounts++) {
        ws->mounts[ws->n_mounts].path = mem_strdup(mounts[ws->n_mounts].path);
        ws->mounts[ws->n_mounts].writable = mounts[ws->n_mounts].writable;
    }
    add_strv(&ws->hide, &m->hide);
    add_strv(&ws->hidden, &m->hidden);
    add_strv(&ws->env, &m->env);
    add_strv(&ws->protect, &m->protect);
    add_strv(&ws->devices, &m->devices);
    ws->limits = (struct helper_limits){
        .memory = m->limits.memory,
        .pids = m->limits.pids,
        .cpu_percent = m->limits.cpu_percent,
        .cpu_seconds = m->limits.cpu_seconds,
        .file_size = m->limits.file_size,
        .open_files = m->limits.open_files,
        .data = m->limits.data,
    };
}

static int take_deny(const struct runmsg_workspace *m, struct workspace *ws, struct err *e)
{
    ws->deny = mem_zalloc(m->deny_read.len + 1, sizeof(*ws->deny));
    for (size_t i = 0; i < m->deny_read.len; i++) {
        if (glob_compile(m->deny_read.items[i], &ws->deny[i], e) < 0)
            return -1;
        strv_add(&ws->deny_read, m->deny_read.items[i]);
    }
    return 0;
}

static int open_root(const struct runmsg_workspace *m, struct workspace *ws, struct err *e)
{
    struct stat st;
    ws->root_fd = open(ws->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ws->root_fd < 0 || fstat(ws->root_fd, &st) < 0)
        return err_sys(e, ERR_PROCESS_SPAWN_FAILED, errno, "the worker cannot open the root %s",
                       ws->root);
    ws->dev = st.st_dev;
    ws->ino = st.st_ino;
    if ((m->ino != 0 && m->ino != st.st_ino) || (m->dev != 0 && m->dev != st.st_dev))
        return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                       "the root %.300s is another directory for the worker than it was for the "
                       "server when it was registered; restart the server",
                       ws->root);
    return 0;
}

struct workspace *msgs_workspace_new(const struct runmsg_workspace *m, struct err *e)
{
    struct workspace *ws = mem_new(struct workspace);
    *ws = (struct workspace){
        .id = mem_strdup(m->id),
        .root = mem_strdup(m->root),
        .root_fd = -1,
        .profile = (enum profile)m->profile,
        .network = (enum network_policy)m->network,
        .sandbox = (enum sandbox_demand)m->sandbox,
        .read = (enum view_read)m->read,
        .git = (enum view_git)m->git,
        .network_scope = (enum network_scope)m->network_scope,
        .shared_tmp = m->shared_tmp,
        .inherited_proc = m->inherited_proc,
        .debug = m->debug,
        .user_namespaces = m->user_namespaces,
        .cgroup_parent = mem_strdup(m->cgroup_parent),
    };
    take_lists(m, ws);
    if (take_deny(m, ws, e) == 0 &&
        registry_egress_read(m->egress == NULL ? "" : m->egress, &m->publish, ws, e) == 0 &&
        open_root(m, ws, e) == 0)
        return ws;
    workspace_free(ws);
    return NULL;
}

/* ---- requests ---- */

void msgs_exec(const struct run_exec *x, struct runmsg_exec *ret)
{
    *ret = (struct runmsg_exec){
        .process_id = mem_strdup(x->process_id),
        .cwd = mem_strdup(x->cwd),
        .tty = x->tty,
        .rows = x->rows,
        .cols = x->cols,
        .timeout_ms = x->timeout_ms,
        .idle_timeout_ms = x->idle_timeout_ms,
        .background = x->background,
        .exclusive = x->exclusive,
        .exclusive_wait_ms = x->exclusive_wait_ms,
        .has_stdin = x->stdin_data != NULL,
    };
    put_workspace(x->ws, &ret->workspace);
    add_all(&ret->argv, x->argv);
    add_all(&ret->env, x->env);
    if (x->stdin_data != NULL)
        buf_put(&ret->stdin_data, x->stdin_data, x->stdin_len);
}

void msgs_first(const struct run_read *first, uint64_t hold_ms, struct runmsg_exec *ret)
{
    msgs_read(first, &ret->first);
    free(steal(ret->first.process_id));
    ret->has_first = true;
    ret->hold_ms = hold_ms;
}

void msgs_exec_from(struct runmsg_exec *m, struct run_exec *ret)
{
    *ret = (struct run_exec){
        .argv = strv_array(&m->argv),
        .env = strv_array(&m->env),
        .process_id = m->process_id,
        .cwd = m->cwd,
        .tty = m->tty,
        .rows = (uint16_t)m->rows,
        .cols = (uint16_t)m->cols,
        .timeout_ms = m->timeout_ms,
        .idle_timeout_ms = m->idle_timeout_ms,
        .background = (enum run_background)m->background,
        .exclusive = m->exclusive,
        .exclusive_wait_ms = m->exclusive_wait_ms,
        .stdin_data = m->has_stdin ? buf_bytes(&m->stdin_data) : NULL,
        .stdin_len = m->stdin_data.len,
    };
}

void msgs_rules(const struct workspace *ws, struct runmsg_rules *ret)
{
    struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    egress_policy_write(&ws->egress, &w);
    *ret = (struct runmsg_rules){mem_strdup(ws->id), buf_steal(&text)};
}

void msgs_ruled(const struct run_rules *outcome, struct runmsg_ruled *ret)
{
    *ret = (struct runmsg_ruled){.why = mem_strdup(outcome->why)};
    for (size_t i = 0; outcome->changed[i] != NULL; i++)
        strv_add(&ret->changed, outcome->changed[i]);
    for (size_t i = 0; outcome->others[i] != NULL; i++)
        strv_add(&ret->others, outcome->others[i]);
}

void msgs_ruled_from(struct runmsg_ruled *m, struct run_rules *ret)
{
    *ret = (struct run_rules){.changed = (const char *const *)strv_array(&m->changed),
                              .others = (const char *const *)strv_array(&m->others),
                              .why = m->why == NULL ? "" : m->why};
}

void msgs_read(const struct run_read *x, struct runmsg_read *ret)
{
    *ret = (struct runmsg_read){
        .process_id = mem_strdup(x->process_id),
        .cursor = x->cursor,
        .stream = x->stream,
        .max_bytes = x->max_bytes,
        .wait_ms = x->wait_ms,
        .until_exit = x->until_exit,
        .whole_chars = x->whole_chars,
        .clean = x->clean,
        .from = x->from,
    };
}

void msgs_read_from(const struct runmsg_read *m, struct run_read *ret)
{
    *ret = (struct run_read){
        .process_id = m->process_id,
        .cursor = m->cursor,
        .stream = (enum run_stream)m->stream,
        .max_bytes = m->max_bytes,
        .wait_ms = m->wait_ms,
        .until_exit = m->until_exit,
        .whole_chars = m->whole_chars,
        .clean = m->clean,
        .from = (enum run_from)m->from,
    };
}

/* ---- answers ---- */

static uint64_t not_negative(int v)
{
    return v > 0 ? (uint64_t)v : 0;
}

void msgs_status(const struct run_status *s, struct runmsg_status *ret)
{
    *ret = (struct runmsg_status){
        .process_id = mem_strdup(s->process_id),
        .workspace_id = mem_strdup(s->workspace_id),
        .state = s->state,
        .termination = s->termination,
        .exit_code = not_negative(s->exit_code),
        .signal = not_negative(s->signal),
        .reason = mem_strdup(s->reason),
        .command = mem_strdup(s->command),
        .output_failed = mem_strdup(s->output_failed),
        .weaker = mem_strdup(s->weaker),
        .sandboxed = s->sandboxed,
        .tty = s->tty,
        .eof = s->eof,
        .stopped = s->stopped,
        .output_total = s->output_total,
        .output_retained_from = s->output_retained_from,
        .output_dropped = s->output_dropped,
        .started_ms = s->started_ms,
        .ended_ms = s->ended_ms,
        .timeout_ms = s->timeout_ms,
        .idle_timeout_ms = s->idle_timeout_ms,
        .cpu_us = s->cpu_us,
        .max_rss_kib = s->max_rss_kib,
        .background = s->background,
        .background_alive = s->background_alive,
        .shares_network = s->shares_network,
        .serial = s->serial,
        .sequence = s->sequence,
    };
    for (size_t i = 0; s->background_pids != NULL && s->background_pids[i] != NULL; i++)
        strv_add(&ret->background_pids, s->background_pids[i]);
    for (size_t i = 0; s->removed != NULL && s->removed[i] != NULL; i++)
        strv_add(&ret->removed, s->removed[i]);
    for (size_t i = 0; s->denials != NULL && s->denials[i] != NULL; i++)
        strv_add(&ret->denials, s->denials[i]);
    for (size_t i = 0; s->created != NULL && s->created[i] != NULL; i++)
        strv_add(&ret->created, s->created[i]);
}

static const char *or_empty(const char *s)
{
    return s == NULL ? "" : s;
}

void msgs_status_from(struct runmsg_status *m, struct run_status *ret)
{
    *ret = (struct run_status){
        .process_id = m->process_id,
        .workspace_id = or_empty(m->workspace_id),
        .state = (enum run_state)m->state,
        .termination = (enum run_termination)m->termination,
        .exit_code = (int)m->exit_code,
        .signal = (int)m->signal,
        .reason = or_empty(m->reason),
        .command = or_empty(m->command),
        .output_failed = or_empty(m->output_failed),
        .sandboxed = m->sandboxed,
        .tty = m->tty,
        .eof = m->eof,
        .stopped = m->stopped,
        .output_total = m->output_total,
        .output_retained_from = m->output_retained_from,
        .output_dropped = m->output_dropped,
        .started_ms = m->started_ms,
        .ended_ms = m->ended_ms,
        .timeout_ms = m->timeout_ms,
        .idle_timeout_ms = m->idle_timeout_ms,
        .cpu_us = m->cpu_us,
        .max_rss_kib = m->max_rss_kib,
        .background = (uint32_t)m->background,
        .background_alive = m->background_alive,
        .shares_network = m->shares_network,
        .serial = m->serial,
        .sequence = m->sequence,
        .background_pids = (const char *const *)strv_array(&m->background_pids),
        .removed = (const char *const *)strv_array(&m->removed),
        .denials = (const char *const *)strv_array(&m->denials),
        .weaker = or_empty(m->weaker),
        .created = (const char *const *)strv_array(&m->created),
    };
}

void msgs_page(const struct run_page *p, struct runmsg_page *ret)
{
    *ret = (struct runmsg_page){
        .cursor = p->cursor,
        .start = p->start,
        .time_ms = p->time_ms,
        .retained_from = p->retained_from,
        .lost = p->lost,
    };
    buf_put(&ret->bytes, p->bytes, p->len);
    ret->n_bytes = p->len;
    msgs_status(&p->status, &ret->status);
}

void msgs_page_from(struct runmsg_page *m, struct run_page *ret)
{
    *ret = (struct run_page){
        .bytes = buf_bytes(&m->bytes),
        .len = m->bytes.len,
        .cursor = m->cursor,
        .start = m->start,
        .time_ms = m->time_ms,
        .retained_from = m->retained_from,
        .lost = m->lost,
    };
    msgs_status_from(&m->status, &ret->status);
}

void msgs_listing(const struct run_listing *l, struct runmsg_listing *ret)
{
    struct runmsg_status *items = mem_zalloc(l->n + 1, sizeof(*items));
    for (size_t i = 0; i < l->n; i++)
        msgs_status(&l->items[i], &items[i]);
    *ret = (struct runmsg_listing){.items = {items, l->n}, .more = l->more};
}

struct run_status *msgs_listing_from(struct runmsg_listing *m, struct run_listing *ret)
{
    struct run_status *items = mem_zalloc(m->items.n + 1, sizeof(*items));
    for (size_t i = 0; i < m->items.n; i++)
        msgs_status_from((struct runmsg_status *)m->items.items + i, &items[i]);
    *ret = (struct run_listing){.items = items, .n = m->items.n, .more = m->more};
    return items;
}
