/* run/managed: see managed.h. The life of the record and what the table's actions do. */
#include "run/managed.h"

#include "base/utf8.h"
#include "run/grave.h"
#include "run/start.h"
#include "sys/fd.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t read_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t managed_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000u;
}

uint64_t managed_clock_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

uint64_t managed_told_us(uint64_t told_us, uint64_t earliest_us)
{
    uint64_t now = managed_clock_us();
    return told_us >= earliest_us && told_us <= now ? told_us : now;
}

/* The wall clock at that moment of the other. */
static uint64_t wall_us_at(uint64_t moment_us)
{
    return read_us(CLOCK_REALTIME) - (managed_clock_us() - moment_us);
}

static void fail_late(struct managed *m)
{
    char what[64] = "closed its control socket and did not answer";
    if (m->control.fd >= 0)
        snprintf(what, sizeof(what), "did not answer within %u ms", START_PREPARE_MS);
    launch_fail_unanswered(m, what);
}

static void on_alarm(struct alarm *a, void *owner)
{
    struct managed *m = owner;
    if (m->quiet) {
        control_listen(m);
        return;
    }
    if (launch_is_due(m)) {
        launch_prepare(m);
        return;
    }
    if (launch_awaits_answer(m))
        fail_late(m);
    if (m->state == PROCESS_WAITING)
        launch_fail(m, ERR_WORKSPACE_BUSY,
                    "its turn did not come in time: the root of workspace '%s' is held by other "
                    "commands (list_processes shows them); nothing was run",
                    m->ws->id);
    managed_feed(m, PROCESS_ON_TIMER);
}

/* Each read only notes the time; this looks whether it was long ago. */
static void on_idle(struct alarm *a, void *owner)
{
    struct managed *m = owner;
    uint64_t silent_ms = uv_now(m->home->loop) - m->active_ms;
    if (silent_ms >= m->idle_timeout_ms)
        managed_feed(m, PROCESS_ON_IDLE);
    else
        alarm_set(&m->idle, m->idle_timeout_ms - silent_ms);
}

static void add_all(struct strv *to, char *const *from)
{
    for (; from != NULL && *from != NULL; from++)
        strv_add(to, *from);
}

static char *words_of(char *const *argv)
{
    autobuf text = BUF_INIT;
    for (size_t i = 0; argv[i] != NULL && text.len < RUN_COMMAND_SHOWN; i++)
        buf_printf(&text, "%s%.*s", i > 0 ? " " : "", (int)RUN_COMMAND_SHOWN, argv[i]);
    size_t n = text.len < RUN_COMMAND_SHOWN ? text.len : RUN_COMMAND_SHOWN;
    buf_truncate(&text, utf8_whole_prefix(buf_bytes(&text), n));
    return buf_steal(&text);
}

struct managed *managed_new(struct home *home, const struct run_exec *x, uint64_t timeout_ms,
                            run_exec_fn done, void *user)
{
    struct managed *m = mem_new(struct managed);
    list_init(&m->link);
    list_init(&m->waiters);
    m->home = home;
    m->id = x->process_id != NULL ? mem_strdup(x->process_id) : str_new_id("proc-");
    m->serial = ++home->next_serial;
    m->command = words_of(x->argv);
    m->log.spill.budget = &home->spill;
    m->idle_timeout_ms = x->idle_timeout_ms;
    pass_init(&m->pass);
    m->ws = x->ws;
    m->tty = x->tty;
    m->keep = x->background == RUN_BACKGROUND_KEEP;
    m->terminal = -1;
    add_all(&m->argv, x->argv);
    add_all(&m->env, x->env);
    m->cwd = mem_strdup(x->cwd == NULL ? "" : x->cwd);
    m->rows = x->rows;
    m->cols = x->cols;
    m->timeout_ms = timeout_ms;
    m->ticket = ++home->next_ticket;
    m->done = done;
    m->user = user;
    m->pid = -1;
    m->init_fd = -1;
    if (x->stdin_data != NULL) {
        buf_put(&m->input, x->stdin_data, x->stdin_len);
        m->input_eof = true;
    }
    struct watch *const watches[] = {&m->in, &m->out, &m->err, &m->control, &m->pidfd};
    for (size_t i = 0; i < ARRAY_LEN(watches); i++)
        watch_init(watches[i]);
    rules_init(&m->rules);
    alarm_open(&m->alarm, home->loop, &m->anchor, on_alarm, m);
    alarm_open(&m->idle, home->loop, &m->anchor, on_idle, m);
    return m;
}

