/* sandbox/gitconfig: what is read out of a file of settings, as git reads it. */
#include "../../helpers/unit.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/gitconfig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Every setting as "key=value;", with "+" before those in an including section. */
static char *settings_of(const char *text, size_t n)
{
    char path[] = "/tmp/codespace-gitconfig-XXXXXX";
    struct buf out = BUF_INIT;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    close(fd);
    autogitconfig c;
    gitconfig_open(&c, path);
    while (gitconfig_next(&c)) {
        autofree char *one = mem_printf("%s%s=%s;", c.including ? "+" : "", c.key, c.value);
        buf_puts(&out, one);
    }
    unlink(path);
    return buf_steal(&out);
}

static void reads(const char *text, const char *expected)
{
    autofree char *found = settings_of(text, strlen(text));
    assert_string_equal(found, expected);
}

static void test_forms(void **state)
{
    (void)state;
    reads("", "");
    reads("[core]\n\thooksPath = .husky\n", "hooksPath=.husky;");
    reads("[core] hooksPath=.husky\n", "hooksPath=.husky;");
    reads("[core]\r\n  a = b c \r\n", "a=b c;");
    reads("[core]\n a = \"b ; c\" ; d\n e = f # g\n", "a=b ; c;e=f;");
    reads("[core]\n a = \"b\\\"c\\\\\"\n flag\n empty =\n", "a=b\"c\\;empty=;");
    reads("a = b", "a=b;");
    reads("[core\n a = b\n", "a=b;");
    reads("= x\n# a = b\n; a = b\n", "");
}

static void test_sections(void **state)
{
    (void)state;
    reads("[include]\npath = a\n[core]\npath = b\n", "+path=a;path=b;");
    reads("[ InClude ] PATH = a\n", "+PATH=a;");
    reads("[includeIf \"gitdir:/x]y\\\"/\"] path = a\n", "+path=a;");
    reads("[remote \"include\"] path = a\n", "path=a;");
}

static void test_what_is_no_text(void **state)
{
    (void)state;
    autofree char *found = settings_of("[core]\na = b\n\0c = d\n", 20);
    assert_string_equal(found, "a=b;");
    autogitconfig c;
    gitconfig_open(&c, "/tmp");
    assert_false(gitconfig_next(&c));
}

UNIT_MAIN(cmocka_unit_test(test_forms), cmocka_unit_test(test_sections),
          cmocka_unit_test(test_what_is_no_text))
