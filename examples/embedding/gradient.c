/* SPDX-License-Identifier: Apache-2.0 */
/* A gradient from C:  cc gradient.c $(pkg-config --cflags --libs relay) && ./a.out */
#include <relay.h>
#include <stdio.h>

int main(void) {
    RelaySession *s = relay_open(NULL);
    RelayValue *at = relay_evaluate(s, "def f(x) { sum(x ** 3) }\n[1.0, 2.0, 3.0]");
    RelayValue *both = at ? relay_call(s, "grad(f)", &at, 1) : NULL;
    if (!both) {
        fputs(relay_error(s), stderr);
        return 1;
    }
    RelayValue *gradients = relay_item(both, 1), *gradient = relay_item(gradients, 0);
    printf("%s\n", relay_show(gradient)); /* [3.0, 12.0, 27.0] : Tensor[(3,), float32] */
    return 0;
}
