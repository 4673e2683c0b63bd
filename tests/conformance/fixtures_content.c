/* tests/conformance/fixtures: prompts and resources. See fixtures.h. */
#include "fixtures.h"

#include "mcp/inputs.h"

#include <string.h>

/* ---- prompts ---- */

static void finish_message(struct request *rq, const char *content)
{
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "messages");
    jsonw_array(w);
    jsonw_object(w);
    jsonw_kstr(w, "role", "user");
    jsonw_key(w, "content");
    jsonw_raw(w, content, strlen(content));
    jsonw_object_end(w);
    jsonw_array_end(w);
    request_finish(rq);
}

static void finish_text(struct request *rq, const char *text)
{
    autobuf content = BUF_INIT;
    buf_puts(&content, "{\"type\":\"text\",\"text\":\"");
    jsonw_escape(&content, text, strlen(text));
    buf_puts(&content, "\"}");
    finish_message(rq, buf_cstr(&content));
}

static void get_simple(struct request *rq)
{
    finish_text(rq, "This is a simple prompt for testing.");
}

static void get_with_arguments(struct request *rq)
{
    autofree char *text = mem_printf("Prompt with arguments: arg1='%s', arg2='%s'",
                                     prompts_argument(rq, "arg1"), prompts_argument(rq, "arg2"));
    finish_text(rq, text);
}

static void get_with_resource(struct request *rq)
{
    autobuf content = BUF_INIT;
    const char *uri = prompts_argument(rq, "resourceUri");
    buf_puts(&content, "{\"type\":\"resource\",\"resource\":{\"uri\":\"");
    jsonw_escape(&content, uri, strlen(uri));
    buf_puts(&content, "\",\"mimeType\":\"text/plain\",\"text\":\"Embedded resource content for "
                       "testing.\"}}");
    finish_message(rq, buf_cstr(&content));
}

static void get_with_image(struct request *rq)
{
    finish_message(rq,
                   "{\"type\":\"image\",\"data\":\"" FIXTURE_PNG "\",\"mimeType\":\"image/png\"}");
}

static void get_with_input(struct request *rq)
{
    if (rq->modern && inputs_get(rq, "user_context") == NULL)
        inputs_require(rq,
                       "{\"user_context\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":"
                       "\"form\",\"message\":\"What is it about?\",\"requestedSchema\":{\"type\":"
                       "\"object\",\"properties\":{\"context\":{\"type\":\"string\"}},"
                       "\"required\":[\"context\"]}}}}",
                       NULL);
    else
        finish_text(rq, "With your context.");
}

static const struct prompt_argument two_arguments[] = {{"arg1", "The first", true},
                                                       {"arg2", "The second", true}};
static const struct prompt_argument uri_argument[] = {{"resourceUri", "The resource", true}};

static const struct prompt simple = {
    "test_simple_prompt", "Simple", "A prompt without arguments", NULL, 0, get_simple};
static const struct prompt with_arguments = {"test_prompt_with_arguments",
                                             "With arguments",
                                             "A prompt with two arguments",
                                             two_arguments,
                                             2,
                                             get_with_arguments};
static const struct prompt with_resource = {"test_prompt_with_embedded_resource",
                                            "With a resource",
                                            "A prompt that embeds a resource",
                                            uri_argument,
                                            1,
                                            get_with_resource};
static const struct prompt with_image = {
    "test_prompt_with_image", "With a picture", "A prompt with a picture", NULL, 0, get_with_image};
static const struct prompt with_input = {"test_input_required_result_prompt",
                                         "With input",
                                         "A prompt that needs input",
                                         NULL,
                                         0,
                                         get_with_input};

const struct prompt *const fixture_prompts[] = {&simple,     &with_arguments, &with_resource,
                                                &with_image, &with_input,     NULL};

/* ---- resources ---- */

static void read_text(const char *uri, struct jsonw *w)
{
    jsonw_kstr(w, "text", "This is the content of the static text resource.");
}

static void read_picture(const char *uri, struct jsonw *w)
{
    jsonw_kstr(w, "blob", FIXTURE_PNG);
}

static void read_template(const char *uri, struct jsonw *w)
{
    static const char head[] = "test://template/";
    size_t n = strcspn(uri + sizeof(head) - 1, "/");
    autofree char *id = mem_dup(uri + sizeof(head) - 1, n);
    autofree char *text =
        mem_printf("{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", id, id);
    jsonw_kstr(w, "text", text);
}

static const struct resource text = {"test://static-text",          "static-text", "Text",
                                     "A text that does not change", "text/plain",  read_text};
static const struct resource picture = {
    "test://static-binary",           "static-binary", "Picture",
    "A picture that does not change", "image/png",     read_picture};
static const struct resource watched = {"test://watched-resource", "watched-resource", "Watched",
                                        "A text to subscribe to",  "text/plain",       read_text};
static const struct resource template = {
    "test://template/{id}/data", "template",   "Template", "Data of an id",
    "application/json",          read_template};

const struct resource *const fixture_resources[] = {&text, &picture, &watched, &template, NULL};
