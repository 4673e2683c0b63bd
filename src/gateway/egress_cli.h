/* gateway/egress_cli: `codespace-mcp egress`: the operator reads and replaces the egress rules of a
 * workspace of a server that runs.
 *
 * It is a client of that server's operator paths (mcp/http_operator) over HTTP, and has no more
 * rights than the operator's token, which it reads from a file or a variable: never from the
 * arguments, which every user of the machine can read.
 */
#ifndef CODESPACE_GATEWAY_EGRESS_CLI_H
#define CODESPACE_GATEWAY_EGRESS_CLI_H

/* argv[0] is "egress". The exit status. */
int egress_cli(int argc, char *const *argv);

#endif
