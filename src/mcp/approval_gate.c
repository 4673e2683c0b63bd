/* mcp/approval_gate: see approval_gate.h. */
#include "mcp/approval_gate.h"

#include "base/str.h"
#include "core/policy.h"
#include "mcp/approval_run.h"
#include "mcp/approval_show.h"
#include "mcp/ask.h"
#include "mcp/inputs.h"
#include "mcp/tool.h"
#include "wire/json.h"

#include <string.h>

/* The name of the question in a modern answer. */
#define QUESTION "approval"

enum decision { DECISION_NONE, DECISION_ALLOW, DECISION_DENY };

struct ask_timer {
    uv_timer_t timer;
    struct request *rq;
};

struct approval_gate {
    const struct workspace *ws;
    enum approval_tool tool;
    request_fn go;
    char *granted_by; /* the hold of a call that was granted */
    struct approval hold;
    char *asked; /* the hold that the client says it asked about */
    enum decision decision;
    bool answered; /* the question was, whatever was said */
    bool allowed;
    struct approval_run *run;
    struct ask_timer *timer;
    int status;
    struct err e;
};

const char *approval_of(const struct request *rq)
{
    return rq->gate != NULL ? rq->gate->granted_by : NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(container_of((uv_timer_t *)handle, struct ask_timer, timer));
}

static void stop_timer(struct approval_gate *g)
{
    struct ask_timer *t = steal(g->timer);
    if (t != NULL)
        uv_close((uv_handle_t *)&t->timer, on_timer_closed);
}

void approval_gate_end(struct request *rq)
{
    struct approval_gate *g = steal(rq->gate);
    if (g == NULL)
        return;
    stop_timer(g);
    approval_run_leave(g->run);
    approval_fini(&g->hold);
    free(g->granted_by);
    free(g->asked);
    free(g);
}

/* ---- what is held ---- */

/* Members that make no difference to what a call does. */
static bool is_of_the_answer(const char *name)
{
    return str_eq(name, "wait_ms") || str_eq(name, "work_id");
}

/* The arguments that the tool reads, in the order of its table. */
static void write_arguments(const struct tool *t, struct json_object *args, bool all,
                            struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    for (size_t i = 0; i < t->n_in; i++) {
        struct json_object *value = json_get(args, t->in[i].name);
        bool kept = str_eq(t->in[i].name, "work_id") || !(t->in[i].flags & JSON_IGNORED);
        if (value == NULL || !kept || (!all && is_of_the_answer(t->in[i].name)))
            continue;
        const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
        jsonw_key(&w, t->in[i].name);
        jsonw_raw(&w, text, strlen(text));
    }
    jsonw_object_end(&w);
}

static void make_print(const struct tool *t, const char *workspace_id, struct json_object *args,
                       char ret[LEDGER_HASH_LEN])
{
    autobuf text = BUF_INIT;
    write_arguments(t, args, false, &text);
    const struct ledger_part parts[] = {{t->name, strlen(t->name)},
                                        {workspace_id, strlen(workspace_id)},
                                        {buf_bytes(&text), text.len}};
    ledger_hash(parts, ARRAY_LEN(parts), ret);
}

int approval_hold(struct ledger *l, const struct tool *t, enum approval_tool tool,
                  const char *workspace_id, struct json_object *args, struct approval *ret,
                  struct err *e)
{
    char print[LEDGER_HASH_LEN];
    autobuf text = BUF_INIT;
    make_print(t, workspace_id, args, print);
    write_arguments(t, args, true, &text);
    const struct approval_request request = {workspace_id, tool, print, buf_cstr(&text)};
    return approvals_create(l, &request, ret, e);
}

/* ---- answers ---- */

void approval_fail(struct request *rq, const struct err *e, const char *approval_id)
{
    autobuf body = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &body);
    jsonw_object(&w);
    jsonw_kstr(&w, "code", err_info(e->code)->name);
    jsonw_kstr(&w, "message", e->message);
    if (approval_id != NULL)
        jsonw_kstr(&w, "approval_id", approval_id);
    jsonw_object_end(&w);
    request_fail_body(rq, &body);
}

static void answer_required(struct request *rq)
{
    struct approval_gate *g = rq->gate;
    struct err e;
    const char *id = g->hold.approval_id;
    if (g->hold.state == APPROVAL_PENDING)
        err_set(&e, ERR_APPROVAL_REQUIRED,
                "workspace \"%s\" asks a person before this, so the call is held as %s and has not "
                "run. A person decides it outside of this conversation (codespace-mcp approvals "
                "grant %s, or POST /operator/approvals/%s/grant); then call operation_resume with "
                "this approval_id, which runs it once. Until then do not repeat it",
                g->ws->id, id, id, id);
    else
        err_set(&e, ERR_APPROVAL_REQUIRED,
                "the same call is held as %s, which is %s: call operation_resume with this "
                "approval_id instead of repeating it",
                id, approval_state_name(g->hold.state));
    approval_fail(rq, &e, id);
}

