/* run/end: ending a process, and saying truthfully how it ended.
 *
 * Theory. In the sandbox the command's end is what process 1 inside says (the verdict); our child
 * is only the wrapper, and its status counts only when no verdict came. Closing the control socket
 * and killing the wrapper end the PID namespace, and with it every descendant, whatever it did.
 *
 * On the host (R13) our child is the command. All of its session is signalled. A descendant that
 * made a session of its own is out of reach there: that is what the sandbox is for, and
 * workspace_info says which of the two is on. The tree is killed while the ended leader is still
 * unreaped, so that its number, which names group and session, cannot be in other use. When this
 * program itself is killed, a sandboxed command ends with its control socket; one on the host gets
 * the end of its pipes, or the hang-up of its terminal, and no more.
 *
 * Process 1 sweeps what the command made under protected names before it tells the end. When it
 * was killed and told nothing, run/sweep does it before the end counts.
 *
 * Must not: call an end the command's own when an intent of ours came first, or guess a status.
 */
#include "run/managed.h"

#include "sys/session.h"
#include "sys/spawn.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

void end_fini(struct managed_end *end)
{
    free(steal(end->reason));
    strv_fini(&end->left);
    strv_fini(&end->removed);
    strv_fini(&end->created);
    strv_fini(&end->denials);
}

static void set_end(struct managed *m, enum run_termination t, int exit_code, int signal,
                    char *reason)
{
    m->end.termination = t;
    m->end.exit_code = exit_code;
    m->end.signal = signal;
    free(m->end.reason);
    m->end.reason = reason;
}

static void add_denial(struct managed *m, const char *rule, const char *what, uint64_t count)
{
    struct denial d = {.count = count};
    snprintf(d.rule, sizeof(d.rule), "%s", rule);
    snprintf(d.what, sizeof(d.what), "%s", what);
    denial_add_line(&d, &m->end.denials);
}

static void take_denials(struct managed *m, const struct helper_verdict *v)
{
    for (size_t i = 0; i < DENIAL_MAX && v->denials[i].rule[0] != '\0'; i++)
        denial_add_line(&v->denials[i], &m->end.denials);
    for (size_t i = 0; i < HELPER_REMOVED_MAX && v->removed[i][0] != '\0'; i++)
        add_denial(m, "protect.name", v->removed[i], 1);
    if (v->oom_kills > 0)
        add_denial(m, "limit.memory", "", v->oom_kills);
}

/* Killed, and the group says by whom. */
static char *out_of_memory(const struct helper_verdict *v)
{
    if (v->oom_kills == 0 || v->value != SIGKILL)
        return NULL;
    return mem_printf("ended by the kernel because the command reached its memory limit "
                      "(limits.memory of the workspace)");
}

/* Which limit a signal of the kernel's stands for. It is said only where the limit is set and, of
 * processor time, was used up: anybody inside may send these signals, too. The kernel goes by whole
 * ticks, so what it counts may be a little less. */
static char *met_limit(const struct managed *m, const struct helper_verdict *v)
{
    const struct helper_limits *limits = &m->ws->limits;
    if (v->value == SIGXCPU && limits->cpu_seconds > 0 && v->cpu_us / 900000 >= limits->cpu_seconds)
        return mem_printf("ended by the kernel because it had used its processor time "
                          "(limits.cpu_seconds of the workspace, %" PRIu64 ")",
                          limits->cpu_seconds);
    if (v->value == SIGXFSZ && limits->file_size > 0)
        return mem_printf("by this signal the kernel ends who writes beyond limits.file_size of "
                          "the workspace (%" PRIu64 " bytes)",
                          limits->file_size);
    return out_of_memory(v);
}

/* The names are told by processes that may have called themselves anything. */
static void add_left(struct managed *m, uint64_t pid, const char *name)
{
    strv_addf(&m->end.left, "%" PRIu64 " %s", pid, name);
}

