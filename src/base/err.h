/* base/err: one error value on the caller's stack.
 *
 * Theory. A function that can fail above the base and sys layers takes `struct err *` as its last
 * parameter and returns 0 or a positive documented outcome on success, -1 on failure. The err is
 * filled if and only if the return is negative. The code is one row of ERR_TABLE, which maps it to
 * everything an outsider may see: the text code of a tool error, the JSON-RPC code, the HTTP
 * status, the exit status and the line in the manual. The message is for a person or a model: what
 * was refused, which rule, what to do instead.
 *
 * base and sys return -errno instead and never fill an err; err_sys() is where an errno becomes a
 * sentence. Must not: allocate, log, or carry secrets in a message.
 */
#ifndef CODESPACE_BASE_ERR_H
#define CODESPACE_BASE_ERR_H

#include <stddef.h>

/* X(name, json-rpc code, HTTP status, exit status, manual line)
 * The names up to APPROVAL_AMBIGUOUS are a public contract: clients compare them. */
#define ERR_TABLE(X)                                                                               \
    X(UNAUTHORIZED, -32001, 403, 77, "the workspace's profile or a rule does not allow this")      \
    X(WORKSPACE_NOT_FOUND, -32602, 404, 66, "no workspace of that id is registered")               \
    X(WORKSPACE_BUSY, -32003, 409, 75, "the workspace is held by another operation")               \
    X(RESOURCE_QUEUE_FULL, -32003, 429, 75, "too many operations wait for the workspace")          \
    X(PROCESS_LIMIT, -32003, 429, 75, "too many processes are alive")                              \
    X(WORKSPACE_PROCESS_LIMIT, -32003, 429, 75, "too many processes of the workspace are alive")   \
    X(INVALID_PATCH, -32602, 400, 65, "the patch text is malformed or does not apply")             \
    X(INVALID_COMMAND, -32602, 400, 64, "the command or one of its settings is malformed")         \
    X(INVALID_ARGUMENT, -32602, 400, 64, "an argument is missing, unknown or of a wrong type")     \
    X(PROCESS_SPAWN_FAILED, -32003, 500, 71, "the command was not started; nothing ran")           \
    X(PATH_ESCAPE, -32602, 400, 65, "the path is absolute or leaves the workspace")                \
    X(PATH_PROTECTED, -32001, 403, 77, "the path is protected from writing by policy")             \
    X(FILE_NOT_FOUND, -32602, 404, 66, "no such file in the workspace")                            \
    X(PATH_NOT_DIRECTORY, -32602, 400, 65, "a component of the path is not a directory")           \
    X(FILE_OPERATION_FAILED, -32003, 500, 74, "the operating system refused a file operation")     \
    X(SYMLINK_REJECTED, -32602, 400, 65, "a component of the path is a symbolic link")             \
    X(SPECIAL_FILE_REJECTED, -32602, 400, 65, "the path is not a regular file")                    \
    X(ADD_FILE_EXISTS, -32602, 409, 73, "the patch adds a file that exists")                       \
    X(MOVE_DESTINATION_EXISTS, -32602, 409, 73, "the patch moves onto a file that exists")         \
    X(VERSION_CONFLICT, -32602, 409, 75, "a file is not at the version the caller expects")        \
    X(OPERATION_KEY_CONFLICT, -32602, 409, 65, "the operation key was used for another request")   \
    X(OPERATION_NOT_FOUND, -32602, 404, 66, "no such operation")                                   \
    X(PROCESS_NOT_FOUND, -32602, 404, 66, "no such process handle")                                \
    X(PROCESS_NOT_TTY, -32602, 400, 65, "the process runs on pipes, not on a terminal")            \
    X(PROCESS_NOT_RUNNING, -32602, 409, 65, "the process has ended")                               \
    X(STDIN_CLOSED, -32602, 409, 65, "the process's standard input is closed")                     \
    X(STDIN_FULL, -32003, 429, 75, "too many bytes wait for the process to read them")             \
    X(OUTPUT_LIMIT, -32602, 400, 65, "an output size argument is out of range")                    \
    X(TIMEOUT, -32003, 408, 75, "a time limit ended the operation")                                \
    X(CANCELLED, -32800, 499, 75, "the caller cancelled the request")                              \
    X(SANDBOX_UNAVAILABLE, -32003, 503, 69, "the sandbox is demanded and cannot be built here")    \
    X(RUNNER_UNAVAILABLE, -32003, 503, 69, "the worker could not be asked; nothing was done")      \
    X(RUNNER_LOST, -32003, 503, 70, "the worker was lost; whether it acted is not known")          \
    X(CONFIG_INVALID, -32602, 400, 78, "the configuration is not acceptable")                      \
    X(LIMIT_EXCEEDED, -32602, 413, 65, "a named limit was exceeded")                               \
    X(WORK_NOT_FOUND, -32602, 404, 66, "no such work")                                             \
    X(WORK_CLOSED, -32602, 409, 65, "the work is closed")                                          \
    X(INTENT_NOT_FOUND, -32602, 404, 66, "no such intent, or not of that work")                    \
    X(INTENT_ALREADY_CLAIMED, -32602, 409, 65, "the intent was handed out already")                \
    X(INTENT_NOT_EDITABLE, -32602, 409, 65, "the intent's state or kind does not allow this")      \
    X(INTENT_REVISION_CONFLICT, -32602, 409, 75, "the intent was changed by somebody else")        \
    X(QUEUE_NOT_EMPTY, -32602, 409, 75, "the queue still holds intents")                           \
    X(APPROVAL_REQUIRED, -32001, 403, 77, "a person must approve this operation first")            \
    X(APPROVAL_NOT_FOUND, -32602, 404, 66, "no such approval")                                     \
    X(APPROVAL_CONFLICT, -32602, 409, 75, "the approval's state does not allow this")              \
    X(APPROVAL_AMBIGUOUS, -32003, 500, 70, "it is not known whether the approved call ran")        \
    X(OPERATION_NOT_REVERTIBLE, -32602, 409, 65, "the operation has no undo, or is undone")        \
    X(LEDGER_FAILED, -32003, 500, 74, "the ledger could not be read or written")                   \
    X(PARSE_ERROR, -32700, 400, 65, "the bytes are not one well-formed JSON document")             \
    X(INVALID_REQUEST, -32600, 400, 65, "the JSON is not a valid JSON-RPC message")                \
    X(METHOD_NOT_FOUND, -32601, 404, 64, "the method is not served here")                          \
    X(INVALID_PARAMS, -32602, 400, 64, "the parameters do not fit the method")                     \
    X(RESOURCE_UNKNOWN, -32002, 404, 66, "no resource of that URI")                                \
    X(HEADER_MISMATCH, -32020, 400, 64, "an HTTP header and the message do not say the same")      \
    X(CAPABILITY_MISSING, -32021, 400, 64, "the client did not declare what the method needs")     \
    X(VERSION_UNSUPPORTED, -32022, 400, 64, "the protocol revision is not served")                 \
    X(INTERNAL, -32603, 500, 70, "a fault of ours; please report it")