static void on_run(struct request *rq, const struct approval_outcome *outcome,
                   const struct err *failure)
{
    if (failure != NULL)
        approval_fail(rq, failure, rq->gate->hold.approval_id);
    else if (outcome->is_error)
        request_fail_body(rq, outcome->json);
    else
        request_finish_json(rq, outcome->json);
}

/* ---- a person's answer ---- */

static enum decision read_decision(struct json_object *answer)
{
    const char *action = json_str(json_get(answer, "action"));
    const char *word = json_str(json_get(json_get(answer, "content"), "decision"));
    if (str_eq(action, "decline"))
        return DECISION_DENY;
    if (!str_eq(action, "accept") || word == NULL)
        return DECISION_NONE;
    if (str_eq(word, "allow once"))
        return DECISION_ALLOW;
    return str_eq(word, "deny") ? DECISION_DENY : DECISION_NONE;
}

/* Carry it out on the hold, as it is now. */
static int decide(struct ledger *l, struct approval_gate *g)
{
    const char *id = g->hold.approval_id;
    struct approval now = {0};
    if (g->hold.state == APPROVAL_PENDING && g->decision == DECISION_DENY)
        g->status = approvals_deny(l, id, APPROVAL_BY_ELICITATION, &g->e);
    else if (g->hold.state == APPROVAL_PENDING && g->decision == DECISION_ALLOW)
        g->status = approvals_grant(l, id, APPROVAL_BY_ELICITATION, false, &g->e);
    if (g->status < 0 && g->e.code != ERR_APPROVAL_CONFLICT)
        return -1;
    /* Somebody else may have decided meanwhile. */
    g->status = approvals_get(l, id, &now, &g->e);
    if (g->status < 0)
        return -1;
    approval_fini(&g->hold);
    g->hold = now;
    if (now.state == APPROVAL_DENIED)
        return err_set(&g->e, ERR_APPROVAL_CONFLICT,
                       "approval %s is denied: a person said no, which is final. Nothing ran; ask "
                       "what they want instead",
                       now.approval_id);
    g->allowed = g->decision == DECISION_ALLOW && now.state != APPROVAL_PENDING;
    return 0;
}

/* The hold that the client was asked about, when it is one of this very call. */
static bool find_asked(struct request *rq)
{
    struct approval_gate *g = rq->gate;
    char print[LEDGER_HASH_LEN];
    autoapproval a = {0};
    if (g->asked == NULL || approvals_get(rq->server->ledger, g->asked, &a, NULL) < 0)
        return false;
    make_print(rq->tool, g->ws->id, rq->args, print);
    if (!str_eq(a.workspace_id, g->ws->id) || !str_eq(a.fingerprint, print))
        return false;
    g->hold = a;
    a = (struct approval){0};
    return true;
}

static void hold_work(struct request *rq)
{
    struct approval_gate *g = rq->gate;
    struct ledger *l = rq->server->ledger;
    if (find_asked(rq)) {
        g->status = decide(l, g);
        return;
    }
    g->answered = false;
    g->decision = DECISION_NONE;
    g->status = approval_hold(l, rq->tool, g->tool, g->ws->id, rq->args, &g->hold, &g->e);
}

static void decide_work(struct request *rq)
{
    struct approval_gate *g = rq->gate;
    g->status = decide(rq->server->ledger, g);
}

/* ---- asking ---- */

/* A form: the only mode of the older revisions, and what {} means in the newer ones. */
static bool client_takes_forms(const struct request *rq)
{
    struct json_object *all = ask_client_capability(rq, "elicitation");
    return all != NULL && (json_get(all, "form") != NULL || json_get(all, "url") == NULL);
}

static bool may_ask(const struct request *rq)
{
    const struct registry *r = rq->server->registry;
    return rq->session != NULL &&
           (rq->session->remote ? r->http_elicitation : !r->no_elicitation) &&
           rq->gate->hold.state == APPROVAL_PENDING && client_takes_forms(rq);
}

