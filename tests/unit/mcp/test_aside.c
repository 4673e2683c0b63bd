/* mcp/aside: what is handed over runs once and beside its giver; a second one is told that it has
 * to do its own; nothing runs after aside_wait() or aside_free(). */
#include "../../helpers/unit.h"
#include "mcp/aside.h"

#include <pthread.h>
#include <stdatomic.h>

struct job {
    atomic_int runs;
    pthread_t by;
    pthread_barrier_t *meets; /* NULL: it ends at once */
};

static void run(void *user)
{
    struct job *j = user;
    j->by = pthread_self();
    if (j->meets != NULL)
        pthread_barrier_wait(j->meets);
    atomic_fetch_add(&j->runs, 1);
}

static void test_one_after_the_other(void **state)
{
    (void)state;
    struct aside *a = aside_new();
    pthread_t by = pthread_self();
    for (int i = 0; i < 200; i++) {
        struct job j = {0};
        assert_true(aside_begin(a, run, &j));
        aside_wait(a);
        assert_int_equal(j.runs, 1);
        assert_false(pthread_equal(j.by, pthread_self()));
        /* One thread stands for all. */
        assert_true(i == 0 || pthread_equal(j.by, by));
        by = j.by;
    }
    aside_free(a);
}

/* It ends only when its giver is there, so it runs beside him. */
static void test_it_runs_beside(void **state)
{
    (void)state;
    struct aside *a = aside_new();
    pthread_barrier_t both;
    assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
    struct job j = {.meets = &both};
    struct job second = {0};
    assert_true(aside_begin(a, run, &j));
    assert_false(aside_begin(a, run, &second));
    pthread_barrier_wait(&both);
    aside_wait(a);
    assert_int_equal(j.runs, 1);
    assert_int_equal(second.runs, 0);
    assert_true(aside_begin(a, run, &second));
    aside_wait(a);
    assert_int_equal(second.runs, 1);
    aside_free(a);
    pthread_barrier_destroy(&both);
}

static void test_none(void **state)
{
    (void)state;
    struct job j = {0};
    assert_false(aside_begin(NULL, run, &j));
    aside_free(NULL);
    aside_free(aside_new());
    assert_int_equal(j.runs, 0);
}

/* Givers on several threads: each job runs exactly once, here or there. */
struct giver {
    struct aside *a;
    pthread_t thread;
    struct job j;
    int gave;
};

static void *give(void *user)
{
    struct giver *g = user;
    for (int i = 0; i < 500; i++) {
        if (aside_begin(g->a, run, &g->j)) {
            aside_wait(g->a);
            g->gave++;
        } else {
            run(&g->j);
        }
        assert_int_equal(g->j.runs, i + 1);
    }
    return NULL;
}

static void test_many_givers(void **state)
{
    (void)state;
    struct aside *a = aside_new();
    struct giver givers[4] = {0};
    int gave = 0;
    for (size_t i = 0; i < 4; i++) {
        givers[i].a = a;
        assert_int_equal(pthread_create(&givers[i].thread, NULL, give, &givers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(givers[i].thread, NULL), 0);
        assert_int_equal(givers[i].j.runs, 500);
        gave += givers[i].gave;
    }
    assert_true(gave > 0);
    aside_free(a);
}

UNIT_MAIN(cmocka_unit_test(test_one_after_the_other), cmocka_unit_test(test_it_runs_beside),
          cmocka_unit_test(test_none), cmocka_unit_test(test_many_givers))
