/* run/grave: children that nobody asks about any more, until they are reaped.
 *
 * Theory. A wrapper may live a moment longer than the command it reported, and a killed child has
 * to be waited for. Whoever is done with a child hands over its pidfd: it is given some patience,
 * then killed, then reaped; so no zombie is left and no owner has to stay for it.
 *
 * Must not: wait for ever for a child that the kernel cannot end (a stuck device): after
 * GRAVE_GIVE_UP_MS it is logged and left to process 1.
 */
#ifndef CODESPACE_RUN_GRAVE_H
#define CODESPACE_RUN_GRAVE_H

#include "base/list.h"

#include <stdint.h>
#include <uv.h>

#define GRAVE_GIVE_UP_MS 5000u

/* Take `pidfd` of a child and reap it; it is killed when it has not ended after patience_ms (0 =
 * now). `yard` lists the ones that are waited for. */
void grave_take(struct list *yard, uv_loop_t *loop, int pidfd, uint64_t patience_ms);

/* Kill all of the yard now and let go of the list; each still reaps its child on the loop. */
void grave_hasten(struct list *yard);

#endif
