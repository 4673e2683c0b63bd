/* search, when ripgrep is told to end and had ended by itself: telling it dropped its record. */
#include "core/search.h"
#include "fixture.h"

#define BEGIN "{\"type\":\"begin\",\"data\":{\"path\":{\"text\":\"a\"}}}\n"
#define MATCH                                                                                      \
    "{\"type\":\"match\",\"data\":{\"lines\":{\"text\":\"hit\\n\"},\"line_number\":1,"             \
    "\"absolute_offset\":0,\"submatches\":[{\"match\":{\"text\":\"hit\"},\"start\":0,\"end\":3}]}" \
    "}\n"

/* More than SEARCH_HELD_MAX, in pages as a runner gives them. */
static void flood(struct fixture *f)
{
    autobuf text = BUF_INIT;
    unsigned before = f->fake.terminates;
    for (size_t n = 0; n < 1000; n++)
        buf_puts(&text, MATCH);
    struct run_page page = {.bytes = BEGIN, .len = strlen(BEGIN)};
    page.status.state = RUN_RUNNING;
    for (int i = 0; f->fake.terminates == before && i < 10000; i++) {
        fixture_page(f, &page);
        page.bytes = buf_bytes(&text);
        page.len = text.len;
    }
    assert_int_equal(f->fake.terminates, before + 1);
}

static void lose(struct fixture *f, enum err_code code)
{
    struct err gone;
    err_set(&gone, code, "there is no process 'own-1'");
    f->fake.page_done(f->fake.user, NULL, &gone);
}

static void test_its_record_was_dropped(void **state)
{
    struct fixture *f = *state;
    fixture_call(f, "search", "{\"workspace_id\":\"ws\",\"pattern\":\"hit\"}");
    assert_int_equal(f->fake.execs, 1);
    fixture_started(f, "own-1");
    flood(f);
    lose(f, ERR_PROCESS_NOT_FOUND); /* the quick try: thrown away */
    assert_int_equal(f->fake.execs, 2);
    assert_int_equal(f->n_sent, 0);
    fixture_started(f, "own-2");
    flood(f);
    lose(f, ERR_PROCESS_NOT_FOUND); /* the ordinary one: too much was found anyway */
    assert_has(fixture_run(f), "\"incomplete\":true", "SEARCH_HELD_MAX", NULL);
    assert_int_equal(f->fake.execs, 2);
}

static void test_a_record_that_is_gone_for_no_reason(void **state)
{
    struct fixture *f = *state;
    fixture_call(f, "search", "{\"workspace_id\":\"ws\",\"pattern\":\"hit\"}");
    fixture_started(f, "own-1");
    lose(f, ERR_PROCESS_NOT_FOUND);
    assert_has(fixture_run(f), "\"isError\":true", "PROCESS_NOT_FOUND", NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_its_record_was_dropped, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_a_record_that_is_gone_for_no_reason, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
