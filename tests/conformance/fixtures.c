/* tests/conformance/fixtures: the tools, as a table. See fixtures.h. */
#include "fixtures.h"

#include "mcp/listen.h"
#include "mcp/notice.h"
#include "mcp/session.h"

#include <string.h>

#define NO_ARGUMENTS "{\"type\":\"object\"}"
#define ONE_STRING(name)                                                                           \
    "{\"type\":\"object\",\"properties\":{\"" name                                                 \
    "\":{\"type\":\"string\"}},\"required\":[\"" name "\"]}"
/* After it the client of a stream that was let go comes back. */
#define RETRY_MS 200
#define LATER_MS 600

/* ---- answers ---- */

void fixture_finish(struct request *rq, const char *content)
{
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "content");
    jsonw_raw(w, content, strlen(content));
    request_finish(rq);
}

void fixture_finish_text(struct request *rq, const char *text)
{
    autobuf content = BUF_INIT;
    buf_puts(&content, "[{\"type\":\"text\",\"text\":\"");
    jsonw_escape(&content, text, strlen(text));
    buf_puts(&content, "\"}]");
    fixture_finish(rq, buf_cstr(&content));
}

#define TEXT(t) "{\"type\":\"text\",\"text\":\"" t "\"}"
#define IMAGE "{\"type\":\"image\",\"data\":\"" FIXTURE_PNG "\",\"mimeType\":\"image/png\"}"

static void simple_text(struct request *rq)
{
    fixture_finish(rq, "[" TEXT("This is a simple text response for testing.") "]");
}

static void image(struct request *rq)
{
    fixture_finish(rq, "[" IMAGE "]");
}

static void audio(struct request *rq)
{
    fixture_finish(rq, "[{\"type\":\"audio\",\"data\":\"" FIXTURE_WAV
                       "\",\"mimeType\":\"audio/wav\"}]");
}

static void embedded(struct request *rq)
{
    fixture_finish(rq, "[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
                       "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource "
                       "content.\"}}]");
}

static void mixed(struct request *rq)
{
    fixture_finish(rq,
                   "[" TEXT("Multiple content types test:") "," IMAGE
                                                            ",{\"type\":\"resource\",\"resource\":{"
                                                            "\"uri\":\"test://mixed-content-"
                                                            "resource\",\"mimeType\":\"application/"
                                                            "json\",\"text\":\"{\\\"test\\\":"
                                                            "\\\"data\\\",\\\"value\\\":123}\"}}]");
}

static void failing(struct request *rq)
{
    struct jsonw *w = request_answer(rq);
    static const char content[] =
        "[" TEXT("This tool intentionally returns an error for testing") "]";
    jsonw_key(w, "content");
    jsonw_raw(w, content, sizeof(content) - 1);
    jsonw_kbool(w, "isError", true);
    request_finish(rq);
}

static void logging(struct request *rq)
{
    notice_log(rq, NOTICE_INFO, "Tool execution started");
    notice_log(rq, NOTICE_INFO, "Tool processing data");
    notice_log(rq, NOTICE_INFO, "Tool execution completed");
    fixture_finish_text(rq, "logged");
}

static void progress(struct request *rq)
{
    notice_progress(rq, 0, 100, NULL);
    notice_progress(rq, 50, 100, NULL);
    notice_progress(rq, 100, 100, NULL);
    fixture_finish_text(rq, "done");
}

static void change_tools(struct request *rq)
{
    listen_changed(rq->server, LISTEN_TOOLS);
    fixture_finish_text(rq, "changed");
}

static void change_prompts(struct request *rq)
{
    listen_changed(rq->server, LISTEN_PROMPTS);
    fixture_finish_text(rq, "changed");
}

/* ---- a stream that is let go before the answer ---- */

struct later {
    uv_timer_t timer;
    struct request *rq; /* NULL: cancelled */
};

static void on_later_closed(uv_handle_t *handle)
{
    free(container_of((uv_timer_t *)handle, struct later, timer));
}

static void on_later(uv_timer_t *timer)
{
    struct later *l = container_of(timer, struct later, timer);
    struct request *rq = l->rq;
    uv_close((uv_handle_t *)timer, on_later_closed);
    if (rq != NULL)
        fixture_finish_text(rq, "Reconnection test completed successfully");
}

static void reconnection(struct request *rq)
{
    struct later *l = mem_new(struct later);
    *(struct later **)rq->state = l;
    l->rq = rq;
    uv_timer_init(rq->server->loop, &l->timer);
    uv_timer_start(&l->timer, on_later, LATER_MS, 0);
    if (rq->peer->ops->part != NULL)
        rq->peer->ops->part(rq->peer, RETRY_MS);
}

static void reconnection_cancel(struct request *rq)
{
    struct later *l = *(struct later **)rq->state;
    l->rq = NULL;
}

/* ---- the table ---- */

#define TOOL(var, tool_name, about, input, function)                                               \
    static const struct tool var = {.name = tool_name,                                             \
                                    .title = about,                                                \
                                    .description = about,                                          \
                                    .hints = TOOL_READS | TOOL_CONTENT,                            \
                                    .schema = input,                                               \
                                    .run = function}

