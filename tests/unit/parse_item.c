/* SPDX-License-Identifier: Apache-2.0 */
/* How items, types and whole modules are read: LANGUAGE §2 and §4, TVM's modules, line breaks,
 * comments, spans. */
#include "tests/unit/parse_dump.h"

TEST(items) {
    READS("type L[A] { Cons(A, L[A]) | Nil }", "(type L[A] (Cons A (L A)) (Nil))");
    READS("type V {} type W { | A | B, }", "(type V)\n(type W (A) (B))");
    READS(
        "type Layer[n, m: Dim] { Layer { w: Tensor[(n, m), float32], b: Tensor[(m,), float32] } }",
        "(type Layer[n m:Dim] (Layer w:(Tensor (shape n m) float32) b:(Tensor (shape m) "
        "float32)))");
    READS("extern type Storage", "(extern Storage)");
    READS("operator @cbrt : fn(float64) -> float64 = \"cbrt\" from \"libm.so.6\"",
          "(operator @cbrt:(fn [] float64 -> float64) \"cbrt\" \"libm.so.6\")");
    READS("derivative nn.dense(data, weight; out, ct) { (ct @@ weight, ct) }",
          "(derivative nn.dense [] (data weight) (tuple (@@ ct weight) ct) +out +ct)");
    READS("derivative where(c, x, y; out, ct) { () }",
          "(derivative where [] (c x y) (tuple) +out +ct)");
    READS("tangent exp(x; out, dx) { out * dx }", "(tangent exp [] (x) (* out dx) +out +dx)");
    READS("no_derivative argsort;", "(no_derivative argsort)");
    READS("import \"file.rly\"; import nn; import nn as m; import nn (linear, sgd);",
          "(import  \"file.rly\")\n(import nn)\n(import nn as m)\n(import nn linear sgd)");
    READS("free_var %x : T; %0 = %x; %0", "(free_var %x:T)\n(graph 0 %x)\n%0");
    READS("let x : int32 = 1; x;", "(let x:int32 1)\nx;");
    READS("def f(x) -> A where R(A) { x }", "(def f [] (x) -> A (where R A) x)");
}

TEST(types) {
    READS("let x : Tensor(FloatType(32), Shape(2, 3)) = 1;",
          "(let x:(Tensor (shape 2 3) float32) 1)");
    READS("let x : forall (A : Type), A -> A = z;", "(let x:(forall [A:Type] (fn [] A -> A)) z)");
    READS("let x : (Ref[A], ref(T), RefType(T), IntType(8), UIntType(64), BoolType, _) = 1;",
          "(let x:(tuple (ref A) (ref T) (ref T) int8 uint64 bool _) 1)");
    READS("let x : (Tensor[_, b], Tensor[(3), _], Tensor[(), bool]) = 1;",
          "(let x:(tuple (Tensor _ b) (Tensor (shape 3) _) (Tensor (shape) bool)) 1)");
    READS(
        "let x : (L[?], L[(2, n)], L[(n, m)], L[2 * n + 1 - m, floordiv(n, 2), min(a, -1)]) = 1;",
        "(let x:(tuple (L ?) (L (shape 2 n)) (L (tuple n m)) (L (- (+ (* 2 n) 1) m) (floordiv n 2) "
        "(min a -1))) 1)");
    READS("let x : (fn(A) -> B, T -> U -> V, (T, U) -> V, ((T, U)) -> V, () -> T) = 1;",
          "(let x:(tuple (fn [] A -> B) (fn [] T -> (fn [] U -> V)) (fn [] T U -> V) (fn [] (tuple "
          "T U) "
          "-> V) (fn [] -> T)) 1)");
    READS("let x : fn [A](A) -> fn(A) -> A where R(A) = 1;",
          "(let x:(fn [A] A -> (fn [] A -> A) (where R A)) 1)");
    READS("let x : (fn(A) -> A where R(A), ref(B)) = 1;",
          "(let x:(tuple (fn [] A -> A (where R A)) (ref B)) 1)");
    READS("let x : m.Layer[2] = 1; let y : (int32) = 2;", "(let x:(m.Layer 2) 1)\n(let y:int32 2)");
    READS("#[version = \"0.0.5\"]\nlet %y : (int32) = 2;", "(let %y:(tuple int32) 2)");
    READS("def f[A: Foo](x) { x }", "(def f [A] (x) x) R0016");
    READS("let x : FloatType(8) = 1;", "(error x:_ ERROR) R0001");
}

