/* tests/unit/mcp/fixture: see fixture.h. */
#include "fixture.h"

#include "mcp/request.h"
#include "run/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the runner ---- */

static struct fake_runner *fake_of(struct runner *r)
{
    return container_of(r, struct fake_runner, runner);
}

static run_ticket fake_exec(struct runner *r, const struct run_exec *x, run_exec_fn done,
                            void *user)
{
    struct fake_runner *f = fake_of(r);
    f->exec = *x;
    snprintf(f->argv0, sizeof(f->argv0), "%s", x->argv[0]);
    f->exec_done = done;
    f->user = user;
    return ++f->execs;
}

static run_ticket fake_read(struct runner *r, const struct run_read *x, run_page_fn done,
                            void *user)
{
    struct fake_runner *f = fake_of(r);
    f->read = *x;
    snprintf(f->process_id, sizeof(f->process_id), "%s", x->process_id);
    f->page_done = done;
    f->user = user;
    return 1000 + ++f->reads;
}

static run_ticket fake_status(struct runner *r, const char *id, run_status_fn done, void *user)
{
    struct fake_runner *f = fake_of(r);
    snprintf(f->process_id, sizeof(f->process_id), "%s", id);
    f->status_done = done;
    f->user = user;
    return 1;
}

static run_ticket fake_write(struct runner *r, const char *id, const void *data, size_t n, bool eof,
                             run_done_fn done, void *user)
{
    struct fake_runner *f = fake_of(r);
    snprintf(f->process_id, sizeof(f->process_id), "%s", id);
    f->n_bytes = n < sizeof(f->bytes) ? n : sizeof(f->bytes);
    if (n > 0)
        memcpy(f->bytes, data, f->n_bytes);
    f->eof = eof;
    done(user, NULL);
    return 0;
}

static run_ticket fake_resize(struct runner *r, const char *id, uint16_t rows, uint16_t cols,
                              run_done_fn done, void *user)
{
    struct fake_runner *f = fake_of(r);
    f->rows = rows;
    f->cols = cols;
    done(user, NULL);
    return 0;
}

static run_ticket fake_terminate(struct runner *r, const char *id, run_done_fn done, void *user)
{
    struct fake_runner *f = fake_of(r);
    struct err e;
    f->terminates++;
    if (strcmp(id, "proc-none") == 0) {
        err_set(&e, ERR_PROCESS_NOT_FOUND, "no process %s", id);
        done(user, &e);
    } else {
        done(user, NULL);
    }
    return 0;
}

static run_ticket fake_terminate_by(struct runner *r, const char *id,
                                    const struct run_terminate *how, run_done_fn done, void *user)
{
    fake_of(r)->how = *how;
    return fake_terminate(r, id, done, user);
}

static run_ticket fake_signal(struct runner *r, const char *id, int signal, run_done_fn done,
                              void *user)
{
    fake_of(r)->signal = signal;
    done(user, NULL);
    return 0;
}

static run_ticket fake_list(struct runner *r, const struct run_list *x, run_list_fn done,
                            void *user)
{
    fake_of(r)->list = *x;
    done(user, &fake_of(r)->listing, NULL);
    return 0;
}

static run_ticket fake_warm(struct runner *r, const char *workspace_id, run_warm_fn done,
                            void *user)
{
    done(user, fake_of(r)->warm);
    return 0;
}

static void fake_probe(struct runner *r, run_probe_fn done, void *user)
{
    fake_of(r)->probe_done = done;
    fake_of(r)->probe_user = user;
}

static void fake_cancel(struct runner *r, run_ticket ticket)
{
    if (ticket != 0)
        fake_of(r)->cancels++;
}

static void fake_free(struct runner *r)
{
    fake_of(r)->frees++;
}

static const struct runner_ops fake_ops = {
    .exec = fake_exec,
    .read = fake_read,
    .status = fake_status,
    .write = fake_write,
    .resize = fake_resize,
    .terminate = fake_terminate,
    .terminate_by = fake_terminate_by,
    .signal = fake_signal,
    .list = fake_list,
    .warm = fake_warm,
    .probe = fake_probe,
    .cancel = fake_cancel,
    .free = fake_free,
};

