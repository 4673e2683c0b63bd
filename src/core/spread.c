/* core/spread: see spread.h. */
#include "core/spread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct share {
    size_t from;
    size_t to;
    spread_fn *step;
    void *user;
    atomic_bool *stop;
    int rc;
    size_t failed;
    pthread_t thread;
    bool started;
};

static void *run_share(void *user)
{
    struct share *s = user;
    for (size_t i = s->from; i < s->to && !atomic_load(s->stop); i++) {
        s->rc = s->step(s->user, i);
        if (s->rc == 0)
            continue;
        s->failed = i;
        atomic_store(s->stop, true);
        break;
    }
    return NULL;
}

static unsigned threads_for(size_t n)
{
    cpu_set_t set;
    if (n < SPREAD_FROM || sched_getaffinity(0, sizeof(set), &set) < 0)
        return 1;
    unsigned cpus = (unsigned)CPU_COUNT(&set);
    return cpus < SPREAD_THREADS_MAX ? cpus : SPREAD_THREADS_MAX;
}

int spread(size_t n, spread_fn *step, void *user, size_t *ret_failed)
{
    struct share shares[SPREAD_THREADS_MAX];
    atomic_bool stop = false;
    unsigned k = threads_for(n);
    for (unsigned t = 0; t < k; t++) {
        shares[t] = (struct share){
            .from = n * t / k, .to = n * (t + 1) / k, .step = step, .user = user, .stop = &stop};
        /* The first is the caller's. */
        shares[t].started =
            t > 0 && pthread_create(&shares[t].thread, NULL, run_share, &shares[t]) == 0;
    }
    for (unsigned t = 0; t < k; t++) {
        if (!shares[t].started)
            run_share(&shares[t]);
    }
    int rc = 0;
    for (unsigned t = k; t-- > 0;) {
        if (shares[t].started)
            (void)pthread_join(shares[t].thread, NULL);
        if (shares[t].rc == 0)
            continue;
        rc = shares[t].rc;
        *ret_failed = shares[t].failed;
    }
    return rc;
}
