/* proxy/standin: see standin.h. */
#include "proxy/standin.h"

#include "base/mem.h"

#include <stdlib.h>

void standins_init(struct standins *s)
{
    *s = (struct standins){0};
    list_init(&s->used);
}

static void forget(struct standins *s, struct standin *one)
{
    map_remove(&s->by_name, one->host.text);
    s->by_address[one->address - STANDIN_FIRST] = NULL;
    list_remove(&one->node);
    s->n--;
    free(one);
}

void standins_fini(struct standins *s)
{
    while (!list_empty(&s->used))
        forget(s, container_of(s->used.next, struct standin, node));
    map_fini(&s->by_name);
    free(s->by_address);
}

static void touch(struct standins *s, struct standin *one)
{
    list_remove(&one->node);
    list_append(&s->used, &one->node);
}

static struct standin *add(struct standins *s, const struct host *host)
{
    if (s->by_address == NULL)
        s->by_address = mem_zalloc(STANDIN_COUNT, sizeof(*s->by_address));
    if (s->n == STANDIN_NAMES_MAX)
        forget(s, container_of(s->used.next, struct standin, node));
    while (s->by_address[s->next] != NULL)
        s->next = (s->next + 1) % STANDIN_COUNT;
    struct standin *one = mem_new(struct standin);
    *one = (struct standin){.address = STANDIN_FIRST + s->next, .host = *host};
    list_init(&one->node);
    s->by_address[s->next] = one;
    s->next = (s->next + 1) % STANDIN_COUNT;
    s->n++;
    map_set(&s->by_name, one->host.text, one);
    return one;
}

void standin_of(struct standins *s, const struct host *host, struct net_addr *ret)
{
    struct standin *one = map_get(&s->by_name, host->text);
    if (one == NULL)
        one = add(s, host);
    touch(s, one);
    *ret = (struct net_addr){
        .family = 4,
        .bytes = {(uint8_t)(one->address >> 24), (uint8_t)(one->address >> 16),
                  (uint8_t)(one->address >> 8), (uint8_t)one->address},
    };
}

static uint32_t number_of(const struct net_addr *addr)
{
    return (uint32_t)addr->bytes[0] << 24 | (uint32_t)addr->bytes[1] << 16 |
           (uint32_t)addr->bytes[2] << 8 | addr->bytes[3];
}

bool standin_is(const struct net_addr *addr)
{
    return addr->family == 4 && number_of(addr) >> 17 == STANDIN_FIRST >> 17;
}

const struct host *standin_find(struct standins *s, const struct net_addr *addr)
{
    uint32_t at = number_of(addr) - STANDIN_FIRST;
    if (addr->family != 4 || at >= STANDIN_COUNT || s->by_address == NULL ||
        s->by_address[at] == NULL)
        return NULL;
    touch(s, s->by_address[at]);
    return &s->by_address[at]->host;
}
