/* SPDX-License-Identifier: Apache-2.0 */
/* docs/onnx.md: the operators of ONNX that are translated, from interchange/ops.def. */
#include "docs/pages.h"
#include "interchange/translator.h"

bool page_print_onnx(Session *s, Str *out, const char **why) {
    (void)s;
    (void)why;
    size_t n = 0;
    for (const OnnxOp *op = onnx_ops; op->name; op++)
        n++;
    str_printf(out,
               "\n%zu operators of ONNX's own domain:\n\n| operator | since opset | what is left "
               "out |\n|---|---|---|\n",
               n);
    for (const OnnxOp *op = onnx_ops; op->name; op++)
        str_printf(out, "| %s | %d | %s |\n", op->name, op->since, op->note ? op->note : "");
    return true;
}
