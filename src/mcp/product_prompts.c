/* mcp/product_prompts: prompts that a person picks to have a model work here as it should.
 *
 * They say which tools to use in which order, and what is really on around commands; the rest is
 * the model's. Must not: claim a wall that the probe did not see (core/facts writes that part).
 */
#include "mcp/product.h"

#include "core/facts.h"

static void write_message(struct request *rq, const char *description, struct buf *text)
{
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "description", description);
    jsonw_key(w, "messages");
    jsonw_array(w);
    jsonw_object(w);
    jsonw_kstr(w, "role", "user");
    jsonw_key(w, "content");
    jsonw_object(w);
    jsonw_kstr(w, "type", "text");
    jsonw_kstr(w, "text", buf_cstr(text));
    jsonw_object_end(w);
    jsonw_object_end(w);
    jsonw_array_end(w);
    request_finish(rq);
}

static void put_workspace(const struct request *rq, struct buf *text)
{
    const char *id = prompts_argument(rq, "workspace_id");
    if (*id != '\0')
        buf_printf(text, "Work in the workspace \"%s\".\n\n", id);
    else
        buf_puts(text, "Ask workspace_info which workspaces there are, and work in the one that "
                       "the task is about.\n\n");
}

/* ---- work ---- */

static void answer_work(struct request *rq)
{
    autobuf text = BUF_INIT;
    put_workspace(rq, &text);
    facts_instructions(&rq->server->facts, rq->server->registry, &text);
    buf_puts(
        &text,
        "\n\nHow to work here:\n"
        "1. workspace_info tells what is allowed and which walls stand around commands.\n"
        "2. find and search locate files, read shows them; keep the version that read gives.\n"
        "3. apply_patch changes them, all of a patch or nothing. Pass expected_versions, so that "
        "nobody's change in between is overwritten, and an operation_key, so that a repeated "
        "call is not applied twice.\n"
        "4. exec_command with wait_ms runs what checks the change. Read the rest of long output "
        "with read_process.\n"
        "5. Say what was done, and what could not be checked.");
    write_message(rq, "How to work with files and commands here", &text);
}

static void get_work(struct request *rq)
{
    request_when_probed(rq, answer_work);
}

static const struct prompt_argument work_arguments[] = {
    {"workspace_id", "The workspace to work in; without it the model asks.", false}};

static const struct prompt work = {.name = "work",
                                   .title = "Work in a workspace",
                                   .description = "Tells a model how to work here: which tools, in "
                                                  "which order, and what is really on.",
                                   .arguments = work_arguments,
                                   .n_arguments = ARRAY_LEN(work_arguments),
                                   .get = get_work};

/* ---- make_pass ---- */

static void get_make_pass(struct request *rq)
{
    autobuf text = BUF_INIT;
    put_workspace(rq, &text);
    buf_printf(
        &text,
        "Make this command succeed: %s\n\n"
        "Run it with exec_command and wait_ms. When it fails, read what it printed (with "
        "read_process when the answer was cut), find the cause in the sources with search and "
        "read, and correct the cause with apply_patch, as small a change as is right. Do not "
        "weaken a test to make it pass. Run the command again after each change, until it "
        "succeeds or you know why it cannot here; a refusal of the sandbox is such a reason, "
        "and workspace_info tells which rules there are.",
        prompts_argument(rq, "command"));
    write_message(rq, "Run a command and repair what makes it fail", &text);
}

static const struct prompt_argument make_pass_arguments[] = {
    {"command", "The command, e.g. \"make test\".", true},
    {"workspace_id", "The workspace to work in; without it the model asks.", false}};

static const struct prompt make_pass = {.name = "make_pass",
                                        .title = "Make a command succeed",
                                        .description = "Has a model run a command, such as a test "
                                                       "suite, and repair what makes it fail.",
                                        .arguments = make_pass_arguments,
                                        .n_arguments = ARRAY_LEN(make_pass_arguments),
                                        .get = get_make_pass};

const struct prompt *const product_prompts[] = {&work, &make_pass, NULL};