TEST(tvm) {
    READS("#[version = \"0.0.5\"]\n"
          "type Either[A, B] { Left(A), Right(B), }\n"
          "def @main(%x: Tensor[(?, meta[tir.Var][0]), int8] /* ty=T span=a:1:2 */, hash=\"a\\b\", "
          "relay.reshape_only=1) -> fn (int32) -> int32 {\n"
          "  %0 = nn.conv2d(%x, %x, padding=[0, 0], channels=None, out_dtype=\"\") /* ty=x */;\n"
          "  %1 = %0.0;\n"
          "  let %y: (int32,) = (1,);\n"
          "  ref_write(%r, ref_read(%c) + 1);\n"
          "  if (%n < 3) { %f(1) } else { (fn (%z) { %z })(0) }\n"
          "}\n"
          "extern type Handle[A]\n",
          "(type Either[A B] (Left A) (Right B))\n"
          "(def @main [] (%x:(Tensor (shape ? ?) int8) hash=\"a\\\\b\" relay.reshape_only=1) -> "
          "(fn [] "
          "int32 -> int32) (%0 = (call nn.conv2d %x %x padding=[0 0] channels=None out_dtype=\"\") "
          "(%1 = (proj %0 0) (let %y:(tuple int32) (tuple 1) (seq (:= %r (+ (read %c) 1)) (if (< "
          "%n 3) "
          "(call %f 1) (call (fn [] (%z) %z) 0)))))))\n"
          "(extern Handle[A])");
    READS("v0.0.4\ndef @f(%a {virtual_device=meta[VirtualDevice][0]}: int32) { f(%a, meta[K][1]) }",
          "(def @f [] (%a:int32) (call f %a meta[K][1]))");
}

static const char metadata[] =
    "#[version = \"0.0.5\"]\nmeta[relay.Constant][0]\n\n#[metadata]\n"
    "{\"root\": 1, \"nodes\": [{\"type_key\": \"\"}, {\"type_key\": \"Map\", \"keys\": "
    "[\"relay.Constant\"], "
    "\"data\": [2]}, {\"type_key\": \"Array\", \"data\": [3]}, {\"type_key\": \"relay.Constant\", "
    "\"attrs\": "
    "{\"_checked_type_\": \"0\", \"data\": \"0\", \"span\": \"0\"}}], \"b64ndarrays\": "
    "[\"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQACAAAAAAAAAAMAAAAAAAAAGAAAAAAAAAAAAIA/"
    "AAAAQAAAQEAAAIBAAAC"
    "gQAAAwEA=\"], \"attrs\": {\"tvm_version\": \"0.8.0\"}}\n";

TEST(constants) {
    Reading r = {.text = metadata};
    reading_start(&r);
    CHECK_INT(r.status, PARSE_OK);
    CHECK_INT(r.module->versioned, 1);
    CHECK_TEXT(r.module->version, "0.0.5");
    CHECK_INT(r.module->constants.len, 1);
    if (r.module->constants.len == 1) {
        const MetaConstant *c = r.module->constants.data[0];
        float data[6];
        CHECK(c->code == 2 && c->bits == 32 && c->ndim == 2 && c->bytes == 24);
        CHECK(c->shape[0] == 2 && c->shape[1] == 3);
        memcpy(data, c->data, sizeof data);
        CHECK(data[0] == 1.0f && data[5] == 6.0f);
    }
    READS("#[version = \"0.0.5\"]\n1\n#[metadata]\n{}", "1 R0011");
    READS("#[version = \"0.0.5\"]\n1\n#[metadata]\n{\"root\": ", "1 R0011");
    READS("#[licence]\n1", "R0013");
    READS("1;\n#[version = \"0.0.5\"]\n1", "1;\n1 R0013");
}

TEST(line_breaks) {
    READS("3\n- 4\n+ 5\n(6)\n[7]\n.x\nx\n|> f", "3\n(+ -4 5)\n6\n(field (tensor 7) x)\n(|> x f)");
    READS("f\n{ 1 }", "f\n1");
    READS("(f\n(1)\n- 2)", "(- (call f 1) 2)");
    READS("if (a) { b }\nelse { c }", "(if a b c)");
    READS("if a\nthen b\nelse c\nd", "(if a b c)\nd");
    READS("match x\n| A -> 1\n| B -> 2\nd", "(match x [A => 1] [B => 2])\nd");
    READS("let x = 1\nin x\n(2)", "(let x 1 x)\n2");
    READS("let x\n= f\n(2)\n- 3;", "(let x f)\n2\n-3;");
    READS("let x = 1\ny", "(let x 1)\ny");
    READS("let x\n= f\n@@ y", "(let x (@@ f y))");
    READS("let x = 1 y", "(error x 1) R0001");
    READS("#[version = \"0.0.5\"]\nlet %x = f\n(2);", "(let %x (call f 2))");
    READS("1 2", "(error  1) R0001");
    READS("sq\nx", "sq\nx");
    READS("x\n@@ y\n@f", "(@@ x y)\n@f");
}

