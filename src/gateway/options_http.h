/* gateway/options_http: the rows of the option table that are about HTTP.
 *
 * A token is never taken from the command line, which every user of the machine can read: it comes
 * from a file, or from the variable, which is taken out of the environment at once.
 */
#ifndef CODESPACE_GATEWAY_OPTIONS_HTTP_H
#define CODESPACE_GATEWAY_OPTIONS_HTTP_H

#include "gateway/options.h"

/* Sets what the row is about. `name` is the option or the variable, for messages. */
typedef int (*option_fn)(struct options *o, const char *name, const char *value, struct err *e);

struct option {
    const char *flag;  /* "--x"; NULL: a variable only */
    const char *value; /* what stands for the value in --help; NULL: there is none */
    const char *variable;
    option_fn set;
    const char *about;
};

int options_set_http(struct options *o, const char *name, const char *value, struct err *e);
int options_set_host(struct options *o, const char *name, const char *value, struct err *e);
int options_set_port(struct options *o, const char *name, const char *value, struct err *e);
int options_set_token(struct options *o, const char *name, const char *value, struct err *e);
int options_set_token_file(struct options *o, const char *name, const char *value, struct err *e);
int options_set_operator_token(struct options *o, const char *name, const char *value,
                               struct err *e);
int options_set_operator_token_file(struct options *o, const char *name, const char *value,
                                    struct err *e);
int options_set_allow_host(struct options *o, const char *name, const char *value, struct err *e);
int options_set_allow_origin(struct options *o, const char *name, const char *value, struct err *e);
int options_set_unix_socket(struct options *o, const char *name, const char *value, struct err *e);
int options_set_activation(struct options *o, const char *name, const char *value, struct err *e);
int options_set_oauth_issuer(struct options *o, const char *name, const char *value, struct err *e);
int options_set_oauth_resource(struct options *o, const char *name, const char *value,
                               struct err *e);
int options_set_oauth_keys(struct options *o, const char *name, const char *value, struct err *e);
int options_set_oauth_scope(struct options *o, const char *name, const char *value, struct err *e);
int options_refuse_token(struct options *o, const char *name, const char *value, struct err *e);

#define OPTIONS_HTTP_ROWS                                                                          \
    {"--http", NULL, NULL, options_set_http, "serve Streamable HTTP at /mcp"},                     \
        {"--host", "HOST", "CODESPACE_HTTP_HOST", options_set_host,                                \
         "address to listen on (default 127.0.0.1); any but loopback needs a token"},              \
        {"--port", "N", "CODESPACE_HTTP_PORT", options_set_port,                                   \
         "port to listen on (default 8787; 0 takes a free one)"},                                  \
        {"--token-file", "FILE", "CODESPACE_HTTP_TOKEN_FILE", options_set_token_file,              \
         "the bearer token that clients must send, in a file"},                                    \
        {NULL, "TOKEN", "CODESPACE_HTTP_TOKEN", options_set_token, "the same in a variable"},      \
        {"--token", "TOKEN", NULL, options_refuse_token,                                           \
         "refused: a command line is not secret; use --token-file"},                               \
        {"--operator-token-file", "FILE", "CODESPACE_OPERATOR_TOKEN_FILE",                         \
         options_set_operator_token_file,                                                          \
         "another token, in a file: who has it decides held calls and writes the inbox"},          \
        {NULL, "TOKEN", "CODESPACE_OPERATOR_TOKEN", options_set_operator_token,                    \
         "the same in a variable"},                                                                \
        {"--oauth-issuer", "URI", "CODESPACE_OAUTH_ISSUER", options_set_oauth_issuer,              \
         "take access tokens (JWT) of this issuer; with the next two"},                            \
        {"--oauth-resource", "URI", "CODESPACE_OAUTH_RESOURCE", options_set_oauth_resource,        \
         "what tokens must be for: the URI by which clients reach /mcp"},                          \
        {"--oauth-keys", "FILE", "CODESPACE_OAUTH_KEYS", options_set_oauth_keys,                   \
         "the issuer's public keys: a JSON Web Key Set"},                                          \
        {"--oauth-scope", "SCOPES", "CODESPACE_OAUTH_SCOPE", options_set_oauth_scope,              \
         "scopes that a token must have, with blanks between them"},                               \
        {"--allow-host", "HOST[:PORT]", NULL, options_set_allow_host,                              \
         "another name by which clients may reach the server (may be repeated)"},                  \
        {"--allow-origin", "ORIGIN", NULL, options_set_allow_origin,                               \
         "a web origin whose pages may ask (may be repeated)"},                                    \
        {"--unix-socket", "PATH", NULL, options_set_unix_socket,                                   \
         "listen on a Unix socket instead, for this user only"},                                   \
        {"--socket-activation", NULL, NULL, options_set_activation,                                \
         "serve on the sockets that the service manager opened (LISTEN_FDS)"},

/* Was any of the --oauth options given? */
bool options_has_oauth(const struct options *o);

void options_http_fini(struct options_http *h);

#endif