static void take_background(struct managed *m, const struct helper_verdict *v)
{
    m->end.background = v->background;
    for (size_t i = 0; i < HELPER_LEFT_MAX && v->left[i].pid != 0; i++)
        add_left(m, v->left[i].pid, v->left[i].name);
}

static void kill_session(struct managed *m)
{
    struct session_member named[SESSION_NAMED_MAX];
    m->end.background = session_end(m->pid, named);
    for (size_t i = 0; i < SESSION_NAMED_MAX && named[i].pid > 0; i++)
        add_left(m, (uint64_t)named[i].pid, named[i].name);
}

static void take_names(struct strv *to, const char names[HELPER_REMOVED_MAX][HELPER_NAME_MAX])
{
    strv_fini(to);
    for (size_t i = 0; i < HELPER_REMOVED_MAX && names[i][0] != '\0'; i++)
        strv_add(to, names[i]);
}

static void take_verdict_use(struct managed *m, const struct helper_verdict *v)
{
    m->end.cpu_us = v->cpu_us;
    m->end.max_rss_kib = v->max_rss_kib;
    take_names(&m->end.removed, v->removed);
    take_names(&m->end.created, v->created);
    strv_fini(&m->end.denials);
    take_denials(m, v);
}

void end_by_verdict(struct managed *m, const struct helper_verdict *v)
{
    if (m->end.termination != RUN_END_NONE)
        return;
    switch (v->event) {
    case HELPER_EXIT:
        set_end(m, RUN_END_EXITED, v->value, 0, NULL);
        take_background(m, v);
        take_verdict_use(m, v);
        return;
    case HELPER_SIGNAL:
        set_end(m, RUN_END_SIGNALED, 0, v->value, met_limit(m, v));
        take_background(m, v);
        take_verdict_use(m, v);
        return;
    case HELPER_FAILED:
        set_end(m, RUN_END_WRAPPER_FAILED, 0, 0,
                mem_printf("the sandbox failed (wrapper status %d): %s", v->value, v->message));
        return;
    case HELPER_EXEC_FAILED:
        set_end(m, RUN_END_WRAPPER_FAILED, 0, 0,
                mem_printf("the command could not be executed: %s", strerror(v->value)));
        return;
    case HELPER_STARTED:
    case HELPER_OVER:
    case HELPER_TEXT:
        return;
    }
}

/* The end is the command's and stays; what it made and used now counts for all of it. */
void end_by_over(struct managed *m, const struct helper_verdict *v)
{
    take_verdict_use(m, v);
    m->sequence++;
}

/* The wrapper ended and no verdict came. */
static void end_without_verdict(struct managed *m, const struct spawn_end *end)
{
    const char *words = m->words.len > 0 ? buf_cstr(&m->words) : "it said nothing";
    const char *how = end->signaled ? "killed by signal" : "status";
    char what[64];
    snprintf(what, sizeof(what), "ended before it answered (%s %d)", how, end->value);
    if (launch_awaits_answer(m))
        launch_fail_unanswered(m, what);
    launch_fail(m, ERR_PROCESS_SPAWN_FAILED,
                "the sandbox ended before the command was started (wrapper %s %d): %s", how,
                end->value, words);
    set_end(m, RUN_END_WRAPPER_FAILED, 0, 0,
            mem_printf("the sandbox ended without a verdict about the command (wrapper %s %d): %s",
                       how, end->value, words));
}

/* The status is gone: somebody else reaped our child. */
static void end_lost(struct managed *m, int rc)
{
    launch_fail(m, ERR_PROCESS_SPAWN_FAILED, "the sandbox's status was lost: %s", strerror(-rc));
    if (m->end.termination == RUN_END_NONE)
        set_end(m, RUN_END_LOST, 0, 0,
                mem_printf("its status was taken by somebody else (%s)", strerror(-rc)));
}

/* A child starts with the peak of the memory that it shared with us until exec, so a peak that is
 * not above our own says nothing about the command. */
static uint64_t own_peak_or_zero(uint64_t max_rss_kib)
{
    struct rusage ours = {0};
    getrusage(RUSAGE_SELF, &ours);
    return max_rss_kib > (uint64_t)ours.ru_maxrss ? max_rss_kib : 0;
}

