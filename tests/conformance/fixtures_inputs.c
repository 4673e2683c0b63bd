/* tests/conformance/fixtures: the tools that ask the client for something, in the way of each era.
 * See fixtures.h. */
#include "fixtures.h"

#include "mcp/ask.h"
#include "mcp/inputs.h"
#include "mcp/session.h"
#include "wire/json.h"

#include <string.h>

static void fail(struct request *rq, const char *text)
{
    struct err e;
    err_set(&e, ERR_INTERNAL, "%s", text);
    request_fail(rq, &e);
}

/* ---- legacy: questions ---- */

#define FORM(message, schema)                                                                      \
    "{\"mode\":\"form\",\"message\":\"" message                                                    \
    "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" schema "}"
#define STRINGS(name, more) "\"" name "\":{\"type\":\"string\"" more "}"

static void ask(struct request *rq, const char *method, const char *params, ask_fn done)
{
    if (!ask_client(rq, method, params, done))
        fail(rq, "the client cannot be asked");
}

static void sampled(struct request *rq, struct json_object *result)
{
    const char *text = json_str(json_get(json_get(result, "content"), "text"));
    autofree char *all = mem_printf("LLM response: %s", text != NULL ? text : "none");
    fixture_finish_text(rq, all);
}

void fixture_sampling(struct request *rq)
{
    autobuf params = BUF_INIT;
    const char *prompt = json_str(json_get(rq->args, "prompt"));
    buf_puts(&params,
             "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"");
    jsonw_escape(&params, prompt != NULL ? prompt : "", prompt != NULL ? strlen(prompt) : 0);
    buf_puts(&params, "\"}}],\"maxTokens\":100}");
    ask(rq, "sampling/createMessage", buf_cstr(&params), sampled);
}

static void elicited(struct request *rq, struct json_object *result)
{
    const char *action = json_str(json_get(result, "action"));
    struct json_object *content = json_get(result, "content");
    autofree char *all =
        mem_printf("User response: action=%s, content=%s", action != NULL ? action : "none",
                   json_object_to_json_string_ext(content, JSON_C_TO_STRING_PLAIN));
    fixture_finish_text(rq, all);
}

void fixture_elicitation(struct request *rq)
{
    ask(rq, "elicitation/create",
        FORM("Who are you?", STRINGS("username", "") "," STRINGS(
                                 "email", ",\"format\":\"email\"")) ",\"required\":[\"username\","
                                                                    "\"email\"]}}",
        elicited);
}

void fixture_elicitation_defaults(struct request *rq)
{
    ask(rq, "elicitation/create",
        FORM("Please check",
             STRINGS("name",
                     ",\"default\":\"John Doe\"") ",\"age\":{\"type\":\"integer\","
                                                  "\"default\":30},"
                                                  "\"score\":{\"type\":\"number\","
                                                  "\"default\":95.5}," STRINGS(
                                                      "status",
                                                      ",\"enum\":[\"active\",\"inactive\","
                                                      "\"pending\"],\"default\":"
                                                      "\"active\"") ",\"verified\":{\"type\":"
                                                                    "\"boolean\",\"default\":"
                                                                    "true}") "}}",
        elicited);
}

#define TITLED                                                                                     \
    "[{\"const\":\"value1\",\"title\":\"First Option\"},{\"const\":\"value2\",\"title\":\"Second " \
    "Option\"},{\"const\":\"value3\",\"title\":\"Third Option\"}]"
#define UNTITLED "\"enum\":[\"option1\",\"option2\",\"option3\"]"

void fixture_elicitation_enums(struct request *rq)
{
    ask(rq, "elicitation/create",
        FORM("Please choose",
             STRINGS("untitledSingle", "," UNTITLED) "," STRINGS(
                 "titledSingle",
                 ",\"oneOf\":" TITLED) "," STRINGS("legacyEnum",
                                                   ",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
                                                   "\"enumNames\":[\"Option One\",\"Option "
                                                   "Two\",\"Option Three\"]") ",\"untitledMulti\":{"
                                                                              "\"type\":\"array\","
                                                                              "\"items\":{"
                                                                              "\"type\":"
                                                                              "\"string\"," UNTITLED
                                                                              "}},"
                                                                              "\"titledMulti\":{"
                                                                              "\"type\":\"array\","
                                                                              "\"items\":{"
                                                                              "\"anyOf\":" TITLED
                                                                              "}}") "}}",
        elicited);
}

/* ---- modern: input_required ---- */

#define NAME_FORM                                                                                  \
    "\"user_name\":{\"method\":\"elicitation/create\",\"params\":" FORM(                           \
        "What is your name?", STRINGS("name", "")) ",\"required\":[\"name\"]}}}"
#define OK_FORM                                                                                    \
    "\"confirm\":{\"method\":\"elicitation/create\",\"params\":" FORM(                             \
        "Please confirm", "\"ok\":{\"type\":\"boolean\"}") ",\"required\":[\"ok\"]}}}"
#define SAMPLE(key, text)                                                                          \
    "\"" key "\":{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[{\"role\":"      \
    "\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}],\"maxTokens\":100}}"
#define ROOTS "\"client_roots\":{\"method\":\"roots/list\",\"params\":{}}"

/* What came back, as a text: of a form its first member, of a sample its text, of roots the
 * first. */
const char *fixture_answer(const struct request *rq, const char *key)
{
    struct json_object *one = inputs_get(rq, key);
    struct json_object *content = json_get(one, "content");
    struct json_object *roots = json_get(one, "roots");
    if (json_object_is_type(roots, json_type_array))
        return json_object_to_json_string_ext(roots, JSON_C_TO_STRING_PLAIN);
    const char *text = json_str(json_get(content, "text"));
    if (text == NULL)
        text = json_str(json_get(content, "name"));
    if (text == NULL && json_object_is_type(json_get(content, "ok"), json_type_boolean))
        text = "ok";
    return text;
}

struct question {
    const char *tool, *key, *requests, *answer;
};

/* One question, no state. */
void fixture_input(struct request *rq)
{
    static const struct question all[] = {
        {"test_input_required_result_elicitation", "user_name", "{" NAME_FORM "}", "Hello, %s!"},
        {"test_input_required_result_sampling", "capital_question",
         "{" SAMPLE("capital_question", "What is the capital of France?") "}", "It is: %s"},
        {"test_input_required_result_list_roots", "client_roots", "{" ROOTS "}", "Roots: %s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i].tool, rq->tool->name) != 0)
            continue;
        const char *answer = fixture_answer(rq, all[i].key);
        if (!rq->modern) {
            fail(rq, "only in the modern era");
        } else if (answer == NULL) {
            inputs_require(rq, all[i].requests, NULL);
        } else {
            autobuf text = BUF_INIT;
            const char *mark = strstr(all[i].answer, "%s");
            buf_put(&text, all[i].answer, (size_t)(mark - all[i].answer));
            buf_puts(&text, answer);
            buf_puts(&text, mark + 2);
            fixture_finish_text(rq, buf_cstr(&text));
        }
        return;
    }
}

/* The state that came back, or NULL; -1 when the request was ended because it is not ours. */
static int take_state(struct request *rq, char **ret)
{
    struct err e;
    if (rq->modern && inputs_state(rq, ret, &e) == 0)
        return 0;
    if (!rq->modern)
        err_set(&e, ERR_INVALID_REQUEST, "only in the modern era");
    request_error(rq, &e, NULL);
    return -1;
}

/* One or three questions and a state. */
void fixture_input_state(struct request *rq)
{
    static const char all_three[] =
        "{" NAME_FORM "," SAMPLE("greeting", "Generate a greeting") "," ROOTS "}";
    autofree char *state = NULL;
    bool many = strstr(rq->tool->name, "multiple") != NULL;
    if (take_state(rq, &state) < 0)
        return;
    bool complete = many ? fixture_answer(rq, "user_name") && fixture_answer(rq, "greeting") &&
                               fixture_answer(rq, "client_roots")
                         : fixture_answer(rq, "confirm") != NULL;
    if (state == NULL || !complete)
        inputs_require(rq, many ? all_three : "{" OK_FORM "}", "asked");
    else
        fixture_finish_text(rq, "state-ok");
}

void fixture_input_rounds(struct request *rq)
{
    autofree char *state = NULL;
    if (take_state(rq, &state) < 0)
        return;
    if (state != NULL && strcmp(state, "two") == 0 && inputs_get(rq, "step2") != NULL)
        fixture_finish_text(rq, "done");
    else if (state != NULL && inputs_get(rq, "step1") != NULL)
        inputs_require(rq,
                       "{\"step2\":{\"method\":\"elicitation/create\",\"params\":" FORM(
                           "Step 2: your colour?", STRINGS("color", "")) "}}}}",
                       "two");
    else
        inputs_require(rq,
                       "{\"step1\":{\"method\":\"elicitation/create\",\"params\":" FORM(
                           "Step 1: your name?", STRINGS("name", "")) "}}}}",
                       "one");
}

/* Only what the client declared is asked. */
void fixture_input_capabilities(struct request *rq)
{
    autobuf requests = BUF_INIT;
    if (ask_client_has(rq, "sampling"))
        buf_puts(&requests, SAMPLE("sample", "Say something"));
    if (ask_client_has(rq, "elicitation")) {
        buf_puts(&requests, requests.len > 0 ? "," : "");
        buf_puts(&requests, NAME_FORM);
    }
    autofree char *object = mem_printf("{%s}", buf_cstr(&requests));
    struct json_object *given = json_get(request_params(rq), "inputResponses");
    if (!rq->modern || requests.len == 0 || given != NULL)
        fixture_finish_text(rq, "nothing is needed");
    else
        inputs_require(rq, object, NULL);
}

void fixture_missing_capability(struct request *rq)
{
    if (!ask_client_has(rq, "sampling"))
        ask_refuse(rq, "sampling");
    else
        fixture_finish_text(rq, "the client has sampling");
}

void fixture_streaming_elicitation(struct request *rq)
{
    if (!ask_client_has(rq, "elicitation"))
        ask_refuse(rq, "elicitation");
    else if (rq->modern && inputs_get(rq, "user_name") == NULL)
        inputs_require(rq, "{" NAME_FORM "}", NULL);
    else
        fixture_finish_text(rq, "thank you");
}
