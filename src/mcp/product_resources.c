/* mcp/product_resources: what codespace-mcp serves as resources.
 *
 *   codespace://doctor                                what is really on, as --doctor prints it
 *   codespace://workspaces/{workspace_id}/files/{+path}   a file of a workspace
 *   codespace://processes/{process_id}/log            the end of what a process has printed
 *   codespace://operations/{operation_id}             an operation of the ledger
 *
 * Clients that attach resources to a conversation get by a URI what the tools give by arguments,
 * under the same policy: each goes through the function that its tool calls.
 *
 * Must not: show anything that a tool would refuse; hold more than one page of anything.
 */
#include "mcp/product.h"

#include "core/files.h"
#include "core/policy.h"
#include "mcp/operation_answer.h"
#include "mcp/recorder.h"
#include "wire/json.h"

#include <sys/stat.h>
#include <unistd.h>

/* Of the end of a process's output. */
#define LOG_SHOWN_BYTES 65536u

static run_ticket tell(struct resource_stamper *to, bool exists, uint64_t value)
{
    to->done(to, (struct resource_stamp){exists, value});
    return 0;
}

/* ---- codespace://doctor ---- */

static void answer_doctor(struct request *rq)
{
    autobuf report = BUF_INIT;
    facts_report(&rq->server->facts, &report);
    resources_answer(rq->state, NULL, buf_bytes(&report), report.len);
}

static void fetch_doctor(struct resource_read *x)
{
    request_when_probed(x->rq, answer_doctor);
}

static const struct resource doctor = {
    .uri = "codespace://doctor",
    .name = "doctor",
    .title = "What is really on",
    .description = "Which walls stand around commands on this machine, and why one does not.",
    .mime = "text/plain",
    .lasting = true,
    .fetch = fetch_doctor,
};

/* ---- files ---- */

struct file_read {
    const struct workspace *ws;
    struct file_page page;
    int status;
    struct err e;
};

static void file_free(void *own)
{
    struct file_read *f = own;
    file_page_fini(&f->page);
    free(f);
}

static void file_work(struct request *rq)
{
    struct resource_read *x = rq->state;
    struct file_read *f = x->own;
    const struct read_request q = {.path = x->parts.items[1],
                                   .limit = FILES_READ_MAX,
                                   .cache = rq->server->versions,
                                   .cancel = &rq->stop};
    f->status = files_read_request(f->ws, &q, &f->page, &f->e);
    if (f->status == 0 && f->page.truncated)
        f->status = err_set(&f->e, ERR_LIMIT_EXCEEDED,
                            "the file has %llu bytes, and a resource holds FILES_READ_MAX (%u); "
                            "read it in pages with the tool read",
                            (unsigned long long)f->page.size, FILES_READ_MAX);
}

static void file_after(struct request *rq)
{
    struct resource_read *x = rq->state;
    const struct file_read *f = x->own;
    const struct buf *content = &f->page.content;
    if (f->status < 0)
        resources_refuse(x, &f->e);
    else
        resources_answer(x, f->page.lossy ? "application/octet-stream" : NULL, buf_bytes(content),
                         content->len);
}

static void fetch_file(struct resource_read *x)
{
    struct file_read *f = mem_new(struct file_read);
    x->own = f;
    x->own_free = file_free;
    f->ws = registry_get(x->rq->server->registry, x->parts.items[0], &f->e);
    if (f->ws == NULL)
        resources_refuse(x, &f->e);
    else
        request_pool(x->rq, 2 * FILES_READ_MAX, file_work, file_after);
}

