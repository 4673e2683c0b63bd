/* tests/unit/mcp/messages: messages of both eras, as text. */
#ifndef CODESPACE_TESTS_MCP_MESSAGES_H
#define CODESPACE_TESTS_MCP_MESSAGES_H

/* What a modern request says of itself, as a member of its params. */
#define META(capabilities)                                                                         \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{" capabilities "}}"
/* A request; `id` is JSON text, `params` the members. */
#define SAY(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params "}}"

#endif