TOOL(t_text, "test_simple_text", "Answers with a text", NO_ARGUMENTS, simple_text);
TOOL(t_image, "test_image_content", "Answers with a picture", NO_ARGUMENTS, image);
TOOL(t_audio, "test_audio_content", "Answers with a sound", NO_ARGUMENTS, audio);
TOOL(t_embedded, "test_embedded_resource", "Answers with a resource", NO_ARGUMENTS, embedded);
TOOL(t_mixed, "test_multiple_content_types", "Answers with three kinds", NO_ARGUMENTS, mixed);
TOOL(t_error, "test_error_handling", "Answers with an error", NO_ARGUMENTS, failing);
TOOL(t_logging, "test_tool_with_logging", "Logs while it runs", NO_ARGUMENTS, logging);
TOOL(t_log, "test_logging_tool", "Logs when the client wants it", NO_ARGUMENTS, logging);
TOOL(t_progress, "test_tool_with_progress", "Tells its progress", NO_ARGUMENTS, progress);
TOOL(t_sampling, "test_sampling", "Asks for a sample", ONE_STRING("prompt"), fixture_sampling);
TOOL(t_elicit, "test_elicitation", "Asks for a form", ONE_STRING("message"), fixture_elicitation);
TOOL(t_defaults, "test_elicitation_sep1034_defaults", "Asks for a form with defaults", NO_ARGUMENTS,
     fixture_elicitation_defaults);
TOOL(t_enums, "test_elicitation_sep1330_enums", "Asks for a form with choices", NO_ARGUMENTS,
     fixture_elicitation_enums);
TOOL(t_missing, "test_missing_capability", "Needs sampling", NO_ARGUMENTS,
     fixture_missing_capability);
TOOL(t_streaming, "test_streaming_elicitation", "Needs a form", NO_ARGUMENTS,
     fixture_streaming_elicitation);
TOOL(t_tools, "test_trigger_tool_change", "Says that tools changed", NO_ARGUMENTS, change_tools);
TOOL(t_prompts, "test_trigger_prompt_change", "Says that prompts changed", NO_ARGUMENTS,
     change_prompts);

#define INPUT "test_input_required_result_"
TOOL(t_in_name, INPUT "elicitation", "Asks for a name", NO_ARGUMENTS, fixture_input);
TOOL(t_in_sampling, INPUT "sampling", "Asks for a sample", NO_ARGUMENTS, fixture_input);
TOOL(t_in_roots, INPUT "list_roots", "Asks for roots", NO_ARGUMENTS, fixture_input);
TOOL(t_in_many, INPUT "multiple_inputs", "Asks for three things", NO_ARGUMENTS,
     fixture_input_state);
TOOL(t_in_state, INPUT "request_state", "Asks with a state", NO_ARGUMENTS, fixture_input_state);
TOOL(t_in_tampered, INPUT "tampered_state", "Checks its state", NO_ARGUMENTS, fixture_input_state);
TOOL(t_in_rounds, INPUT "multi_round", "Asks twice", NO_ARGUMENTS, fixture_input_rounds);
TOOL(t_in_capabilities, INPUT "capabilities", "Asks what the client can", NO_ARGUMENTS,
     fixture_input_capabilities);

TOOL(t_schema, "json_schema_2020_12_tool", "Has a schema with many keywords",
     "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
     "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
     "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{"
     "\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
     "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
     "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
     "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
     "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
     "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
     "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}",
     simple_text);

TOOL(t_params, "test_custom_headers", "Has arguments that are repeated in headers",
     "{\"type\":\"object\",\"properties\":{"
     "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
     "\"priority\":{\"type\":\"integer\",\"x-mcp-header\":\"Priority\"}}}",
     simple_text);

static const struct tool t_reconnection = {.name = "test_reconnection",
                                           .title = "Lets its stream go",
                                           .description = "Lets its stream go and answers later",
                                           .hints = TOOL_READS | TOOL_CONTENT,
                                           .schema = NO_ARGUMENTS,
                                           .state_size = sizeof(struct later *),
                                           .run = reconnection,
                                           .cancel = reconnection_cancel};

static const struct tool *const fixture_tools[] = {
    &t_text,
    &t_image,
    &t_audio,
    &t_embedded,
    &t_mixed,
    &t_error,
    &t_logging,
    &t_log,
    &t_progress,
    &t_sampling,
    &t_elicit,
    &t_defaults,
    &t_enums,
    &t_missing,
    &t_streaming,
    &t_tools,
    &t_prompts,
    &t_in_name,
    &t_in_sampling,
    &t_in_roots,
    &t_in_many,
    &t_in_state,
    &t_in_tampered,
    &t_in_rounds,
    &t_schema,
    &t_reconnection,
    &t_in_capabilities,
    &t_params,
    &fixture_greet,
    &fixture_slow_compute,
    &fixture_failing_job,
    &fixture_protocol_error_job,
    &fixture_confirm_delete,
    &fixture_multi_input,
    &fixture_with_task,
    NULL,
};

const struct provider fixtures = {
    .provides = PROVIDES_TOOLS | PROVIDES_PROMPTS | PROVIDES_RESOURCES | PROVIDES_COMPLETION |
                PROVIDES_LOGGING | PROVIDES_CHANGES | PROVIDES_TASKS,
    .tools = fixture_tools,
    .prompts = fixture_prompts,
    .resources = fixture_resources,
};
