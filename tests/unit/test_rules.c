/* SPDX-License-Identifier: Apache-2.0 */
/* Derivative rules: each operator has one, or says that it has none; and what rules are written
 * with has rules itself, so that derivatives nest to any order. */
#include "check.h"

#include "ops/recipe/plan.h"
#include "repl/session.h"

#define FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)

static Env *env;

TEST(every_operator_has_a_rule) {
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        check_tried();
        if (!env_find_rule(env, op, RULE_DERIVATIVE) && !env_find_rule(env, op, RULE_NONE))
            FAIL("%s has neither a derivative nor a no_derivative item", op->name);
    }
}

static const Op *of;
static Map seen;

static void visit(void *ctx, Expr *e) {
    if (!e || map_has(&seen, e))
        return;
    map_set(&seen, e, e);
    if (e->kind == EXPR_OP) {
        const Rule *rule = env_find_rule(env, e->op, RULE_DERIVATIVE);
        if (!rule)
            FAIL("the rule of %s uses %s, which has no derivative", of->name, e->op->name);
    }
    expr_each_child(e, visit, ctx);
}

TEST(rules_are_closed) {
    for (size_t i = 0; i < op_count(); i++) {
        of = op_at(i);
        const Rule *rule = env_find_rule(env, of, RULE_DERIVATIVE);
        if (rule) {
            check_tried();
            visit(NULL, rule->fn->fn->body);
        }
    }
}

int main(void) {
    mem_init();
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    env = session_env(session_new(&options));
    RUN(every_operator_has_a_rule);
    RUN(rules_are_closed);
    return check_result();
}
