#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/run.sh BUILD [parse SECONDS] [check SECONDS]: builds the fuzzers in BUILD/fuzz with clang, and
# runs each for so long over the goldens, prelude, stdlib and examples (default: ten minutes each). Only
# parser/ and types/ are instrumented for coverage. What grew stays in BUILD/fuzz/corpus-*; a finding
# is left as BUILD/fuzz/{parse,check}-crash-… and makes the status 1. The last lines are runs a second
# and the lines and functions reached in parser/ and types/.
set -e
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- parse 600 check 600
out=$build/fuzz
CLANG=${CLANG:-clang}
mkdir -p "$out/obj"
cd "$src"

# One object a source, rebuilt when any header or itself is newer.
newest=$(find . -name '*.h' -o -name '*.def' | xargs ls -t | head -1)
compile() { # FLAGS FILE
    o=$out/obj/$(echo "$2" | sed "s|^$build/||" | tr / -).o
    if [ ! -f "$o" ] || [ "$2" -nt "$o" ] || [ "$newest" -nt "$o" ]; then
        # shellcheck disable=SC2086
        $CLANG -g -O2 -fno-strict-aliasing -fno-math-errno -ffp-contract=off -w $1 \
            -DHAVE_CONFIG_H -D_GNU_SOURCE -I. -I"$build" -DRLY_PKGDATADIR='""' -DRLY_PKGLIBDIR='""' \
            -c "$2" -o "$o"
    fi
    objects="$objects $o"
}
plain=-fsanitize=address,undefined
seen="$plain -fsanitize-coverage=inline-8bit-counters,pc-table"
[ -z "$COVERAGE" ] || seen="$plain -fprofile-instr-generate -fcoverage-mapping"
[ -z "$COVERAGE" ] || out=$out/cov
mkdir -p "$out/obj"
objects=
for f in base/*.c parser/*.c tensor/*.c types/*.c ops/*.c passes/*.c eval/*.c repl/*.c jit/cache.c jit/cpu.c jit/[l-t]*.c; do
    case $f in
    repl/main.c | jit/llvm.c) ;;
    parser/* | types/*) compile "$seen" "$f" ;;
    *) compile "$plain" "$f" ;;
    esac
done
compile "$plain" "$build/prelude/texts.c"
common=$objects

# The corpus: small files whole, long ones by paragraph; as a file and as an entry at the prompt.
python3 - "$out/seeds" $(find tests/golden prelude stdlib examples docs tests/repl -name '*.rly' -o -name '*.md' -o -name '*.repl') <<'PY'
import hashlib, os, re, sys
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
for path in sys.argv[2:]:
    with open(path, "rb") as f:
        text = f.read()
    if path.endswith(".md"):
        parts = re.findall(rb"```relay\n(.*?)```", text, re.S) or re.findall(rb"```\w*\n(.*?)```", text, re.S)
    elif path.endswith(".repl"):
        parts = [b"\n".join(re.findall(rb"^relay> (.*)$", text, re.M))]
    else:
        parts = [re.sub(rb"\s*// (expect|check|flags|engine).*", b"", text)]
    small = []
    for part in parts:
        small += [part] if len(part) <= 800 else re.split(rb"\n\s*\n", part)
    for part in small:
        for mode in (b"0", b"1", b"2"):
            if part.strip() and len(part) < 2000:
                data = mode + part
                with open(os.path.join(folder, hashlib.sha1(data).hexdigest()), "wb") as f:
                    f.write(data)
PY

libs="-lgc -lffi -lz -ldl -lm -lpthread $(sed -n 's/^\(LIBEDIT\|UTF8PROC\|JANSSON\|PNG\)_LIBS = //p' "$build/Makefile" | tr '\n' ' ')"
status=0
while [ $# -gt 1 ]; do
    name=$1 seconds=$2
    shift 2
    objects=
    compile "$seen" "tests/fuzz/fuzz_$name.c"
    # shellcheck disable=SC2086
    $CLANG -fsanitize=fuzzer,address,undefined ${COVERAGE:+-fprofile-instr-generate} -o "$out/fuzz_$name" \
        $objects $common $libs
    mkdir -p "$out/corpus-$name"
    cd "$out"
    ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1:replace_str=0:replace_intrin=0 \
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        "./fuzz_$name" -dict="$src/tests/fuzz/relay.dict" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=6000 -max_len=1500 -entropic=0 -print_funcs=0 -print_final_stats=1 -artifact_prefix="$name-" $FUZZFLAGS \
        "corpus-$name" seeds >"$name.log" 2>&1 || status=1
    cd "$src"
    grep -E 'cov:' "$out/$name.log" | tail -1
    grep -E 'SUMMARY|stat::(number_of_exec|average_exec|slowest|peak)' "$out/$name.log" || :
done
exit $status