TEST(prompt) {
    static const struct {
        const char *text;
        ParseStatus status;
    } table[] = {
        {"", PARSE_OK},
        {"let x = 3", PARSE_OK},
        {"let x = 3\nx", PARSE_OK},
        {"f(1)", PARSE_OK},
        {"%0 = 1", PARSE_OK},
        {"import nn", PARSE_OK},
        {"1 +", PARSE_INCOMPLETE},
        {"f(1,", PARSE_INCOMPLETE},
        {"f(1", PARSE_INCOMPLETE},
        {"[1, 2\n", PARSE_INCOMPLETE},
        {"{", PARSE_INCOMPLETE},
        {"let x =", PARSE_INCOMPLETE},
        {"let", PARSE_INCOMPLETE},
        {"if (a) { b }", PARSE_INCOMPLETE},
        {"if a then b", PARSE_INCOMPLETE},
        {"match x", PARSE_INCOMPLETE},
        {"match x { A =>", PARSE_INCOMPLETE},
        {"def f(x)", PARSE_INCOMPLETE},
        {"def f(x) {\nlet y = 1;", PARSE_INCOMPLETE},
        {"type T", PARSE_INCOMPLETE},
        {"1 /* a", PARSE_INCOMPLETE},
        {"fn (x)", PARSE_INCOMPLETE},
        {"#[version", PARSE_INCOMPLETE},
        {"let x = 1 in", PARSE_INCOMPLETE},
        {"{ 1; ) ", PARSE_FAILED},
        {")", PARSE_FAILED},
        {"\"abc", PARSE_FAILED},
        {"1 2", PARSE_FAILED},
        {"let x = 300u8", PARSE_FAILED},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        CHECK_INT(read_prompt(table[i].text), table[i].status);
}

TEST(recovery) {
    READS("let x = ) 1;\nlet y = 2;", "(error x ERROR)\n(let y 2) R0001");
    READS("def f(x { x }\ndef g(y) { y }", "(error f [] (x) ERROR)\n(def g [] (y) y) R0001");
    READS("def f() { g(1 2); let x = ; x }\n3",
          "(def f [] () (seq ERROR (let x ERROR x)))\n3 R0001 R0001");
    READS("def f() { 1 +\ndef g() { 2 }", "(error f [] () (seq ERROR end))\n(def g [] () 2) R0001");
    READS("}\n1", "(error  ERROR)\n1 R0001");
    READS("1 $ 2;\n3", "(error  1)\n3 R0015");
    READS("let match = 1;\nlet x = 2;", "(error _ ERROR)\n(let x 2) R0012");
    READS("% 3", "(error  ERROR) R0015");
}

TEST(comments) {
    Reading r = {.text = "/// one\n/// two\ndef f() { 1 } // three\n/* four /* nested */ */\n\n/// "
                         "not\n\nf()\n"};
    reading_start(&r);
    CHECK_INT(r.status, PARSE_OK);
    CHECK_INT(r.module->comments.len, 5);
    CHECK_TEXT(r.module->items.data[0]->doc, "one\ntwo");
    CHECK(r.module->items.data[1]->doc == NULL);
    CHECK(r.module->comments.data[0].own_line && !r.module->comments.data[2].own_line);
    CHECK(r.module->comments.data[3].span.end - r.module->comments.data[3].span.begin == 23);
    READS("1 /* a /* b */", "(error  1) R0003");
    READS("#!/usr/bin/env relay\n1", "1");
}

static void check_place(const Ast *e, const char *text, const char *op) {
    Span s = e->span, o = e->op_span;
    char found[64] = "", found_op[64] = "";
    if (s.end - s.begin < sizeof found)
        memcpy(found, s.source->text + s.begin, s.end - s.begin);
    if (o.source && o.end - o.begin < sizeof found_op)
        memcpy(found_op, o.source->text + o.begin, o.end - o.begin);
    CHECK_TEXT(found, text);
    CHECK_TEXT(found_op, op);
}

TEST(places) {
    static const char *const table[][3] = {
        {" x  @@ (y) ", "x  @@ (y)", "@@"},
        {"a + b + c", "a + b + c", "+"},
        {"f (x, y)", "f (x, y)", "f"},
        {"-x", "-x", "-"},
        {"- 1", "- 1", ""},
        {"a.b.0", "a.b.0", ".0"},
        {"x[1:2]", "x[1:2]", "[1:2]"},
        {"(float64) x", "(float64) x", "(float64)"},
        {"( x )", "( x )", ""},
        {"let x = 1 in x", "let x = 1 in x", "let"},
        {"r := 1", "r := 1", ":="},
        {"{ f(1); 2 }", "{ f(1); 2 }", ";"},
        {"match? x { y => 1 }", "match? x { y => 1 }", "match?"},
        {"{ r with w = 1 }", "{ r with w = 1 }", "with"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        Reading r = {.text = table[i][0]};
        reading_start(&r);
        CHECK_INT(r.status, PARSE_OK);
        if (r.status == PARSE_OK)
            check_place(r.module->items.data[0]->value, table[i][1], table[i][2]);
    }
}

TEST(bytes) {
    READS("1 + \xff", "R0007");
    Reading r = {.text = "1 \0 2", .len = 5};
    reading_start(&r);
    CHECK_TEXT(r.dump, "R0008");
    READS("", "");
    READS("\xc3\xa9", "(error  ERROR) R0015");
}

int main(void) {
    RUN(items);
    RUN(types);
    RUN(tvm);
    RUN(constants);
    RUN(line_breaks);
    RUN(prompt);
    RUN(recovery);
    RUN(comments);
    RUN(places);
    RUN(bytes);
    return check_result();
}