/* One number of everything that a change of content changes. */
static uint64_t fold(const struct stat *st)
{
    const uint64_t parts[] = {(uint64_t)st->st_ino,         (uint64_t)st->st_size,
                              (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
                              (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};
    uint64_t out = 0xcbf29ce484222325ULL; /* FNV-1a, a word at a time */
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        out = (out ^ parts[i]) * 0x100000001b3ULL;
    return out;
}

static run_ticket stamp_file(struct server *s, char *const *parts, struct resource_stamper *to)
{
    struct err e;
    struct stat st;
    char path[PATH_LEN_MAX];
    const struct workspace *ws = registry_get(s->registry, parts[0], &e);
    if (ws == NULL || files_resolve(ws, parts[1], path, &e) < 0 ||
        policy_check_read_path(ws, path, &e) < 0)
        return tell(to, false, 0);
    autofd int fd = path_open_beneath(ws->root_fd, path, O_PATH, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return tell(to, false, 0);
    return tell(to, true, fold(&st));
}

static const struct resource file = {
    .uri = PRODUCT_FILE_URI,
    .name = "file",
    .title = "A file of a workspace",
    .description = "The content of a file, as text when it is UTF-8. May be subscribed to.",
    .mime = "text/plain",
    .fetch = fetch_file,
    .stamp = stamp_file,
};

/* ---- processes ---- */

static void on_page(void *user, const struct run_page *page, const struct err *failure)
{
    struct resource_read *x = user;
    x->ticket = 0;
    if (failure != NULL)
        resources_refuse(x, failure);
    else
        resources_answer(x, NULL, page->bytes, page->len);
}

static void fetch_log(struct resource_read *x)
{
    const struct run_read q = {.process_id = x->parts.items[0],
                               .cursor = LOG_SHOWN_BYTES,
                               .from = RUN_FROM_TAIL_BYTES,
                               .max_bytes = LOG_SHOWN_BYTES,
                               .whole_chars = true};
    run_ticket ticket = runner_read(x->rq->server->runner, &q, on_page, x);
    if (ticket != 0) /* 0: answered already, and the call is gone */
        x->ticket = ticket;
}

static void on_status(void *user, const struct run_status *status, const struct err *failure)
{
    tell(user, failure == NULL,
         failure == NULL ? status->sequence ^ status->output_total << 20 : 0);
}

static run_ticket stamp_log(struct server *s, char *const *parts, struct resource_stamper *to)
{
    return runner_status(s->runner, parts[0], on_status, to);
}

static const struct resource process_log = {
    .uri = "codespace://processes/{process_id}/log",
    .name = "process-log",
    .title = "Output of a process",
    .description = "The last 64 KiB that a process has printed. May be subscribed to.",
    .mime = "text/plain",
    .fetch = fetch_log,
    .stamp = stamp_log,
};

/* ---- operations ---- */

struct operation_read {
    struct op_record record;
    struct buf text;
    int status;
    struct err e;
};

static void operation_free(void *own)
{
    struct operation_read *o = own;
    op_record_fini(&o->record);
    buf_fini(&o->text);
    free(o);
}

static void operation_work(struct request *rq)
{
    struct resource_read *x = rq->state;
    struct operation_read *o = x->own;
    struct jsonw w;
    recorder_flush(rq->server->recorder); /* no older than what the tool tells */
    o->status = opstore_get(rq->server->ledger, x->parts.items[0], &o->record, &o->e);
    if (o->status < 0)
        return;
    jsonw_init(&w, &o->text);
    jsonw_object(&w);
    operation_write_record(&w, &o->record, true);
    jsonw_object_end(&w);
}

static void operation_after(struct request *rq)
{
    struct resource_read *x = rq->state;
    const struct operation_read *o = x->own;
    if (o->status < 0)
        resources_refuse(x, &o->e);
    else
        resources_answer(x, NULL, buf_bytes(&o->text), o->text.len);
}

static void fetch_operation(struct resource_read *x)
{
    x->own = mem_new(struct operation_read);
    x->own_free = operation_free;
    request_pool(x->rq, LOG_SHOWN_BYTES, operation_work, operation_after);
}

static const struct resource operation = {
    .uri = "codespace://operations/{operation_id}",
    .name = "operation",
    .title = "An operation",
    .description = "What a patch or a command did, as operation_status tells it.",
    .mime = "application/json",
    .fetch = fetch_operation,
};

const struct resource *const product_resources[] = {&doctor, &file, &process_log, &operation, NULL};
