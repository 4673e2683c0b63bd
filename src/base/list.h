/* base/list: an intrusive doubly linked ring. The node lives inside the thing it links; the ring
 * owns nothing. A node that is not linked points at itself, so removing twice is harmless.
 */
#ifndef CODESPACE_BASE_LIST_H
#define CODESPACE_BASE_LIST_H

#include "base/mem.h"

#include <stdbool.h>

struct list {
    struct list *prev;
    struct list *next;
};

static inline void list_init(struct list *l)
{
    l->prev = l;
    l->next = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Visit each; the current node may be removed (and freed) by the body. */
#define list_each(it, head)                                                                        \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head);                      \
         it = it##_next, it##_next = it->next)

#endif