void managed_await_turn(struct managed *m, uint64_t wait_ms)
{
    alarm_set(&m->alarm, wait_ms);
}

bool managed_is_live(const struct managed *m)
{
    return m->state != PROCESS_ENDED && m->state != PROCESS_FAILED;
}

/* The arguments can be large and are of no use once the command runs. */
static void drop_request(struct managed *m)
{
    strv_fini(&m->argv);
    strv_fini(&m->env);
    free(steal(m->cwd));
}

static void on_gone(struct anchor *a)
{
    struct managed *m = container_of(a, struct managed, anchor);
    drop_request(m);
    strv_fini(&m->guards);
    outlog_fini(&m->log);
    buf_fini(&m->input);
    buf_fini(&m->line);
    buf_fini(&m->words);
    end_fini(&m->end);
    free(m->left);
    free(m->removed);
    free(m->created);
    free(m->denials);
    free(m->failure);
    free(m->command);
    free(m->output_failed);
    free(m->id);
    free(m);
}

static void close_stdio(struct managed *m)
{
    watch_close(&m->in);
    watch_close(&m->out);
    watch_close(&m->err);
    fd_close(&m->terminal);
    buf_fini(&m->input);
}

/* Nobody asks about the child any more: it gets `patience_ms` and then KILL. */
static void bury(struct managed *m, uint64_t patience_ms)
{
    watch_close(&m->control);
    rules_close(&m->rules);
    int pidfd = watch_release(&m->pidfd);
    if (pidfd >= 0)
        grave_take(&m->home->yard, m->home->loop, pidfd, patience_ms);
}

static void discard(struct managed *m)
{
    close_stdio(m);
    bury(m, 0);
}

/* The runner goes and the command lives. What tells which process is process 1 may have come and
 * not been read yet. */
static void abandon(struct managed *m)
{
    control_take_init(m);
    if (m->pid > 0 && !m->reaped)
        end_kill_now(m);
    discard(m);
    if (m->init_fd >= 0)
        sweep_leave(m->home->loop, &m->init_fd, m->ws, &m->guards);
}

void managed_free(struct managed *m)
{
    if (managed_is_live(m))
        abandon(m);
    else
        discard(m);
    sweep_forget(steal(m->sweep));
    wait_drop(m);
    list_remove(&m->link);
    m->state = PROCESS_FAILED;
    m->ticket = 0;
    pass_leave(&m->pass);
    spill_fini(&m->log.spill); /* its budget is the runner's, which may go before our handles */
    alarm_close(&m->alarm);
    alarm_close(&m->idle);
    anchor_leave(&m->anchor, on_gone);
}

static void answer_start(struct managed *m, const struct err *failure)
{
    if (m->ticket == 0)
        return;
    m->ticket = 0;
    m->done(m->user, failure == NULL ? m->id : NULL, failure);
}

static void announce(struct managed *m)
{
    drop_request(m);
    if (m->began_us == 0)
        m->began_us = managed_clock_us();
    m->started_us = wall_us_at(m->began_us);
    m->sequence++;
    alarm_set(&m->alarm, m->timeout_ms);
    m->active_ms = uv_now(m->home->loop);
    if (m->idle_timeout_ms > 0)
        alarm_set(&m->idle, m->idle_timeout_ms);
    end_send_held(m);
    answer_start(m, NULL);
}