static void end_by_wait(struct managed *m, const struct spawn_end *end)
{
    if (m->end.termination != RUN_END_NONE)
        return;
    if (m->sandboxed) {
        end_without_verdict(m, end);
        return;
    }
    m->end.cpu_us = end->cpu_us;
    m->end.max_rss_kib = own_peak_or_zero(end->max_rss_kib);
    if (end->signaled)
        set_end(m, RUN_END_SIGNALED, 0, end->value, NULL);
    else
        set_end(m, RUN_END_EXITED, end->value, 0, NULL);
}

/* While the command has not begun, the wrapper's group is bubblewrap and its child in the set-up.
 * The one killed without the other leaves a process that waits for ever and holds our pipes.
 * Nothing of the command ran yet, so nothing has to be swept. The wrapper must not be reaped yet:
 * the number is the group's. */
static void kill_set_up(const struct managed *m)
{
    if (m->sandboxed && !m->began && !m->reaped && m->pid > 0)
        (void)kill(-m->pid, SIGKILL);
}

static void on_swept(void *user, const struct strv *removed, const char *failed)
{
    struct managed *m = user;
    m->sweep = NULL;
    for (size_t i = 0; i < removed->len; i++) {
        if (strv_has(&m->end.removed, removed->items[i]))
            continue;
        strv_add(&m->end.removed, removed->items[i]);
        add_denial(m, "protect.name", removed->items[i], 1);
    }
    if (failed != NULL) {
        autofree char *before = steal(m->end.reason);
        m->end.reason =
            mem_printf("%s%s%.300s was created by the command and could not be taken "
                       "away",
                       before == NULL ? "" : before, before == NULL ? "" : "; ", failed);
    }
    managed_feed(m, PROCESS_ON_REAPED);
}

/* The end without process 1's last word: what it guarded is put right for it first. */
static void end_in_its_place(struct managed *m)
{
    if (m->sweep != NULL)
        return;
    if (m->init_fd >= 0)
        m->sweep = sweep_start(m->home->loop, &m->init_fd, m->ws, &m->guards, on_swept, m);
    if (m->sweep == NULL)
        managed_feed(m, PROCESS_ON_REAPED);
}

void end_on_pidfd(struct watch *w, void *owner)
{
    struct managed *m = owner;
    struct spawn_end end = {0};
    int ended = spawn_has_ended(w->fd);
    if (ended == 0)
        return;
    /* What process 1 said before the wrapper ended is worth more than the wrapper's status. */
    control_read(m);
    if (w->fd < 0)
        return;
    if (!m->sandboxed && ended > 0) /* unreaped, so the number is still the session's */
        kill_session(m);
    if (ended > 0)
        kill_set_up(m);
    int rc = session_reap(w->fd, false, &end);
    m->reaped = true;
    watch_close(w);
    if (rc == 0)
        end_by_wait(m, &end);
    else
        end_lost(m, rc);
    end_in_its_place(m);
}

