/* base/log: one line to stderr: time, level, program, message.
 *
 * stderr because stdout belongs to the protocol. The level is the only global state outside the
 * programs' main files. Control characters in the message are written as \xNN, so text from
 * outside cannot forge a line. Must not: be given secrets or whole user content.
 */
#ifndef CODESPACE_BASE_LOG_H
#define CODESPACE_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Name that starts each line (static) and the most talkative level that is written. */
void log_setup(const char *program, enum log_level max);

/* The level of that name (error, warn, info, debug), or -1. */
int log_level_of(const char *name);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
