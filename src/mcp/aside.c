/* mcp/aside: see aside.h. */
#include "mcp/aside.h"

#include "base/mem.h"

#include <pthread.h>
#include <signal.h>

struct aside {
    pthread_mutex_t mutex; /* over all that follows */
    pthread_cond_t given;  /* to the thread: a job, or the end */
    pthread_cond_t done;   /* to whoever waits */
    pthread_t thread;
    bool started;
    bool ending;
    bool taken; /* somebody's from begin to wait */
    bool ran;
    void (*fn)(void *user);
    void *user;
};

static void lock(struct aside *a)
{
    ensure(pthread_mutex_lock(&a->mutex) == 0);
}

static void unlock(struct aside *a)
{
    ensure(pthread_mutex_unlock(&a->mutex) == 0);
}

struct aside *aside_new(void)
{
    struct aside *a = mem_new(struct aside);
    ensure(pthread_mutex_init(&a->mutex, NULL) == 0);
    ensure(pthread_cond_init(&a->given, NULL) == 0);
    ensure(pthread_cond_init(&a->done, NULL) == 0);
    return a;
}

void aside_free(struct aside *a)
{
    if (a == NULL)
        return;
    lock(a);
    ensure(!a->taken);
    a->ending = true;
    ensure(pthread_cond_signal(&a->given) == 0);
    unlock(a);
    if (a->started)
        ensure(pthread_join(a->thread, NULL) == 0);
    pthread_cond_destroy(&a->done);
    pthread_cond_destroy(&a->given);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

static void run_job(struct aside *a)
{
    void (*fn)(void *) = a->fn;
    a->fn = NULL;
    unlock(a);
    fn(a->user);
    lock(a);
    a->ran = true;
    ensure(pthread_cond_signal(&a->done) == 0);
}

static void *serve(void *user)
{
    struct aside *a = user;
    lock(a);
    while (!a->ending) {
        if (a->fn != NULL)
            run_job(a);
        else
            ensure(pthread_cond_wait(&a->given, &a->mutex) == 0);
    }
    unlock(a);
    return NULL;
}

/* Signals are the loop's. */
static bool start(struct aside *a)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ensure(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    a->started = pthread_create(&a->thread, NULL, serve, a) == 0;
    ensure(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return a->started;
}

bool aside_begin(struct aside *a, void (*fn)(void *user), void *user)
{
    if (a == NULL)
        return false;
    lock(a);
    bool mine = !a->taken && (a->started || start(a));
    if (mine) {
        a->taken = true;
        a->ran = false;
        a->fn = fn;
        a->user = user;
        ensure(pthread_cond_signal(&a->given) == 0);
    }
    unlock(a);
    return mine;
}

void aside_wait(struct aside *a)
{
    lock(a);
    while (!a->ran)
        ensure(pthread_cond_wait(&a->done, &a->mutex) == 0);
    a->taken = false;
    unlock(a);
}