static bool is_stop(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

void end_signal(struct managed *m, int signal)
{
    if (m->sandboxed)
        control_signal(m, signal);
    else if (!m->reaped && m->pid > 0)
        (void)session_signal(m->pid, signal);
    bool stops = is_stop(signal);
    if (stops == m->stopped || (!stops && signal != SIGCONT))
        return;
    m->stopped = stops;
    m->sequence++;
}

void end_hold_signal(struct managed *m, int signal)
{
    for (int other = 1; other <= 64; other++) {
        if ((signal == SIGCONT && is_stop(other)) || (is_stop(signal) && other == SIGCONT))
            m->held_signals &= ~(UINT64_C(1) << (other - 1));
    }
    m->held_signals |= UINT64_C(1) << (signal - 1);
}

void end_send_held(struct managed *m)
{
    for (int signal = 1; signal <= 64; signal++) {
        if (m->held_signals & UINT64_C(1) << (signal - 1))
            end_signal(m, signal);
    }
    m->held_signals = 0;
}

/* What is stopped acts on no signal but KILL, so it is continued. */
static void ask_to_end(struct managed *m, const struct run_terminate *how, uint64_t grace_ms)
{
    int signal = how->signal != 0 ? how->signal : SIGTERM;
    if (how->has_grace && how->grace_ms < grace_ms)
        grace_ms = how->grace_ms;
    if (signal == SIGKILL)
        grace_ms = 0;
    alarm_set(&m->alarm, grace_ms);
    end_signal(m, signal);
    if (m->stopped && signal != SIGKILL)
        end_signal(m, SIGCONT);
}

void end_ask(struct managed *m, enum run_termination intent)
{
    static const struct run_terminate by_us = {0};
    const struct run_terminate *how = intent == RUN_END_TERMINATED ? &m->how : &by_us;
    m->intent = intent;
    ask_to_end(m, how, how->has_grace ? RUN_GRACE_MAX_MS : RUN_GRACE_MS);
}

void end_hasten(struct managed *m)
{
    ask_to_end(m, &m->how, uv_timer_get_due_in(&m->alarm.timer));
}

void end_by_silence(struct managed *m)
{
    launch_fail(m, ERR_PROCESS_SPAWN_FAILED,
                "the sandbox ended while the command was being started; whether it began is not "
                "known");
    if (m->end.termination == RUN_END_NONE)
        set_end(m, RUN_END_WRAPPER_FAILED, 0, 0,
                mem_printf("the sandbox ended without a verdict about the command"));
    m->reaped = true;
    end_in_its_place(m);
}

/* It has no wrapper that could be killed. Our half of the connection closing ends it, and the other
 * half closing tells that it has ended. */
static void hang_up(struct managed *m)
{
    if (m->hung_up || m->control.fd < 0) {
        watch_close(&m->control);
        end_by_silence(m);
        return;
    }
    m->hung_up = true;
    (void)shutdown(m->control.fd, SHUT_WR);
    alarm_set(&m->alarm, MANAGED_NUDGE_MS);
}

void end_kill_now(struct managed *m)
{
    if (m->warm) {
        hang_up(m);
        return;
    }
    watch_close(&m->control);
    if (m->reaped || m->pid <= 0)
        return;
    if (!m->sandboxed && !m->session_killed)
        (void)session_signal(m->pid, SIGKILL);
    kill_set_up(m);
    if (m->pidfd.fd >= 0)
        (void)spawn_signal(m->pidfd.fd, SIGKILL);
}

void end_kill(struct managed *m)
{
    if (m->kill_asked || m->control.fd < 0) {
        end_kill_now(m);
        return;
    }
    m->kill_asked = true;
    control_signal(m, SIGKILL);
    alarm_set(&m->alarm, MANAGED_NUDGE_MS);
}

/* The command's end was its own; only what it left was ended by us. */
static void settle_kept(struct managed *m)
{
    static const char *const by[] = {
        [RUN_END_TIMEOUT] = "the time limit (timeout_ms)",
        [RUN_END_LIMIT] = "the limit of silence (idle_timeout_ms)",
        [RUN_END_TERMINATED] = "terminate_process",
    };
    free(m->end.reason);
    m->end.reason = mem_printf("what it left in the background was ended by %s", by[m->intent]);
}

void end_settle(struct managed *m)
{
    if (m->intent == RUN_END_NONE)
        return;
    if (m->kept) {
        settle_kept(m);
        return;
    }
    char *reason = NULL;
    if (m->intent == RUN_END_TIMEOUT)
        reason =
            mem_printf("ended by its time limit of %" PRIu64 " ms (timeout_ms)", m->timeout_ms);
    if (m->intent == RUN_END_LIMIT)
        reason = mem_printf("ended because it was silent for %" PRIu64 " ms (idle_timeout_ms)",
                            m->idle_timeout_ms);
    set_end(m, m->intent, 0, 0, reason);
}
