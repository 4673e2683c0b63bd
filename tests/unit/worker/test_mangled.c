/* worker: a conversation, mangled: each message of it cut short, said twice, said in the place of
 * its neighbour, or grown beyond what a frame may be. The worker must answer each request at most
 * once, say only whole messages, run the command at most once, and end with its stream, by itself.
 */
#include "peer.h"

#define COMMAND_ID "proc-mangled"

enum mangling { WHOLE, CUT_HEAD, CUT, TWICE, SWAPPED, OVERSIZED, MANGLINGS };

static const char *const ids[] = {"h", "e", "s", "w", "l", "p", "r", "t"};
enum { MESSAGES = ARRAY_LEN(ids) };

static char *message(size_t i, const char *dir)
{
    static const char *const ops[MESSAGES] = {"hello", "exec", "status", "write",
                                              "list",  "ping", "replay", "terminate"};
    static const char *const rest[MESSAGES] = {
        "{\"program\":\"test\"}",
        NULL,
        "{\"process_id\":\"" COMMAND_ID "\"}",
        "{\"process_id\":\"" COMMAND_ID "\",\"data\":\"eAo=\"}",
        "{}",
        "{}",
        "{\"request_id\":\"s\"}",
        "{\"process_id\":\"" COMMAND_ID "\"}",
    };
    autofree char *exec =
        mem_printf("{\"workspace\":{\"id\":\"w\",\"root\":\"%s\"},\"process_id\":\"" COMMAND_ID
                   "\",\"argv\":[\"/bin/sh\",\"-c\",\"echo run >> %s/runs; exec cat\"]}",
                   dir, dir);
    return mem_printf("{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"%s\",\"op\":{\"op\":"
                      "\"%s\",\"data\":%s}}",
                      ids[i], ops[i], rest[i] == NULL ? exec : rest[i]);
}

static void frame_of(const char *text, struct buf *out)
{
    size_t begun = frame_begin(out);
    buf_puts(out, text);
    assert_int_equal(frame_end(out, begun), 0);
}

/* The whole conversation with its message `at` mangled. */
static void conversation(enum mangling how, size_t at, const char *dir, struct buf *out)
{
    for (size_t i = 0; i < MESSAGES; i++) {
        size_t which = how != SWAPPED ? i : i == at ? at + 1 : i == at + 1 ? at : i;
        autofree char *text = message(which % MESSAGES, dir);
        size_t before = out->len;
        frame_of(text, out);
        if (i != at)
            continue;
        if (how == TWICE)
            frame_of(text, out);
        if (how == OVERSIZED)
            ((unsigned char *)buf_bytes(out))[before] = 0x7f; /* of the length */
        if (how == CUT_HEAD || how == CUT) {
            buf_truncate(out, how == CUT_HEAD ? before + 2 : (before + out->len) / 2);
            return;
        }
    }
}

/* Read until it hangs up; each request's answers are counted. */
static void hear_out(struct peer *p, unsigned answers[MESSAGES])
{
    struct runmsg m;
    while (peer_next(p, &m)) {
        for (size_t i = 0; m.kind == RUNMSG_RESPONSE && i < MESSAGES; i++)
            answers[i] += strcmp(m.request_id, ids[i]) == 0;
        runmsg_fini(&m);
    }
}

static size_t size_of(const char *dir)
{
    struct stat st;
    autofree char *path = mem_printf("%s/runs", dir);
    size_t n = stat(path, &st) < 0 ? 0 : (size_t)st.st_size;
    unlink(path);
    return n;
}

static void try_one(enum mangling how, size_t at, const char *dir)
{
    struct peer p;
    autobuf bytes = BUF_INIT;
    unsigned answers[MESSAGES] = {0};
    conversation(how, at, dir, &bytes);
    peer_stdio(&p);
    peer_bytes(&p, buf_bytes(&bytes), bytes.len);
    if (how == WHOLE) { /* all is answered; so no end of the stream gives anything up */
        struct runmsg m;
        unsigned n = 0;
        while (n < MESSAGES && peer_next(&p, &m)) {
            n += m.kind == RUNMSG_RESPONSE;
            assert_false(m.kind == RUNMSG_RESPONSE && m.failed && m.request_id[0] == 'e');
            runmsg_fini(&m);
        }
        assert_int_equal(n, MESSAGES);
    }
    close(p.out);
    p.out = -1;
    hear_out(&p, answers);
    for (size_t i = 0; i < MESSAGES; i++)
        assert_in_range(answers[i], 0, how == TWICE && i == at ? 2 : 1);
    assert_int_equal(peer_end(&p), 0);
    assert_in_range(size_of(dir), 0, strlen("run\n"));
}

static void test_each_message_mangled(void **state)
{
    (void)state;
    char dir[] = "/tmp/codespace-mangled-XXXXXX";
    assert_non_null(mkdtemp(dir));
    try_one(WHOLE, 0, dir);
    for (int how = CUT_HEAD; how < MANGLINGS; how++) {
        for (size_t at = 0; at < MESSAGES - (how == SWAPPED); at++)
            try_one((enum mangling)how, at, dir);
    }
    assert_int_equal(rmdir(dir), 0);
}

UNIT_MAIN(cmocka_unit_test(test_each_message_mangled))
