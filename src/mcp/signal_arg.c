/* mcp/signal_arg: see signal_arg.h. */
#include "mcp/signal_arg.h"

#include "base/num.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define SIGNALS_MAX 64

int signal_arg_read(const char *text, int *ret_signal, struct err *e)
{
    uint64_t number;
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (int i = 1; i < NSIG; i++) {
        const char *known = sigabbrev_np(i);
        if (known != NULL && strcasecmp(name, known) == 0) {
            *ret_signal = i;
            return 0;
        }
    }
    if (num_parse_u64(text, 1, SIGNALS_MAX, &number) == 0) {
        *ret_signal = (int)number;
        return 0;
    }
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "signal: \"%.32s\" is none; a name such as INT, TERM, KILL, HUP, QUIT, USR1, "
                   "USR2, STOP, CONT or WINCH is accepted, with or without SIG, or a number from 1 "
                   "to %d as a string",
                   text, SIGNALS_MAX);
}

int signal_arg_read_end(const char *text, int *ret_signal, struct err *e)
{
    int signal;
    if (signal_arg_read(text, &signal, e) < 0)
        return -1;
    if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU ||
        signal == SIGCONT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "signal: %s ends nothing; signal_process sends it, and the command stays. "
                       "Here a signal is the polite request before SIGKILL: TERM, INT or HUP, say",
                       text);
    *ret_signal = signal;
    return 0;
}
