/* run/gate: see gate.h. */
#include "run/gate.h"

#include "run/runner.h"

struct gate_root {
    struct list link;
    dev_t dev;
    ino_t ino;
    size_t n_in, n_queued;
    bool exclusive_in;
    struct list queue;
};

void gate_init(struct gate *g, gate_fn opens, void *user)
{
    *g = (struct gate){.opens = opens, .user = user};
    list_init(&g->roots);
}

void gate_close(struct gate *g)
{
    g->closed = true;
}

void gate_fini(struct gate *g)
{
    ensure(list_empty(&g->roots));
}

static struct gate_root *find(const struct gate *g, dev_t dev, ino_t ino)
{
    list_each (it, &g->roots) {
        struct gate_root *r = container_of(it, struct gate_root, link);
        if (r->dev == dev && r->ino == ino)
            return r;
    }
    return NULL;
}

static struct gate_root *get(struct gate *g, dev_t dev, ino_t ino)
{
    struct gate_root *r = find(g, dev, ino);
    if (r != NULL)
        return r;
    r = mem_new(struct gate_root);
    r->dev = dev;
    r->ino = ino;
    list_init(&r->queue);
    list_append(&g->roots, &r->link);
    return r;
}

static bool is_free(const struct gate_root *r, bool exclusive)
{
    return !r->exclusive_in && (!exclusive || r->n_in == 0);
}

int gate_check_room(const struct gate *g, dev_t dev, ino_t ino, bool exclusive, struct err *e)
{
    const struct gate_root *r = find(g, dev, ino);
    bool waits = r != NULL && (r->n_queued > 0 || !is_free(r, exclusive));
    if (!waits || r->n_queued < RUN_QUEUE_MAX)
        return 0;
    return err_set(e, ERR_RESOURCE_QUEUE_FULL,
                   "%zu commands wait already for their turn on this root (RUN_QUEUE_MAX, %u), "
                   "because one asked to be alone (exclusive); try again when it has ended",
                   r->n_queued, RUN_QUEUE_MAX);
}

void pass_init(struct pass *p)
{
    *p = (struct pass){0};
    list_init(&p->link);
}

static void let_in(struct pass *p)
{
    p->in = true;
    p->root->n_in++;
    p->root->exclusive_in = p->exclusive;
}

bool gate_enter(struct gate *g, struct pass *p, dev_t dev, ino_t ino, bool exclusive)
{
    struct gate_root *r = get(g, dev, ino);
    p->gate = g;
    p->root = r;
    p->exclusive = exclusive;
    if (r->n_queued == 0 && is_free(r, exclusive)) {
        let_in(p);
        return true;
    }
    list_append(&r->queue, &p->link);
    r->n_queued++;
    return false;
}

/* The next one that may go in, taken out of the queue and in; NULL = none. */
static struct pass *admit_next(struct gate_root *r)
{
    if (list_empty(&r->queue))
        return NULL;
    struct pass *p = container_of(r->queue.next, struct pass, link);
    if (!is_free(r, p->exclusive))
        return NULL;
    list_remove(&p->link);
    r->n_queued--;
    let_in(p);
    return p;
}

/* `opens` may leave, enter and free what it likes, the root included: it is looked up again. */
static void admit(struct gate *g, dev_t dev, ino_t ino)
{
    while (!g->closed) {
        struct gate_root *r = find(g, dev, ino);
        struct pass *p = r == NULL ? NULL : admit_next(r);
        if (p == NULL)
            return;
        g->opens(g->user, p);
    }
}

void pass_leave(struct pass *p)
{
    struct gate_root *r = steal(p->root);
    if (r == NULL)
        return;
    dev_t dev = r->dev;
    ino_t ino = r->ino;
    if (p->in) {
        r->n_in--;
        r->exclusive_in = false;
    } else {
        list_remove(&p->link);
        r->n_queued--;
    }
    p->in = false;
    if (r->n_in == 0 && r->n_queued == 0) {
        list_remove(&r->link);
        free(r);
        return;
    }
    admit(p->gate, dev, ino);
}
