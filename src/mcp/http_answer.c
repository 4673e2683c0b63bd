/* mcp/http_answer: what is written to a connection: whole answers, and event streams in pieces. */
#include "mcp/http.h"
#include "mcp/http_cors.h"

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } all[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i].status == status)
            return all[i].text;
    }
    return "Status";
}

void http_conn_answer(struct http_conn *c, int status, const char *more, struct buf *body)
{
    autobuf head = BUF_INIT;
    c->keep_alive = c->keep_alive && !c->http->draining;
    buf_printf(&head, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
    if (status != 204) /* RFC 9110: it has none */
        buf_printf(&head, "Content-Length: %zu\r\n", body->len);
    buf_puts(&head, c->keep_alive ? "" : "Connection: close\r\n");
    buf_puts(&head, more);
    http_cors_write(c->origin, &head);
    buf_puts(&head, "\r\n");
    http_conn_send(c, &head, buf_bytes(body), body->len);
    buf_reset(body, body->cap);
    http_conn_answered(c);
}

void http_conn_say(struct http_conn *c, int status, const char *more, const char *type,
                   const char *text)
{
    autobuf body = BUF_INIT;
    autofree char *all = mem_printf("Content-Type: %s\r\n%s", type, more);
    buf_puts(&body, text);
    http_conn_answer(c, status, all, &body);
}

void http_conn_stream(struct http_conn *c, const char *more)
{
    autobuf head = BUF_INIT;
    buf_printf(&head,
               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
               "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n%s%s",
               c->chunked ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n", more);
    http_cors_write(c->origin, &head);
    buf_puts(&head, "\r\n");
    c->keep_alive = c->keep_alive && c->chunked;
    http_conn_send(c, &head, "", 0);
    c->state = HTTP_STREAMING;
    http_conn_touch(c);
}

void http_conn_put(struct http_conn *c, const void *bytes, size_t n)
{
    autobuf part = BUF_INIT;
    if (c->broken)
        return;
    if (c->chunked)
        buf_printf(&part, "%zx\r\n", n);
    buf_put(&part, bytes, n);
    if (c->chunked)
        buf_puts(&part, "\r\n");
    http_conn_send(c, &part, "", 0);
    http_conn_touch(c);
}

void http_conn_stream_end(struct http_conn *c)
{
    autobuf end = BUF_INIT;
    if (c->broken)
        return;
    if (c->chunked)
        buf_puts(&end, "0\r\n\r\n");
    http_conn_send(c, &end, "", 0);
    c->keep_alive = c->keep_alive && !c->http->draining;
    http_conn_answered(c);
}
