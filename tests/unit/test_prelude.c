/* SPDX-License-Identifier: Apache-2.0 */
/* The prelude is read item by item when used; here every item is, so a mistake in one that no other
 * test uses is found. And an item checked alone has the type it has when all are checked before. */
#include "repl/prelude.h"
#include "tests/unit/check.h"

static Session *open_session(void) {
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    return session_new(&options);
}

TEST(every_item_checks) { CHECK(prelude_load_all(open_session())); }

TEST(alone_or_among_the_others) {
    Session *all = open_session(), *some = open_session();
    CHECK(prelude_load_all(all));
    SymbolVec names = {0};
    prelude_each_name(all, &names);
    CHECK(names.len > 50);
    for (size_t i = 0; i < names.len; i++) {
        Binding x = env_find(session_env(all), names.data[i], SIGIL_GLOBAL);
        Binding y = env_find(session_env(some), names.data[i], SIGIL_GLOBAL);
        Str s = {0}, t = {0};
        scheme_print(&s, x.global->scheme, NULL);
        scheme_print(&t, y.global->scheme, NULL);
        CHECK_TEXT(str_text(&s), str_text(&t));
    }
}

int main(void) {
    mem_init();
    RUN(every_item_checks);
    RUN(alone_or_among_the_others);
    return check_result();
}
