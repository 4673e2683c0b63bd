/* mcp/notice: see notice.h. */
#include "mcp/notice.h"

#include "mcp/meta.h"
#include "mcp/session.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};

/* Lives on its own, since a handle of the loop cannot be closed at once. */
struct ticker {
    uv_timer_t timer;
    struct request *rq;
    unsigned ticks;
};

int notice_level_of(const char *name)
{
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(levels); i++) {
        if (strcmp(levels[i], name) == 0)
            return (int)i;
    }
    return -1;
}

struct json_object *notice_token(const struct request *rq)
{
    struct json_object *token = meta_get(json_get(rq->message, "params"), "progressToken");
    bool usable =
        json_object_is_type(token, json_type_string) || json_object_is_type(token, json_type_int);
    return usable ? token : NULL;
}

static void send_notice(struct request *rq, struct buf *message)
{
    if (rq->session != NULL)
        peer_notify(rq->peer, message);
}

void notice_progress(struct request *rq, double progress, double total, const char *message)
{
    struct json_object *token = notice_token(rq);
    autobuf out = BUF_INIT;
    struct jsonw w;
    if (token == NULL)
        return;
    const char *text = json_object_to_json_string_ext(token, JSON_C_TO_STRING_PLAIN);
    buf_puts(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":");
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_key(&w, "progressToken");
    jsonw_raw(&w, text, strlen(text));
    jsonw_key(&w, "progress");
    jsonw_double(&w, progress);
    if (total > 0) {
        jsonw_key(&w, "total");
        jsonw_double(&w, total);
    }
    if (message != NULL)
        jsonw_kstr(&w, "message", message);
    jsonw_object_end(&w);
    buf_putc(&out, '}');
    send_notice(rq, &out);
}

/* The least important level that this client wants to hear; NULL-safe. */
static int wanted(const struct request *rq)
{
    if (!rq->modern)
        return (int)rq->session->log_level;
    struct json_object *params = json_get(rq->message, "params");
    int level = notice_level_of(json_str(meta_get(params, META_LOG_LEVEL)));
    return level < 0 ? (int)ARRAY_LEN(levels) : level;
}

void notice_log(struct request *rq, enum notice_level level, const char *text)
{
    autobuf out = BUF_INIT;
    struct jsonw w;
    if (rq->session == NULL || (int)level < wanted(rq))
        return;
    buf_puts(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":");
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_kstr(&w, "level", levels[level]);
    jsonw_kstr(&w, "logger", "codespace");
    jsonw_kstr(&w, "data", text);
    jsonw_object_end(&w);
    buf_putc(&out, '}');
    send_notice(rq, &out);
}

/* ---- ticks ---- */

static void on_tick(uv_timer_t *timer)
{
    struct ticker *t = container_of(timer, struct ticker, timer);
    t->ticks++;
    notice_progress(t->rq, (double)t->ticks * NOTICE_TICK_MS / 1000, 0, "still running");
}

static void on_ticker_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct ticker, timer));
}

void notice_tick(struct request *rq)
{
    if (rq->ticker != NULL || notice_token(rq) == NULL)
        return;
    struct ticker *t = mem_new(struct ticker);
    t->rq = rq;
    ensure(uv_timer_init(rq->server->loop, &t->timer) == 0);
    ensure(uv_timer_start(&t->timer, on_tick, NOTICE_TICK_MS, NOTICE_TICK_MS) == 0);
    rq->ticker = t;
}

void notice_stop(struct request *rq)
{
    struct ticker *t = steal(rq->ticker);
    if (t == NULL)
        return;
    t->rq = NULL;
    uv_close((uv_handle_t *)&t->timer, on_ticker_closed);
}
