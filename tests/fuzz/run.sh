#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/run.sh BUILD [parse SECONDS] [check SECONDS]: builds the fuzzers in BUILD/fuzz with clang, and
# runs each for so long over the goldens, prelude, stdlib and examples (default: ten minutes each). Only
# parser/ and types/ are instrumented for coverage. What grew stays in BUILD/fuzz/corpus-*; a finding
# is left as BUILD/fuzz/{parse,check}-crash-… and makes the status 1. Told are the runs a second of the
# clock and of processor time.
#
# SANITIZE= builds without sanitizers (in BUILD/fuzz-plain). COVERAGE=1 runs nothing new: the corpus that
# has grown is replayed in a build that counts lines (in BUILD/fuzz-cov), and of parser/ and types/ the lines
# and functions reached are told.
set -e
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- parse 600 check 600
corpus=$build/fuzz
SANITIZE=${SANITIZE--fsanitize=address,undefined}
out=$build/fuzz
[ -n "$SANITIZE" ] || out=$build/fuzz-plain
[ -z "$COVERAGE" ] || out=$build/fuzz-cov SANITIZE=
ulimit -s 1048576 2>/dev/null || ulimit -s "$(ulimit -H -s)"
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
plain=$SANITIZE
seen="$plain -fsanitize-coverage=inline-8bit-counters,pc-table"
[ -z "$COVERAGE" ] || seen="-fprofile-instr-generate -fcoverage-mapping"
objects=
for f in $(find base parser tensor types ops passes eval interchange repl jit -name '*.c'); do
    case $f in
    repl/main.c | jit/emit_* | jit/llvm.c) ;;
    parser/* | types/*) compile "$seen" "$f" ;;
    *) compile "$plain" "$f" ;;
    esac
done
compile "$plain" "$build/prelude/texts.c"
common=$objects

# The corpus: small files whole, long ones by paragraph; as a file and as an entry at the prompt.
python3 - "$corpus/seeds" $(find tests/golden prelude stdlib examples docs tests/repl -name '*.rly' -o -name '*.md' -o -name '*.repl') <<'PY'
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
    $CLANG -fsanitize=fuzzer $SANITIZE ${COVERAGE:+-fprofile-instr-generate} -o "$out/fuzz_$name" \
        $objects $common $libs
    mkdir -p "$corpus/corpus-$name"
    cd "$corpus"
    if [ -n "$COVERAGE" ]; then
        LLVM_PROFILE_FILE=$out/$name.profraw "$out/fuzz_$name" -runs=0 -max_len=100000 "corpus-$name" \
            "$build/fuzz/seeds" >"$out/$name.log" 2>&1 || status=1
        cd "$src"
        continue
    fi
    # The collector starts with room, so that it rarely runs: what a run leaves is small.
    ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1:replace_str=0:replace_intrin=0 \
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 GC_INITIAL_HEAP_SIZE=256m GC_FREE_SPACE_DIVISOR=1 \
        python3 -c '
import resource, subprocess, sys, time
begun = time.monotonic()
status = subprocess.call(sys.argv[1:])
r = resource.getrusage(resource.RUSAGE_CHILDREN)
print("seconds: %.1f, of processor time %.1f" % (time.monotonic() - begun, r.ru_utime + r.ru_stime))
sys.exit(status != 0)' "$out/fuzz_$name" -dict="$src/tests/fuzz/relay.dict" -max_total_time="$seconds" -timeout=30 \
        -rss_limit_mb=6000 -max_len=1500 -entropic=0 -print_funcs=0 -print_final_stats=1 -artifact_prefix="$name-" \
        $FUZZFLAGS "corpus-$name" seeds >"$out/$name.log" 2>&1 || status=1
    cd "$src"
    grep -E 'cov:' "$out/$name.log" | tail -1
    grep -E 'SUMMARY|^seconds|stat::(number_of_exec|average_exec|slowest|peak)' "$out/$name.log" || :
    awk '/stat::number_of_executed_units/ { n = $2 } /^seconds/ { s = $NF }
        END { if (s) printf "runs a second of processor time: %d\n", n / s }' "$out/$name.log"
done
if [ -n "$COVERAGE" ]; then
    suffix=$($CLANG --version | sed -n 's/.*version \([0-9]*\).*/-\1/p;q')
    for tool in llvm-profdata llvm-cov; do
        command -v $tool >/dev/null || eval "$(echo $tool | tr - _)=$tool$suffix"
    done
    "${llvm_profdata:-llvm-profdata}" merge -o "$out/all.profdata" "$out"/*.profraw
    "${llvm_cov:-llvm-cov}" report "$out/fuzz_check" -object "$out/fuzz_parse" -instr-profile="$out/all.profdata" \
        parser types
fi
exit $status
