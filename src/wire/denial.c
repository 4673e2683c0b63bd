/* wire/denial: see denial.h. */
#include "wire/denial.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MORE "filter.more"
#define NOT_OFFERED ""

static const struct denial_rule rules[] = {
    {"filter.trace", "looking into another process",
     "\"debug\": true in the workspace's configuration allows it for the command's own processes"},
    {"filter.process", "reaching into another process, or changing the limits of process 1",
     NOT_OFFERED},
    {"filter.namespace", "making or entering a namespace",
     "\"user_namespaces\": true in the workspace's configuration allows user namespaces, and "
     "process, network, IPC, host name and cgroup namespaces in them; mount and time namespaces "
     "(CLONE_NEWNS, CLONE_NEWTIME) and entering one (setns) are not offered"},
    {"filter.mount", "changing what is mounted", NOT_OFFERED},
    {"filter.handle", "opening files by handle, or watching whole file systems", NOT_OFFERED},
    {"filter.io_uring", "io_uring, which goes round a system call filter", NOT_OFFERED},
    {"filter.kernel", "a kernel interface that commands do not get", NOT_OFFERED},
    {"filter.machine", "changing the machine", NOT_OFFERED},
    {"filter.terminal", "typing into a terminal", NOT_OFFERED},
    {"filter.subvolume", "an operation on subvolumes of btrfs", NOT_OFFERED},
    {"filter.socket", "a socket family or type that is not offered", NOT_OFFERED},
    {"filter.network", "an option that programs a network's packet filter or its encryption",
     NOT_OFFERED},
    {"filter.personality", "an execution domain that weakens memory protection",
     "\"debug\": true in the workspace's configuration allows turning address randomisation off"},
    {"filter.other", "a system call that the filter refuses", NOT_OFFERED},
    {MORE, "further kinds of refused calls; the list has no room for them", NOT_OFFERED},
    {"filter.unobserved",
     "the filter refused without telling us: this kernel, or a filter around us, does not let it",
     NOT_OFFERED},
    {"protect.name", "a protected name was created; it was taken away again",
     "take the name out of \"protect\" in the workspace's configuration; for .git see \"git\""},
    {DENIAL_UNSEARCHED,
     "there are more entries than are searched for repositories: some may be new, or not protected",
     NOT_OFFERED},
    {"network.not_allowed", "a destination that no rule of egress.allow names",
     "add the host to egress.allow in the workspace's configuration"},
    {"network.denied", "a destination that a rule of egress.deny names",
     "take the rule out of egress.deny in the workspace's configuration"},
    {"network.method_not_allowed", "an HTTP method that egress.methods does not list",
     "add the method to egress.methods in the workspace's configuration"},
    {"network.address_not_public", "a name or address of a private, local or special network",
     "add the address or prefix to egress.private, or a port of this host to egress.local_ports"},
    {"network.bad_host", "a destination that is not a well-formed host", NOT_OFFERED},
    {"network.name_mismatch", "a tunnel in which another host was named than for it",
     "\"fronting\": \"log\" in egress of the workspace's configuration"},
    {"network.name_mismatch_seen",
     "a tunnel in which another host was named than for it; it was let through",
     "nothing to grant; \"fronting\": \"refuse\" in egress of the workspace's configuration "
     "ends such a tunnel"},
    {"network.proxy_ended", "the egress proxy ended; from then on there was no network at all",
     NOT_OFFERED},
    {"network.udp", "a datagram to somewhere outside; only names are asked for over UDP",
     NOT_OFFERED},
    {"network.ipv6",
     "an IPv6 address outside; which one is not known. Names lead to IPv4 addresses "
     "inside, whatever the destination has",
     NOT_OFFERED},
    {"network.more", "further refusals of the network that were not told one by one", NOT_OFFERED},
    {"limit.memory", "the kernel ended a process because the memory limit was reached",
     "raise limits.memory of the workspace"},
    {"limit.pids", "no process or thread could be made: there were as many as are allowed",
     "raise limits.pids of the workspace"},
};

