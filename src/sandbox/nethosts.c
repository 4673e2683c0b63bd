/* sandbox/nethosts: see nethosts.h. */
#include "sandbox/nethosts.h"

#include "sandbox/layout.h"

#include <sys/stat.h>

#define HOSTS "/etc/hosts"

/* The name of the machine as programs that ask for their own expect it (hostname(1) -f). */
static const char text[] = "127.0.0.1 localhost\n"
                           "::1 localhost ip6-localhost ip6-loopback\n"
                           "127.0.1.1 " LAYOUT_HOSTNAME "\n";

void nethosts_plan(struct plan *p)
{
    struct stat st;
    if (lstat(HOSTS, &st) == 0 && S_ISREG(st.st_mode))
        layout_text(p, text, HOSTS);
}
