/* sandbox/tools: `apply_patch` on the PATH of every command, wherever the product is installed.
 *
 * Theory. Agents' shells know the patch program by that name. Installed below /usr it is found like
 * any other program and nothing is done here. Elsewhere (/opt/x, a home) the minimal view does not
 * show it and PATH does not lead there, so this one file is laid, read-only and by descriptor, into
 * a directory of its own below our own /dev, which exists in every view; its directory is a mount
 * that is read-only, too, so no command can put another program there for the next one. Two mounts
 * on a cold start, none on a warm one.
 *
 * PATH gets the directory at its end, and only where it is our default: who sets it says what it
 * is.
 *
 * Must not: show a second file of the directory that the product lies in.
 */
#ifndef CODESPACE_SANDBOX_TOOLS_H
#define CODESPACE_SANDBOX_TOOLS_H

#include "wire/helper.h"
#include "wire/plan.h"

#define TOOLS_DIR "/dev/codespace"

/* After the environment and the scope are in the plan. */
void tools_plan(const struct helper_request *r, struct plan *p);

#endif