const struct denial_rule *denial_rule_find(const char *id)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        if (str_eq(rules[i].id, id))
            return &rules[i];
    }
    return NULL;
}

size_t denial_layer_len(const char *id)
{
    return strcspn(id, ".");
}

static void count_more(struct denial *d)
{
    if (d->count < DENIAL_COUNT_MAX)
        d->count++;
}

struct denial *denial_count(struct denial *list, const char *rule, const char *what)
{
    size_t i = 0;
    for (; i < DENIAL_MAX - 1 && list[i].rule[0] != '\0'; i++) {
        if (str_eq(list[i].rule, rule) && str_eq(list[i].what, what)) {
            count_more(&list[i]);
            return &list[i];
        }
    }
    if (list[i].rule[0] == '\0') {
        bool last = i == DENIAL_MAX - 1;
        snprintf(list[i].rule, DENIAL_RULE_MAX, "%s", last ? MORE : rule);
        snprintf(list[i].what, DENIAL_WHAT_MAX, "%s", last ? "" : what);
    }
    count_more(&list[i]);
    return &list[i];
}

void denial_unknown(struct denial *list, const char *rule)
{
    size_t i = 0;
    while (i < DENIAL_MAX - 2 && list[i].rule[0] != '\0' && !str_eq(list[i].rule, rule))
        i++;
    if (str_eq(list[i].rule, rule))
        return;
    if (list[i].rule[0] != '\0') /* whoever fills the list does not keep this out of it */
        denial_count(list, MORE, "");
    list[i] = (struct denial){0};
    snprintf(list[i].rule, DENIAL_RULE_MAX, "%s", rule);
}

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("-_.+", c) != NULL);
}

void denial_by(struct denial *d, uint32_t pid, const char *name)
{
    size_t n = 0;
    if (d->pid != 0) {
        d->others |= d->pid != pid;
        return;
    }
    d->pid = pid;
    for (; n < DENIAL_PROCESS_MAX - 1 && name[n] != '\0'; n++)
        d->process[n] = is_name_char(name[n]) ? name[n] : '?';
    d->process[n] = '\0';
}

void denial_add_line(const struct denial *d, struct strv *out)
{
    if (d->pid == 0)
        strv_addf(out, "%s %" PRIu64 " %s", d->rule, d->count, d->what);
    else
        strv_addf(out, "%s %" PRIu64 " @%" PRIu32 "%s %s %s", d->rule, d->count, d->pid,
                  d->others ? "+" : "", d->process, d->what);
}

/* What of `words` names a process; how much it is. A destination does not begin like that. */
static size_t read_process(const char *words, struct denial *d)
{
    int at = 0;
    if (!str_starts(d->rule, "network.") || sscanf(words, "@%9" SCNu32 "%n", &d->pid, &at) != 1)
        return 0;
    const char *p = words + at;
    d->others = *p == '+';
    p += d->others;
    size_t n = *p == ' ' ? strcspn(p + 1, " ") : 0;
    if (*p != ' ' || n >= DENIAL_PROCESS_MAX || p[1 + n] != ' ') {
        d->pid = 0;
        d->others = false;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        d->process[i] = is_name_char(p[1 + i]) ? p[1 + i] : '?';
    return (size_t)(p + n + 2 - words);
}

int denial_read_line(const char *line, struct denial *ret)
{
    struct denial d = {0};
    int at = 0;
    if (sscanf(line, "%31[a-z0-9_.] %10" SCNu64 "%n", d.rule, &d.count, &at) != 2 ||
        line[at] != ' ' || d.count > DENIAL_COUNT_MAX)
        return -EINVAL;
    const char *words = line + at + 1;
    words += read_process(words, &d);
    snprintf(d.what, sizeof(d.what), "%s", words);
    *ret = d;
    return 0;
}
