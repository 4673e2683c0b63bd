/* mcp/operator_approvals: see operator_approvals.h. */
#include "mcp/operator_approvals.h"

#include "base/log.h"
#include "core/approvals.h"
#include "mcp/approval_show.h"

int operator_approvals_list(struct http_operator_call *x)
{
    struct approval *items = NULL;
    size_t n = 0;
    uint32_t limit = x->query.limit != 0 ? (uint32_t)x->query.limit : APPROVALS_PAGE_DEFAULT;
    const struct approval_filter filter = {operator_call_workspace(x), !x->query.all,
                                           (int64_t)x->query.before, limit};
    if (approvals_list(x->ledger, &filter, &items, &n, &x->e) < 0)
        return -1;
    jsonw_array(&x->w);
    for (size_t i = 0; i < n; i++)
        approval_show_json(&x->w, &items[i], false);
    jsonw_array_end(&x->w);
    if (n == limit)
        operator_call_link(x, "/operator/approvals", "before", (uint64_t)items[n - 1].seq, limit);
    approvals_free(items, n);
    return 0;
}

int operator_approvals_show(struct http_operator_call *x)
{
    autoapproval a = {0};
    if (approvals_get(x->ledger, x->id, &a, &x->e) < 0)
        return -1;
    approval_show_json(&x->w, &a, true);
    return 0;
}

static int tell_decision(struct http_operator_call *x)
{
    autoapproval a = {0};
    if (approvals_get(x->ledger, x->id, &a, &x->e) < 0)
        return -1;
    jsonw_object(&x->w);
    jsonw_kstr(&x->w, "approval_id", a.approval_id);
    jsonw_kstr(&x->w, "state", approval_state_name(a.state));
    jsonw_object_end(&x->w);
    log_info("approval %s: %s with the operator's token", a.approval_id,
             approval_state_name(a.state));
    return 0;
}

int operator_approvals_grant(struct http_operator_call *x)
{
    if (approvals_grant(x->ledger, x->id, APPROVAL_BY_OPERATOR_TOKEN, false, &x->e) < 0)
        return -1;
    return tell_decision(x);
}

int operator_approvals_deny(struct http_operator_call *x)
{
    if (approvals_deny(x->ledger, x->id, APPROVAL_BY_OPERATOR_TOKEN, &x->e) < 0)
        return -1;
    return tell_decision(x);
}
