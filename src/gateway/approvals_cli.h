/* gateway/approvals_cli: `codespace-mcp approvals`: held calls on the operator's command line.
 *
 * Theory. The operator is who may open the ledger's file, so nothing else is asked. It works beside
 * a gateway that runs: the decision is in the database, and the gateway asks that when the call is
 * resumed. Without --ledger the variable of the gateway names the file.
 *
 * What it prints was written by a client and goes to a terminal: only through mcp/approval_show.
 * Must not: create, migrate or recover a ledger, or grant what does not exist.
 */
#ifndef CODESPACE_GATEWAY_APPROVALS_CLI_H
#define CODESPACE_GATEWAY_APPROVALS_CLI_H

/* argv[0] is "approvals". The exit status. */
int approvals_cli(int argc, char *const *argv);

#endif
