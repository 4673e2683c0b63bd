/* proxy/exchange: one request and its answer on the way; the messages the proxy writes itself.
 */
#ifndef CODESPACE_PROXY_EXCHANGE_H
#define CODESPACE_PROXY_EXCHANGE_H

#include "proxy/conn.h"

struct body {
    enum http1_body kind;
    uint64_t left; /* HTTP1_BODY_LENGTH */
    struct http1_chunked chunks;
};

struct exchange {
    bool active; /* a request is on its way; else the next head is awaited */
    struct http1_head request;
    struct http1_head response;
    struct http1_slice path; /* of the request's target */
    struct body up;
    struct body down;
    bool request_done;
    bool head_forwarded; /* the final response's */
    bool response_begun; /* a byte of it came */
    bool asked_head;     /* the method was HEAD */
    bool asked_upgrade;  /* and the server may grant it */
    bool close_client;   /* after this exchange */
    bool reused;         /* the server connection had a request before */
    struct buf replay;   /* the request, when it may be sent again */
};

/* Make ready for the next request. */
void exchange_reset(struct exchange *x);

/* Parse the target of a complete head into c->target and x->path. 1: a CONNECT. 0: another request.
 * -1: refused; *ret_host says that it was the host. */
int exchange_read_target(struct conn *c, bool *ret_host, struct err *e);

/* Write the request's head for the server and as much of the body as is there; consumes the head.
 */
void exchange_write_request(struct conn *c);

/* Write the response's head for the client and as much of the body as is there. The framing of
 * `down` must be set. */
void exchange_write_response(struct conn *c);

/* Answer the request ourselves. `verdict` NULL: no verdict but a failure named `reason`. */
void exchange_answer(struct conn *c, unsigned status, const char *reason, const char *message,
                     const struct egress_verdict *verdict);

/* Carry a body on. FLOW_DONE: its end was carried. FLOW_EOF: the sender's end of file came, which
 * is the end of a body of HTTP1_BODY_CLOSE and the loss of any other. */
enum flow_result body_pump(struct conn *c, struct body *b, struct flow *f, struct end *from,
                           struct end *to, char *block, bool *moved);
void body_init(struct body *b, const struct http1_head *h);

#endif
