/* mcp/recorder: see recorder.h. */
#include "mcp/recorder.h"

#include "base/log.h"
#include "base/mem.h"

#include <pthread.h>

struct recorder {
    uv_loop_t *loop;
    struct ledger *ledger;
    pthread_mutex_t queue_mutex; /* over queue, n, batch, lost */
    struct list queue;
    unsigned n;
    uint64_t batch; /* of what is pushed now */
    uint64_t lost;
    bool busy;               /* a batch is being written */
    pthread_mutex_t writing; /* one writer at a time keeps the order */
    uv_work_t job;
    uv_timer_t timer;
    bool in_pool; /* the loop's, as the timer */
};

struct recorder *recorder_new(uv_loop_t *loop, struct ledger *ledger)
{
    struct recorder *r = mem_new(struct recorder);
    r->loop = loop;
    r->ledger = ledger;
    list_init(&r->queue);
    ensure(pthread_mutex_init(&r->queue_mutex, NULL) == 0);
    ensure(pthread_mutex_init(&r->writing, NULL) == 0);
    ensure(uv_timer_init(loop, &r->timer) == 0);
    uv_unref((uv_handle_t *)&r->timer); /* the end writes what waits */
    return r;
}

static void lock(pthread_mutex_t *m)
{
    ensure(pthread_mutex_lock(m) == 0);
}

static void unlock(pthread_mutex_t *m)
{
    ensure(pthread_mutex_unlock(m) == 0);
}

/* Everything that waits, moved into `to`. */
static void take_all(struct recorder *r, struct list *to)
{
    list_init(to);
    lock(&r->queue_mutex);
    while (!list_empty(&r->queue)) {
        struct list *first = r->queue.next;
        list_remove(first);
        list_append(to, first);
    }
    r->n = 0;
    r->batch++;
    r->busy = !list_empty(to);
    unlock(&r->queue_mutex);
}

void recorder_flush(struct recorder *r)
{
    struct list batch;
    uint64_t failed = 0;
    lock(&r->writing);
    take_all(r, &batch);
    while (!list_empty(&batch)) {
        struct record *record = container_of(batch.next, struct record, node);
        list_remove(&record->node);
        failed += record->write(record, r->ledger) ? 0 : 1;
    }
    lock(&r->queue_mutex);
    r->busy = false;
    r->lost += failed;
    unlock(&r->queue_mutex);
    unlock(&r->writing);
}

bool recorder_idle(struct recorder *r)
{
    lock(&r->queue_mutex);
    bool idle = r->n == 0 && !r->busy;
    unlock(&r->queue_mutex);
    return idle;
}

unsigned recorder_waiting(struct recorder *r)
{
    lock(&r->queue_mutex);
    unsigned n = r->n;
    unlock(&r->queue_mutex);
    return n;
}

void recorder_free(struct recorder *r)
{
    if (r == NULL)
        return;
    ensure(!r->in_pool);
    recorder_flush(r);
    uv_close((uv_handle_t *)&r->timer, NULL);
    uv_run(r->loop, UV_RUN_NOWAIT);
    pthread_mutex_destroy(&r->queue_mutex);
    pthread_mutex_destroy(&r->writing);
    free(r);
}

/* The batch that the record is in, or RECORDER_DROPPED. */
static uint64_t put(struct recorder *r, struct record *record)
{
    lock(&r->queue_mutex);
    uint64_t batch = r->n < RECORDER_QUEUE_MAX ? r->batch : RECORDER_DROPPED;
    if (batch != RECORDER_DROPPED) {
        list_append(&r->queue, &record->node);
        r->n++;
    } else if (r->lost++ == 0) {
        log_error("more records wait for the ledger than RECORDER_QUEUE_MAX (%u); what comes now "
                  "is not recorded",
                  RECORDER_QUEUE_MAX);
    }
    unlock(&r->queue_mutex);
    if (batch == RECORDER_DROPPED)
        (void)record->write(record, NULL);
    return batch;
}

void recorder_push_quietly(struct recorder *r, struct record *record)
{
    (void)put(r, record);
}

static void job_work(uv_work_t *job)
{
    recorder_flush(container_of(job, struct recorder, job));
}

static void job_after(uv_work_t *job, int status)
{
    struct recorder *r = container_of(job, struct recorder, job);
    ensure(status == 0);
    r->in_pool = false;
    recorder_kick(r);
}

static void on_time(uv_timer_t *timer)
{
    struct recorder *r = container_of(timer, struct recorder, timer);
    if (r->in_pool)
        return;
    r->in_pool = true;
    ensure(uv_queue_work(r->loop, &r->job, job_work, job_after) == 0);
}

void recorder_kick(struct recorder *r)
{
    lock(&r->queue_mutex);
    bool any = !list_empty(&r->queue);
    unlock(&r->queue_mutex);
    if (any && !r->in_pool && !uv_is_active((uv_handle_t *)&r->timer))
        ensure(uv_timer_start(&r->timer, on_time, RECORDER_DELAY_MS, 0) == 0);
}

uint64_t recorder_push(struct recorder *r, struct record *record)
{
    uint64_t batch = put(r, record);
    recorder_kick(r);
    return batch;
}

bool recorder_amend(struct recorder *r, uint64_t batch, struct record *record,
                    void (*change)(struct record *record, void *user), void *user)
{
    lock(&r->queue_mutex);
    bool waits = r->batch == batch;
    if (waits)
        change(record, user);
    unlock(&r->queue_mutex);
    return waits;
}

uint64_t recorder_lost(struct recorder *r)
{
    lock(&r->queue_mutex);
    uint64_t lost = r->lost;
    unlock(&r->queue_mutex);
    return lost;
}
