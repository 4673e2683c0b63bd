/* tests/conformance/fixtures: what the official conformance suite wants a server to have, on the
 * product's protocol core. Never part of the product.
 */
#ifndef CODESPACE_TESTS_CONFORMANCE_FIXTURES_H
#define CODESPACE_TESTS_CONFORMANCE_FIXTURES_H

#include "mcp/provider.h"

extern const struct provider fixtures;

/* Parts of it, each NULL-terminated. */
extern const struct prompt *const fixture_prompts[];
extern const struct resource *const fixture_resources[];

/* The smallest picture and sound there are, base64. */
#define FIXTURE_PNG                                                                                \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg" \
    "gg=="
#define FIXTURE_WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

/* A result of that content (JSON text of the array), or of one text. Frees the request. */
void fixture_finish(struct request *rq, const char *content);
void fixture_finish_text(struct request *rq, const char *text);

/* Tools that ask the client for something. */
void fixture_sampling(struct request *rq);
void fixture_elicitation(struct request *rq);
void fixture_elicitation_defaults(struct request *rq);
void fixture_elicitation_enums(struct request *rq);
void fixture_missing_capability(struct request *rq);
void fixture_streaming_elicitation(struct request *rq);
void fixture_input(struct request *rq);
void fixture_input_rounds(struct request *rq);
void fixture_input_state(struct request *rq);
void fixture_input_capabilities(struct request *rq);

/* Tools that may be tasks. */
extern const struct tool fixture_greet;
extern const struct tool fixture_slow_compute;
extern const struct tool fixture_failing_job;
extern const struct tool fixture_protocol_error_job;
extern const struct tool fixture_confirm_delete;
extern const struct tool fixture_multi_input;
extern const struct tool fixture_with_task;

/* Does a response under `key` have what the question wanted? The text it gave, or NULL. */
const char *fixture_answer(const struct request *rq, const char *key);

#endif