enum err_code {
    ERR_NONE = 0,
#define ERR_ENUM(name, rpc, http, ex, text) ERR_##name,
    ERR_TABLE(ERR_ENUM)
#undef ERR_ENUM
        ERR_CODE_MAX
};

/* One row of the table. All strings are static. */
struct err_info {
    const char *name;
    int rpc_code;
    int http_status;
    int exit_status;
    const char *manual;
};

/* Longest message; longer ones end in "...". A path of PATH_MAX plus a sentence need not fit. */
#define ERR_MESSAGE_MAX 1024

struct err {
    enum err_code code;
    int sys; /* errno that caused it, 0 when none did */
    char message[ERR_MESSAGE_MAX];
};

/* The row of `code`; an unknown number gives the row of ERR_INTERNAL. Never fails. */
const struct err_info *err_info(enum err_code code);

/* The code of that exact name, or ERR_NONE. For programs that read our own wire. */
enum err_code err_code_of(const char *name);

/* Fill `e` (ignored when NULL) and return -1, so that `return err_set(...)` reads as what it is. */
int err_set(struct err *e, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set, and appends ": " and the text of `errnum` (positive or negative errno). */
int err_sys(struct err *e, enum err_code code, int errnum, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Put "context: " before the message that is there. Returns -1. For callers that know the file or
 * the key that a callee did not. */
int err_wrap(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