/* ---- the peer ---- */

static void keep(struct peer *p, struct buf *message)
{
    struct fixture *f = container_of(p, struct fixture, peer);
    buf_put(&f->sent, buf_bytes(message), message->len);
    buf_putc(&f->sent, '\n');
    buf_truncate(message, 0);
    f->n_sent++;
}

static void ended(struct peer *p)
{
    container_of(p, struct fixture, peer)->n_ended++;
}

static const struct peer_ops peer_ops = {keep, ended};

static bool keep_notice(struct peer *p, struct buf *message)
{
    keep(p, message);
    return true;
}

void fixture_take_notices(struct fixture *f)
{
    static const struct peer_ops all = {.send = keep, .ended = ended, .notify = keep_notice};
    f->peer.ops = &all;
}

/* ---- life ---- */

int fixture_setup_raw(void **state)
{
    struct fixture *f = mem_new(struct fixture);
    struct facts limits = {.timeout_ms = 1000, .timeout_max_ms = 2000, .max_processes = 4};
    struct err e;
    strcpy(f->dir, "/tmp/test-mcp-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    autofree char *option = mem_printf("ws=%s", f->dir);
    if (registry_add_option(&f->registry, option, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    f->fake.runner.ops = &fake_ops;
    f->peer.ops = &peer_ops;
    if (ledger_open(&(struct ledger_options){.role = LEDGER_GATEWAY}, &f->ledger, &e) < 0)
        fail_msg("%s", e.message);
    server_init(&f->server, &f->loop, &f->registry, &f->fake.runner, f->ledger, &limits);
    session_init(&f->session, &f->server, &f->peer);
    server_start_probe(&f->server);
    *state = f;
    return 0;
}

int fixture_setup(void **state)
{
    fixture_setup_raw(state);
    struct fixture *f = *state;
    fixture_probe(f, true);
    fixture_say(f, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
                   "{\"protocolVersion\":\"2025-11-25\"}}");
    assert_int_equal(f->n_sent, 1);
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    session_fini(&f->session);
    stdio_peer_free(f->transport);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    server_fini(&f->server);
    ledger_free(f->ledger);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    registry_fini(&f->registry);
    buf_fini(&f->sent);
    nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

/* ---- talking ---- */

const char *fixture_run(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_DEFAULT);
    return buf_cstr(&f->sent);
}

const char *fixture_say(struct fixture *f, const char *message)
{
    buf_truncate(&f->sent, 0);
    f->n_sent = 0;
    session_message(&f->session, message, strlen(message));
    return fixture_run(f);
}

const char *fixture_call(struct fixture *f, const char *tool, const char *arguments)
{
    autofree char *message =
        mem_printf("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":"
                   "\"%s\",\"arguments\":%s}}",
                   tool, arguments);
    return fixture_say(f, message);
}

void fixture_finish_text(struct request *rq, const char *text)
{
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "content");
    jsonw_array(w);
    jsonw_object(w);
    jsonw_kstr(w, "type", "text");
    jsonw_kstr(w, "text", text);
    jsonw_object_end(w);
    jsonw_array_end(w);
    request_finish(rq);
}

void fixture_probe(struct fixture *f, bool works)
{
    struct probe_result result = {.works = works,
                                  .cause = works ? PROBE_NONE : PROBE_NO_BWRAP,
                                  .network_namespace = works,
                                  .seccomp = works};
    f->fake.probe_done(f->fake.probe_user, &result);
}

void fixture_started(struct fixture *f, const char *process_id)
{
    f->fake.exec_done(f->fake.user, process_id, NULL);
}

void fixture_page(struct fixture *f, const struct run_page *page)
{
    f->fake.page_done(f->fake.user, page, NULL);
}

void fixture_file(struct fixture *f, const char *name, const void *bytes, size_t n)
{
    autofree char *path = mem_printf("%s/%s", f->dir, name);
    autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
}

void assert_has(const char *text, ...)
{
    va_list ap;
    va_start(ap, text);
    for (const char *want; (want = va_arg(ap, const char *)) != NULL;) {
        if (strstr(text, want) == NULL)
            fail_msg("no %s in %s", want, text);
    }
    va_end(ap);
}
