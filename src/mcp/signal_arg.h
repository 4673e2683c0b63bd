/* mcp/signal_arg: a signal as an argument of a tool: its name with or without SIG, in any case, or
 * its number in digits. */
#ifndef CODESPACE_MCP_SIGNAL_ARG_H
#define CODESPACE_MCP_SIGNAL_ARG_H

#include "base/err.h"

/* 1..64. Errors: INVALID_ARGUMENT with what is accepted. */
int signal_arg_read(const char *text, int *ret_signal, struct err *e);

/* The same for the first signal of an end: one that stops or continues ends nothing. Errors:
 * INVALID_ARGUMENT. */
int signal_arg_read_end(const char *text, int *ret_signal, struct err *e);

#endif