static void refuse(struct managed *m, bool tell)
{
    launch_fail(m, ERR_PROCESS_SPAWN_FAILED, "the sandbox was not ready within %u ms%s%s",
                MANAGED_START_MS, m->words.len > 0 ? "; it said: " : "", buf_cstr(&m->words));
    struct err failure = *m->failure;
    discard(m);
    alarm_close(&m->alarm);
    alarm_close(&m->idle);
    /* Out of the table first: the callback may look there, or start the next one. */
    run_exec_fn done = m->ticket != 0 && tell ? m->done : NULL;
    void *user = m->user;
    m->home->on_failed(m);
    if (done != NULL)
        done(user, NULL, &failure);
    m->home->on_over(m);
}

static void note_end(struct managed *m)
{
    if (m->over_us == 0)
        m->over_us = managed_clock_us();
    m->ended_us = wall_us_at(m->over_us);
}

/* After a verdict nobody is left who could write (process 1 has reaped them all), so pipes that are
 * empty are at their end, whoever still holds them. A terminal passes its bytes on a little later,
 * and on the host a descendant may go on: there the end of file is waited for, for a bounded time.
 */
static void drain(struct managed *m)
{
    bool all_dead = m->sandboxed && !m->tty && m->end.termination != RUN_END_WRAPPER_FAILED;
    end_settle(m);
    if (!m->kept)
        note_end(m);
    alarm_set(&m->alarm, MANAGED_DRAIN_MS);
    stdio_drain(m);
    if (all_dead || stdio_at_eof(m))
        managed_feed(m, PROCESS_ON_DRAINED);
    else
        stdio_listen(m);
}

/* The limits of the command go on for what it left. All that the command itself wrote is in the
 * pipes by now, so who waits for its end gets that. */
static void keep(struct managed *m)
{
    m->kept = true;
    note_end(m);
    m->sequence++;
    stdio_drain(m);
    m->home->on_kept(m);
    wait_check(m);
}

static void finish(struct managed *m)
{
    close_stdio(m);
    bury(m, MANAGED_LINGER_MS);
    alarm_close(&m->alarm);
    alarm_close(&m->idle);
    buf_fini(&m->line);
    m->sequence++;
    m->home->on_ended(m);
    wait_check(m);
    m->home->on_over(m);
}

static void act(struct managed *m, enum process_action action)
{
    switch (action) {
    case PROCESS_DO_NOTHING:
        return;
    case PROCESS_DO_PREPARE:
        launch_prepare(m);
        return;
    case PROCESS_DO_SPAWN:
        launch_spawn(m);
        return;
    case PROCESS_DO_ANNOUNCE:
        announce(m);
        return;
    case PROCESS_DO_REFUSE:
        refuse(m, true);
        return;
    case PROCESS_DO_DISCARD:
        refuse(m, false);
        return;
    case PROCESS_DO_TERMINATE:
        end_ask(m, RUN_END_TERMINATED);
        return;
    case PROCESS_DO_HASTEN:
        end_hasten(m);
        return;
    case PROCESS_DO_IDLE_OUT:
        end_ask(m, RUN_END_LIMIT);
        return;
    case PROCESS_DO_TIME_OUT:
        end_ask(m, RUN_END_TIMEOUT);
        return;
    case PROCESS_DO_KEEP:
        keep(m);
        return;
    case PROCESS_DO_NUDGE:
        alarm_set(&m->alarm, MANAGED_NUDGE_MS);
        return;
    case PROCESS_DO_KILL:
        end_kill(m);
        return;
    case PROCESS_DO_DRAIN:
        drain(m);
        return;
    case PROCESS_DO_FINISH:
        finish(m);
        return;
    case PROCESS_DO_UNDEFINED:
    case PROCESS_ACTION_MAX:
        break;
    }
    ensure(!"an event has no row in the table of run/process");
}

void managed_feed(struct managed *m, enum process_event event)
{
    struct process_step step = process_step(m->state, event);
    m->state = step.next;
    act(m, step.action);
}
