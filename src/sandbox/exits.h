/* sandbox/exits: how the wrapper itself fails (H13).
 *
 * Theory. A command may end with any code, so the wrapper's own failures use a range that no
 * ordinary tool uses, one row per failing step, and say on stderr (or to the control socket) what
 * happened. A machine that wants to be certain reads the verdict on the control socket.
 *
 * Must not: be renumbered; scripts compare these.
 */
#ifndef CODESPACE_SANDBOX_EXITS_H
#define CODESPACE_SANDBOX_EXITS_H

/* Starts every line of ours on stderr. */
#define SANDBOX_PREFIX "codespace-linux-sandbox: "

/* X(name, code, the step that failed) */
#define SANDBOX_EXITS(X)                                                                           \
    X(USAGE, 180, "the command line was not understood")                                           \
    X(SETUID, 181, "the helper is set-user-ID or set-group-ID, which is refused")                  \
    X(PLAN_FILE, 182, "the plan file is not there or not private")                                 \
    X(PLAN_FORM, 183, "the plan file is malformed")                                                \
    X(DESCRIPTORS, 184, "the descriptors could not be arranged")                                   \
    X(SOURCE, 185, "a path of the view is no longer what was prepared")                            \
    X(BWRAP_START, 186, "bubblewrap could not be started")                                         \
    X(BWRAP, 187, "bubblewrap could not build the view")                                           \
    X(PROCESS_1, 188, "the inner stage is not process 1 of its own namespace")                     \
    X(CAPABILITIES, 189, "capabilities were left over")                                            \
    X(NO_NEW_PRIVS, 190, "privileges could not be given up")                                       \
    X(FILTER, 191, "the system call filter could not be loaded")                                   \
    X(GUARD, 192, "a protected name could not be protected")                                       \
    X(TERMINAL, 193, "standard input cannot become the command's terminal")                        \
    X(CWD, 194, "the working directory does not exist inside the view")                            \
    X(START, 195, "the command's process could not be created")                                    \
    X(LOST, 196, "the sandbox ended before it told how the command ended")                         \
    X(INTERNAL, 197, "a fault of ours; please report it")                                          \
    X(LIMITS, 198, "a limit could not be set")                                                     \
    X(NETWORK, 199, "the network's only door could not be opened")

enum sandbox_exit {
#define SANDBOX_EXIT_ENUM(name, code, text) SANDBOX_EXIT_##name = code,
    SANDBOX_EXITS(SANDBOX_EXIT_ENUM)
#undef SANDBOX_EXIT_ENUM
};

/* When the command itself cannot be executed: the shell's convention, told apart by the event. */
#define SANDBOX_COMMAND_NOT_FOUND 127
#define SANDBOX_COMMAND_NOT_EXECUTABLE 126

/* The text of a row; "" for a code that is not ours. */
const char *sandbox_exit_text(int code);

/* One line with the prefix on stderr. */
void sandbox_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