static void write_question(const struct approval *hold, struct jsonw *w)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\",\"title\":"
        "\"Decision\",\"description\":\"allow once runs exactly this call; deny refuses it for "
        "good\",\"enum\":[\"deny\",\"allow once\"]}},\"required\":[\"decision\"]}";
    autobuf text = BUF_INIT;
    buf_printf(&text, "A call waits for your decision (%s):\n", hold->approval_id);
    approval_show_call(&text, hold, false);
    jsonw_object(w);
    jsonw_kstr(w, "message", buf_cstr(&text));
    jsonw_key(w, "requestedSchema");
    jsonw_raw(w, schema, sizeof(schema) - 1);
    jsonw_object_end(w);
}

static void ask_modern(struct request *rq)
{
    autobuf text = BUF_INIT;
    struct jsonw w;
    autofree char *id = mem_strdup(rq->gate->hold.approval_id);
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_key(&w, QUESTION);
    jsonw_object(&w);
    jsonw_kstr(&w, "method", "elicitation/create");
    jsonw_key(&w, "params");
    write_question(&rq->gate->hold, &w);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    inputs_require(rq, buf_cstr(&text), id);
}

static void hold_after(struct request *rq);

static void on_answer(struct request *rq, struct json_object *result)
{
    struct approval_gate *g = rq->gate;
    stop_timer(g);
    g->answered = true;
    g->decision = read_decision(result);
    if (g->decision == DECISION_NONE)
        answer_required(rq);
    else
        request_pool(rq, 0, decide_work, hold_after);
}

static void on_no_answer(uv_timer_t *timer)
{
    struct request *rq = container_of(timer, struct ask_timer, timer)->rq;
    ask_drop(rq->session, rq);
    answer_required(rq);
}

static void ask_legacy(struct request *rq)
{
    autobuf params = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &params);
    write_question(&rq->gate->hold, &w);
    if (!ask_client(rq, "elicitation/create", buf_cstr(&params), on_answer)) {
        answer_required(rq);
        return;
    }
    struct ask_timer *t = mem_new(struct ask_timer);
    t->rq = rq;
    rq->gate->timer = t;
    ensure(uv_timer_init(rq->server->loop, &t->timer) == 0);
    uv_timer_start(&t->timer, on_no_answer, APPROVAL_ASK_MS, 0);
    uv_unref((uv_handle_t *)&t->timer); /* the session is what keeps the question alive */
}

static void hold_after(struct request *rq)
{
    struct approval_gate *g = rq->gate;
    if (g->status < 0)
        approval_fail(rq, &g->e, g->hold.approval_id);
    else if (g->allowed && rq->session != NULL)
        g->run = approval_run_new(rq, g->hold.approval_id, on_run);
    else if (!g->answered && may_ask(rq) && rq->modern)
        ask_modern(rq);
    else if (!g->answered && may_ask(rq))
        ask_legacy(rq);
    else
        answer_required(rq);
}

/* ---- the gate ---- */

static void start_work(struct request *rq)
{
    struct approval_gate *g = rq->gate;
    g->status = approvals_start(rq->server->ledger, g->granted_by, &g->e);
}

static void start_after(struct request *rq)
{
    struct approval_gate *g = rq->gate;
    if (!approval_run_started(rq->session->approved, g->status == 0))
        return;
    if (g->status < 0)
        request_fail(rq, &g->e);
    else
        g->go(rq);
}

static void start_granted(struct request *rq, struct approval_run *run)
{
    rq->gate->granted_by = mem_strdup(approval_run_id(run));
    approval_run_starting(run);
    request_pool(rq, 0, start_work, start_after);
}

/* What a modern client brings back; a state that is not ours ends the call. */
static int take_answer(struct request *rq, struct err *e)
{
    struct approval_gate *g = rq->gate;
    if (!rq->modern)
        return 0;
    if (inputs_state(rq, &g->asked, e) < 0)
        return -1;
    g->answered = inputs_get(rq, QUESTION) != NULL;
    g->decision = read_decision(inputs_get(rq, QUESTION));
    return 0;
}

void approval_gate(struct request *rq, const struct workspace *ws, enum approval_tool tool,
                   request_fn go)
{
    struct err e;
    struct approval_run *run = rq->session->approved;
    enum policy_action action = tool == APPROVAL_APPLY_PATCH ? POLICY_WRITE : POLICY_EXEC;
    if (run == NULL && !policy_asks(ws, action)) {
        go(rq);
        return;
    }
    ensure(rq->gate == NULL);
    rq->gate = mem_new(struct approval_gate);
    rq->gate->ws = ws;
    rq->gate->tool = tool;
    rq->gate->go = go;
    if (run != NULL)
        start_granted(rq, run);
    else if (take_answer(rq, &e) < 0)
        request_error(rq, &e, NULL);
    else
        request_pool(rq, 0, hold_work, hold_after);
}
