#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged and foreign data, an unusable or damaged kernel cache, libraries that are not there.

Data files are cut off at every byte of their headers and changed in every byte: what is read is
refused with a diagnostic or is a value, never a signal. A cache costs time when it is bad, nothing else.

    bad_data.py RELAY [--share=F] [--seed=N] [--only=PARTS] [--times]
"""
import gzip
import io
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import threading
import zipfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _bad import PATIENCE, SLOW, limit_of, run_parts
from process import catches, is_waiting, wait_until


def npy(descr="'<f4'", shape="(3,)", order="False", data=bytes(12), version=1, pad=True, extra=""):
    header = "{'descr': %s, 'fortran_order': %s, 'shape': %s, %s}" % (descr, order, shape, extra)
    head = 10 if version == 1 else 12
    if pad:
        header += " " * (-(len(header) + head + 1) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header.encode() + data


def npz(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members:
            z.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def idx(kind=8, sizes=(2, 3), data=bytes(6), magic=b"\0\0"):
    return magic + bytes([kind, len(sizes)]) + b"".join(struct.pack(">I", n) for n in sizes) + data


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(3,), at=(0, 12)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(at)}


def params(*arrays, names=None, count=None, magic=0xF7E58D4F05049CB7):
    """TVM's file of parameters: arrays as array() makes them, named "0", "1" and so on."""
    names = [b"%d" % i for i in range(len(arrays))] if names is None else names
    return (struct.pack("<QQQ", magic, 0, len(names)) + b"".join(struct.pack("<Q", len(n)) + n for n in names)
            + struct.pack("<Q", len(arrays) if count is None else count) + b"".join(arrays))


def array(shape=(3,), data=bytes(12), element=(2, 32, 1), device=1, rank=None, size=None, magic=0xDD5E40F096B4A13F):
    return (struct.pack("<QQiiiBBH", magic, 0, device, 0, len(shape) if rank is None else rank, *element)
            + struct.pack("<%dq" % len(shape), *shape) + struct.pack("<q", len(data) if size is None else size) + data)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=2, height=2, depth=8, colour=2, rows=None, extra=b"", end=True):
    rows = b"".join(b"\0" + bytes(range(6)) for _ in range(2)) if rows is None else rows
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)) + extra
            + chunk(b"IDAT", zlib.compress(rows)) + (chunk(b"IEND", b"") if end else b""))


def load(kind, path):
    """A program that loads a file as a value of a type."""
    return "let x: %s = load(\"%s\"); print(\"loaded\");" % (kind, path)


VECTOR, MATRIX = "Tensor[(?,), float32]", "Tensor[(?, ?), float32]"
BYTES = "Tensor[(?, ?), uint8]"
IMAGE = "Tensor[(?, ?, ?), uint8]"
PAIR = "(Tensor[(?,), float32], Tensor[(?,), float32])"


def keeps(s, name, data, program):
    """A write that fails half way leaves the file that was there, and nothing beside it."""
    folder = s.path("keeps " + name)
    os.makedirs(folder)
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, 0o640)

    def job():
        for limit, status in ((5000, 1), (resource.RLIM_INFINITY, 0)):
            r = s.run(["-e", program % path], before=limit_of(resource.RLIMIT_FSIZE, limit))
            with open(path, "rb") as f:
                same = f.read() == data
            why = None
            if r.status != status or same != (status == 1):
                why = "status %s, the file is %s" % (r.status, "as it was" if same else "another")
            elif os.listdir(folder) != [name] or os.stat(path).st_mode & 0o777 != 0o640:
                why = "beside it: %s; its mode is %o" % (os.listdir(folder), os.stat(path).st_mode)
            s.check("save over %s, limit %d" % (name, limit), why, r)
    s.later(job)


def refusals(s):
    big = 1 << 62
    files = {
        "a.npy": (VECTOR, {
            "empty": b"", "magic alone": b"\x93NUMPY", "version 0": npy(version=1).replace(b"\x01\0", b"\0\0", 1),
            "version 9": npy().replace(b"NUMPY\x01", b"NUMPY\x09", 1), "short": npy(data=bytes(11)),
            "complex": npy("'<c8'"), "objects": npy("'|O'"), "text": npy("'<U8'"), "dates": npy("'<M8[s]'"),
            "float128": npy("'<f16'"), "record": npy("[('a', '<f4')]"), "no descr": npy("''"),
            "ints": npy("'<i4'"), "doubles": npy("'<f8'", data=bytes(24)), "rank 2": npy(shape="(1, 3)"), "rank 0": npy(shape="()", data=bytes(4)),
            "negative": npy(shape="(-3,)"), "huge": npy(shape="(%d,)" % big), "too many digits": npy(shape="(%s,)" % ("9" * 100)),
            "product overflows": npy(shape="(4294967296, 4294967296)"), "many axes": npy(shape="(" + "1, " * 100 + ")"),
            "huge but one is 0": npy(shape="(0, %d)" % big), "fraction": npy(shape="(1.5,)"), "no shape": npy(shape="None"),
            "open shape": npy(shape="(3,"), "open dictionary": npy().replace(b"}", b" "), "unknown key": npy(extra="'x': 1,"),
            "order": npy(order="Maybe"), "header too long": b"\x93NUMPY\x01\0\xff\xff{'descr': '<f4'", "control": npy("'\x1b[31m'"),
            "version 2 too long": b"\x93NUMPY\x02\0\xff\xff\xff\xff{", "python": npy("__import__('os')"),
            "huge fortran": npy(shape="(0, %d, 4)" % big, order="True"),
        }),
        "a.npz": (PAIR, {
            "empty": b"PK\x05\x06" + bytes(18), "no directory": b"PK\x03\x04" + bytes(50), "other names": npz([("a.npy", npy())]),
            "no npy": npz([("0.npy", b"text"), ("1.npy", b"text")]), "one missing": npz([("0.npy", npy())]),
            "wrong dtype": npz([("0.npy", npy("'<i4'")), ("1.npy", npy())]), "wrong rank": npz([("0.npy", npy(shape="(3, 1)")), ("1.npy", npy())]),
            "cut member": npz([("0.npy", npy(data=b"")), ("1.npy", npy())]), "bzip2": npz([("0.npy", npy()), ("1.npy", npy())], zipfile.ZIP_BZIP2),
            "directory far away": npz([("0.npy", npy())])[:-8] + b"\xff\xff\xff\xff\0\0", "lying entries": b"PK\x05\x06" + b"\0\0\0\0\xff\xff\xff\xff" + bytes(10),
        }),
        "a.safetensors": (VECTOR, {
            "empty header": safetensors(b"{"), "no JSON": safetensors(b"{x}"), "cut off": safetensors({"a": entry()}, bytes(11)),
            "longer": safetensors({"a": entry()}, bytes(13)), "two": safetensors({"a": entry(), "b": entry(at=(12, 24))}, bytes(24)),
            "overlap": safetensors({"a": entry(), "b": entry(at=(6, 18))}, bytes(18)), "hole": safetensors({"a": entry(at=(4, 16))}, bytes(16)),
            "same name": safetensors(b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'),
            "huge": safetensors({"a": entry(shape=(big, big))}, bytes(12)), "negative": safetensors({"a": entry(shape=(-3,))}, bytes(12)),
            "fraction": safetensors({"a": entry(shape=(1.5,))}, bytes(12)), "many axes": safetensors({"a": entry(shape=(1,) * 100, at=(0, 4))}, bytes(4)),
            "backwards": safetensors({"a": entry(at=(12, 0))}, bytes(12)), "far": safetensors({"a": entry(at=(0, 1 << 62))}, bytes(12)),
            "other size": safetensors({"a": entry(at=(0, 8))}, bytes(8)), "no dtype": safetensors({"a": {}}), "F8": safetensors({"a": entry("F8_E4M3", at=(0, 3))}, bytes(3)),
            "a number": safetensors({"a": 3}), "a list": safetensors(b"{[]"), "metadata alone": safetensors({"__metadata__": {"a": "b"}}),
            "nested": safetensors(b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}"), "bad utf-8": safetensors(b'{"\xff": 1}'),
            "long header": safetensors(b"{" + b" " * 50, length=55), "doubles": safetensors({"a": entry("F64", at=(0, 24))}, bytes(24)),
            "nul": safetensors(b'{"\\u0000": 1}'), "rank 2": safetensors({"a": entry(shape=(1, 3))}, bytes(12)),
        }),
        "a.params": (PAIR, {
            "magic alone": params()[:8], "no names": params()[:16], "none": params(), "one": params(array()), "cut off": params(array(), array())[:-1],
            "longer": params(array(), array()) + b"x", "many names": params()[:16] + b"\xff" * 8, "long name": params()[:16] + struct.pack("<QQ", 1, 1 << 63),
            "same name": params(array(), array(), names=[b"0", b"0"]), "bad utf-8": params(array(), array(), names=[b"0", b"\xff"]),
            "nul": params(array(), array(), names=[b"0", b"1\0"]), "count": params(array(), array(), count=3), "array's magic": params(array(), array(magic=1)),
            "device": params(array(), array(device=2)), "kind": params(array(), array(element=(3, 64, 1))), "lanes": params(array(), array(element=(2, 32, 4))),
            "bits": params(array(), array(element=(2, 8, 1))), "rank": params(array(), array(rank=-1)), "many axes": params(array(), array((1,) * 100)),
            "negative": params(array(), array((-3,))), "huge": params(array(), array((big, big))), "size": params(array(), array(size=8)),
            "size far": params(array(), array((1 << 40,), size=4 << 40)), "dtype": params(array(), array(element=(0, 32, 1))),
        }),
        "a.png": (IMAGE, {
            "signature": png()[:8], "no size": png(width=0, height=0), "huge": png(width=(1 << 31) - 1, height=(1 << 31) - 1),
            "depth": png(depth=3), "colour": png(colour=5), "no palette": png(colour=3),
            "few rows": png(rows=b"\0" + bytes(6)), "filter": png(rows=b"\x09" + bytes(6) + b"\0" + bytes(6)),
            "crc": png()[:20] + b"\xff" + png()[21:], "cut off": png()[:-30], "critical chunk": png(extra=chunk(b"ABCD", b"x")),
            "16 bits": png(depth=16, rows=bytes(26)), "stream": png().replace(b"IDAT\x78", b"IDAT\x00"),
        }),
        "a.idx": (BYTES, {
            "short": idx(data=bytes(5)), "huge": idx(sizes=(0xffffffff, 0xffffffff), data=b""), "other dtype": idx(13, data=bytes(24)),
            "rank 1": idx(sizes=(6,)), "rank 200": b"\0\0\x08\xc8" + bytes(900), "unknown kind": idx(0x0a), "no sizes": b"\0\0\x08\x02\0\0\0\2",
        }),
        "a.csv": (MATRIX, {
            "words": b"a,b\nc,d\n", "ragged": b"1,2\n3\n", "longer": b"1,2\n3,4,5\n", "word in a column": b"1,2\n3,x\n",
            "unit": b"1,2\n3,4kg\n", "open quote": b"1,2\n3,\"4\n", "nul": b"1,2\n3,4\0\n", "binary": bytes(range(256)),
            "separator": b"1;2\n3;4\n", "utf-16": "1,2\n3,4\n".encode("utf-16"), "bad utf-8": b"1,2\n3,\xff\n", "long cell": b"1,2\n3," + b"x" * 1000000,
            "escape": b"1,2\n3,\x1b[31m\n", "many rows": b"1,2\n" * 100000 + b"3", "long row": b"1," * 1000000 + b"1\n2",
        }),
        "a.gz": (VECTOR, {
            "empty": b"\x1f\x8b", "header alone": gzip.compress(npy())[:10], "cut off": gzip.compress(npy())[:-9],
            "no checksum": gzip.compress(npy())[:-8], "wrong checksum": gzip.compress(npy())[:-8] + bytes(8),
            "wrong size": gzip.compress(npy())[:-4] + b"\xff\xff\xff\x7f", "method": b"\x1f\x8b\x09" + bytes(30), "of nothing": gzip.compress(b""),
            "of gzip": gzip.compress(gzip.compress(npy())), "two, second bad": gzip.compress(npy()[:50]) + b"\x1f\x8b\x08\0garbage",
        }),
    }
    for path, (kind, cases) in files.items():
        for name, data in cases.items():
            at = s.write("%s %s" % (name, path), data)
            s.rejects("load: %s, %s" % (path, name), ["-e", load(kind, at)], "R0501|R0502|R0503|R0504|R0604|R0613|R0301|R0314")
    bomb = s.write("bomb.gz", gzip.compress(bytes(400_000_000 if SLOW == 1 else 80_000_000), 9))
    s.rejects("load: a small file of much", ["--memory=50M", "-e", load(VECTOR, bomb)], "R0606")
    s.rejects("load: a small image of much", ["-e", load(IMAGE, s.write("large.png", png(width=900000, height=900000)))], "R0606")
    zeros = npy(shape="(50000000,)", data=bytes(200_000_000))
    s.rejects("load: a small archive of much", ["--memory=50M", "-e",
              load(PAIR, s.write("bomb.npz", npz([("0.npy", zeros), ("1.npy", zeros)], zipfile.ZIP_DEFLATED)))], "R0606")
    for name, code in (("missing.npy", "R0501"), (s.dir, "R0501"), ("/dev/zero", "R0501"), ("/proc/self/mem", "R0501"), ("", "R0501"),
                       ("x" * 5000, "R0501"), ("a\\0b", None), ("\\x1b", None)):
        s.rejects("load: " + name[:30], ["-e", load(VECTOR, name)], code)
        s.rejects("bytes: " + name[:30], ["-e", "import data; data.bytes(\"%s\")" % name])
        s.rejects("read_text: " + name[:30], ["--memory=100M", "-e", "read_text(\"%s\")" % name]) if name[:1] not in "a\\" else None
    s.rejects("load of a function", ["-e", load("fn (int32) -> int32", "a.npy")])
    s.rejects("load of nobody knows what", ["-e", "load(\"a.npy\")"])
    for to in ("/", "/nowhere/x.npy", "/proc/x.npy", "", "folder.npy"):
        os.makedirs(s.path("folder.npy"), exist_ok=True)
        s.rejects("save: " + to, ["-e", 'save([1.0, 2.0], "%s")' % to], "R0505")
        s.rejects("save of data: " + to, ["-e", 'save(([1.0], [2.0]), "%s")' % to], "R0505")
    for end, value in (("npy", "ones(shape=[10000])"), ("csv", "ones(shape=[10000])"), ("npz", "(ones(shape=[10000]), 1)"),
                       ("safetensors", "(ones(shape=[10000]), 1)"), ("params", "(ones(shape=[10000]), 1)"), ("png", "zeros(shape=[3000, 3000, 3], dtype=uint8)")):
        os.symlink("/dev/full", s.path("full." + end))
        s.rejects("save: full, " + end, ["-e", 'save(%s, "full.%s")' % (value, end)], "R0505")
        s.rejects("save of a String as " + end, ["-e", 'save("text", "x.%s")' % end], "R0505")
    s.rejects("save: text, full", ["-e", 'write_text(str.pad("a", 100000), "/dev/full")'], "R0505")
    s.rejects("save: too long for the limit", ["-e", 'save(ones(shape=[100000]), "limited.npy")'], "R0505",
              before=limit_of(resource.RLIMIT_FSIZE, 5000))
    keeps(s, "kept.npy", npy(shape="(2,)", data=bytes(8)), 'save(ones(shape=[100000]), "%s")')
    keeps(s, "kept.npz", npz([("0.npy", npy(shape="(2,)", data=bytes(8)))]), 'save((ones(shape=[100000]), 1), "%s")')
    keeps(s, "kept.safetensors", b"kept", 'save((ones(shape=[100000]), 1), "%s")')
    keeps(s, "kept.params", b"kept", 'save((ones(shape=[100000]), 1), "%s")')
    keeps(s, "kept.png", png(), 'let keys = random.threefry_key(3u64); '
          'save((uint8) (255.0 * random.uniform(keys, out_shape=[300, 300]).1), "%s")')
    keeps(s, "kept.csv", b"1,2\n", 'save(ones(shape=[100000]), "%s")')
    keeps(s, "kept.txt", b"kept", 'write_text(str.pad("a", 100000), "%s")')
    s.rejects("save of a function", ["-e", 'save(fn (x) { x }, "x.npy")'])


def acceptances(s):
    for name, kind, data in (
            ("fortran.npy", MATRIX, npy(shape="(2, 3)", order="True", data=bytes(24))), ("big.npy", VECTOR, npy("'>f4'")),
            ("two.npy", VECTOR, npy(version=2)), ("three.npy", VECTOR, npy(version=3)), ("none.npy", VECTOR, npy(shape="(0,)", data=b"")),
            ("double quotes.npy", VECTOR, npy('"<f4"')), ("unpadded.npy", VECTOR, npy(pad=False)), ("longer.npy", VECTOR, npy(data=bytes(99))),
            ("packed.npy.gz", VECTOR, gzip.compress(npy())), ("members.gz", VECTOR, gzip.compress(npy()[:30]) + gzip.compress(npy()[30:])),
            ("pair.npz", PAIR, npz([("0.npy", npy()), ("1.npy", npy())])), ("i.idx", BYTES, idx()),
            ("one.safetensors", VECTOR, safetensors({"a": entry(), "__metadata__": {"by": "a test"}}, bytes(12))),
            ("pair.safetensors", PAIR, safetensors({"1": entry(at=(12, 24)), "0": entry()}, bytes(24))),
            ("padded.safetensors", VECTOR, safetensors(json.dumps({"a": entry()}).encode() + b"    ", bytes(12))),
            ("pair.params", PAIR, params(array(), array())), ("other order.params", PAIR, params(array(), array(), names=[b"1", b"0"])),
            ("rgb.png", IMAGE, png()), ("grey.png", IMAGE, png(colour=0, rows=bytes(6))), ("bits.png", IMAGE, png(depth=1, colour=0, rows=bytes(4))),
            ("palette.png", IMAGE, png(colour=3, rows=bytes(6), extra=chunk(b"PLTE", bytes(6)))),
            ("rows.idx", BYTES, idx(sizes=(0xff000002, 0), data=b"")), ("m.csv", MATRIX, b"x,y\n1,2\n3,4"),
            ("deflated.npz", PAIR, npz([("0.npy", npy()), ("1.npy", npy())], zipfile.ZIP_DEFLATED)),
            ("crlf.csv", MATRIX, b"1,2\r\n3,4\r\n"), ("bom.csv", MATRIX, b"\xef\xbb\xbf1,2\n3,4\n"), ("blank.csv", MATRIX, b"1,2\n\n3,4\n\n")):
        s.accepts("load: " + name, ["-e", load(kind, s.write(name, data))])
    for name in ("rows.npz", "rows.safetensors"):
        s.accepts("stacked data in " + name, [s.write(name + ".rly", STACKED.replace("FILE", name))], "True : bool\n")


NET = """type Layer { Layer { w: Tensor[(2, 3), float32], b: Tensor[(3,), float16] } }
type Net { Net { layers: List[Layer], scale: bfloat16, none: Tensor[(0, 4), uint8], rest: (Tensor[(2,), bool], int8, uint16, int64, float64) } }
let w = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
let b: Tensor[(3,), float16] = [0.5, 1.5, -2.5];
let net = Net {
  layers: list[Layer { w: w, b: b }, Layer { w: -w, b: b }], scale: 1.5bf16, none: zeros(shape=[0, 4], dtype=uint8),
  rest: ([True, False], -1i8, 2u16, -4i64, 0.5f64)
};
save(net, "net.params");
let again: Net = load("net.params");
again == net
"""


STACKED = '''type P { P { x: float32, y: Tensor[(2,), float32] } }
let ps = build(3, fn (i) { P { x: (float32) i, y: [1.0, 2.0] } });
save(ps, "FILE");
let again: Rows[3, P] = load("FILE");
again == ps
'''
CHANGED = '''def get() { load("h.npy") }
def use() { sum(get() @@ ones(shape=[3, 2])) }
let kept = load("h.npy")
%s
use()
kept
save(kept, "h" ++ ".npy")
use()
'''


def changed_headers(s):
    """A file that is another one when it is read than when its header was: a diagnostic, and nothing is lost."""
    since = "when the program was checked"
    for name, change, code, words in (
            ("size", 'save(ones(shape=[2, 4]), "h" ++ ".npy")', "R0504", "axis 1 is 4, wanted is 3, as it had " + since),
            ("rows", 'save(ones(shape=[5, 3]), "h" ++ ".npy")', "R0504", "axis 0 is 5, wanted is 2, as it had " + since),
            ("rank", 'save(ones(shape=[6]), "h" ++ ".npy")', "R0504", "it has 1 axis, wanted are 2, as it had " + since),
            ("scalar", 'save(1.0, "h" ++ ".npy")', "R0504", "it has 0 axes, wanted are 2, as it had " + since),
            ("dtype", 'save(ones(shape=[2, 3], dtype=float64), "h" ++ ".npy")', "R0504", "it is of float64, wanted is float32, as it had " + since),
            ("no elements", 'save(zeros(shape=[0, 3]), "h" ++ ".npy")', "R0504", "axis 0 is 0, wanted is 2, as it had " + since),
            ("text", 'write_text("1,2", "h" ++ ".npy")', "R0504", "axis 0 is 1, wanted is 2, as it had " + since),
            ("empty", 'write_text("", "h" ++ ".npy")', "R0502", "it is empty"),
            ("damaged", 'write_text("\\x93NUMPY", "h" ++ ".npy")', "R0502", "h.npy")):
        folder = s.path("changed " + name)
        os.makedirs(folder)
        with open(os.path.join(folder, "h.npy"), "wb") as f:
            f.write(npy(shape="(2, 3)", data=struct.pack("<6f", 1, 1, 1, 1, 1, 1)))

        def job(folder=folder, name=name, change=change, code=code, words=words):
            path = os.path.join(folder, "file.rly")
            with open(path, "w", encoding="utf-8") as f:
                f.write(CHANGED % change)
            shown, status = at_prompt(s, CHANGED % change, folder)
            why = None
            if status or shown.count("12.0 : float32") != 1 or "[1.0, 1.0, 1.0]] : Tensor[(2, 3), float32]" not in shown:
                why = "what was defined is lost"
            elif code not in shown or words not in shown:
                why = "no %s that says: %s" % (code, words)
            s.check("the header changes at the prompt: " + name, why and why + "\n" + shown)
            r = s.run([path], cwd=folder)
            s.check("the header changes in a file: " + name, None if r.status == 1 and code in r.codes() else "status %s" % r.status, r)
        s.later(job)


def kept_as_tvm(s):
    """`save` writes the very bytes of TVM's format, and `load` reads them."""
    s.accepts("save: net.params", [s.write("net.rly", NET)], "True : bool\n")
    s.drain()
    w, b = struct.pack("<6f", *range(1, 7)), ((3,), struct.pack("<3e", 0.5, 1.5, -2.5), (2, 16, 1))
    wanted = params(array((2, 3), w), array(*b), array((2, 3), struct.pack("<6f", *range(-1, -7, -1))), array(*b),
                    array((), b"\xc0\x3f", (4, 16, 1)), array((0, 4), b"", (1, 8, 1)), array((2,), b"\1\0", (1, 1, 1)),
                    array((), b"\xff", (0, 8, 1)), array((), b"\2\0", (1, 16, 1)), array((), struct.pack("<q", -4), (0, 64, 1)),
                    array((), struct.pack("<d", 0.5), (2, 64, 1)),
                    names=b"layers.0.w layers.0.b layers.1.w layers.1.b scale none rest.0 rest.1 rest.2 rest.3 rest.4".split())
    with open(s.path("net.params"), "rb") as f:
        s.check("save: the bytes of net.params", None if f.read() == wanted else "they differ from TVM's")


def damaged(s):
    """Every prefix of a file and every byte changed, many loads in one run: each result is a value or
    a diagnostic, and the next one is read all the same."""
    rng = random.Random(2)
    seeds = {"npy": (VECTOR, npy()), "fortran": (MATRIX, npy(shape="(2, 3)", order="True", data=bytes(range(24)))),
             "npz": (PAIR, npz([("0.npy", npy()), ("1.npy", npy())])), "idx": (BYTES, idx()),
             "deflated": (PAIR, npz([("0.npy", npy()), ("1.npy", npy())], zipfile.ZIP_DEFLATED)),
             "safetensors": (PAIR, safetensors({"1": entry(at=(12, 24)), "0": entry()}, bytes(24))), "png": (IMAGE, png()),
             "params": (PAIR, params(array(), array())),
             "csv": (MATRIX, b'a,"b"\n1,-2.5e3\n"3",nan\n'), "gz": (VECTOR, gzip.compress(npy()))}

    def job(name, kind, data):
        def run():
            variants = [data[:i] for i in range(len(data))]
            for i in range(len(data)):
                for value in {0, 255, data[i] ^ 1, data[i] ^ 128, rng.randrange(256)}:
                    variants.append(data[:i] + bytes([value]) + data[i + 1:])
            for _ in range(100):
                i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
                variants.append(data[:i] + data[j:])
                variants.append(data[:j] + data[i:])
            variants = rng.sample(variants, min(400 if SLOW == 1 else 50, len(variants)))
            folder = s.path("damaged " + name)
            os.mkdir(folder)
            for i, v in enumerate(variants):
                with open(os.path.join(folder, "%d.%s" % (i, name)), "wb") as f:
                    f.write(v)
            # A failed item ends a script, and not the prompt.
            entries = "\n".join("let x%d: %s = load(\"%d.%s\");" % (i, kind, i, name) for i in range(len(variants)))
            out, status = at_prompt(s, entries + "\n1000000 + 337\n", folder)
            why = None
            if status != 0:
                why = "status %s" % status
            elif "1000337 : int32" not in out:
                why = "the session did not go on"
            elif "BUG" in out or "bug in Relay" in out:
                why = "a bug"
            elif out.count("error[") < len(variants) // 10:
                why = "only %d of %d refused" % (out.count("error["), len(variants))
            s.check("damaged %s, %d variants" % (name, len(variants)), why and why + out[-500:])
        return run
    for name, (kind, data) in seeds.items():
        s.later(job(name, kind, data))


def at_prompt(s, text, cwd):
    """What the prompt shows for lines typed at a pseudo-terminal without an editor, and its status."""
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.environ["TERM"] = "dumb"
        os.execv(s.relay, [s.relay, "--diagnostics=short"])
    out, lines = [], text.encode().split(b"\n")

    def read():
        try:
            while True:
                data = os.read(fd, 1 << 16)
                if not data:
                    return
                out.append(data)
        except OSError:
            pass
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for line in lines:
            os.write(fd, line + b"\n")
        os.write(fd, b"\004")
    except OSError:
        pass
    reader.join(PATIENCE)
    if reader.is_alive():
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    reader.join()
    os.close(fd)
    return b"".join(out).decode("utf-8", "replace"), status


def fifos(s):
    """Ctrl-C while a file that is a FIFO is waited for."""
    os.mkfifo(s.path("fifo"))
    for name, args in (("run", ["run", "fifo"]), ("check", ["check", "fifo"]), ("read_text", ["-e", 'read_text("fifo")']),
                       ("standard input", ["-"])):
        def job(name=name, args=args):
            read, write = os.pipe()
            p = s.start(args, stdin=read, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            waits = wait_until(lambda: catches(p.pid, signal.SIGINT) and is_waiting(p.pid), PATIENCE)
            p.send_signal(signal.SIGINT)
            r = s.finish_run(p)
            os.close(read)
            os.close(write)
            s.check("Ctrl-C: %s of a FIFO" % name, None if waits and r.status == 1 and "interrupted" in r.err else
                    "it never waited" if not waits else "another end", r)
        s.later(job)
    for what in (load(VECTOR, "fifo"), 'import data; data.csv("fifo")'):
        s.rejects("no plain file: " + what, ["-e", what], "R0501")


KERNEL = "print(sum(tanh(ones(shape=[300, 300]) * 0.5)));"


def cached(s, name):
    """A fresh cache folder, and the files a run puts there."""
    home = s.path("cache " + name)
    os.mkdir(home)
    r = s.run(["-e", KERNEL], env={"XDG_CACHE_HOME": home})
    folder = os.path.join(home, "relay")
    return home, folder, sorted(n for n in os.listdir(folder) if n.endswith(".o")) if os.path.isdir(folder) else [], r


def caches(s):
    home, folder, names, first = cached(s, "whole")
    if not names:
        s.skip("no kernels are compiled")
        return
    want = first.out

    def same(name, home, before=None):
        r = s.run(["-e", KERNEL], env={"XDG_CACHE_HOME": home}, before=before)
        s.check("cache: " + name, None if r.status == 0 and r.out == want and not r.err else "another result", r)
    same("whole", home)
    # Damage of each kind, in every entry: header, key, object. The secret by which entries are known to be
    # ours goes with them, or is damaged itself.
    rng = random.Random(1)
    whole = {n: open(os.path.join(folder, n), "rb").read() for n in names}
    with open(os.path.join(folder, "secret"), "rb") as f:
        secret = f.read()

    def copied(name, change, secret=secret, mode=0o600):
        at = s.path("cache " + name)
        os.makedirs(os.path.join(at, "relay"), mode=0o700)
        for n, data in [(n, change(data)) for n, data in whole.items()] + [("secret", secret)]:
            with open(os.path.join(at, "relay", n), "wb") as f:
                f.write(data)
        os.chmod(os.path.join(at, "relay", "secret"), mode)
        return at, lambda: {n: open(os.path.join(at, "relay", n), "rb").read() for n in names}

    def damage(name, change):
        def job():
            at, read = copied(name, change)
            same(name, at)
            s.check("cache mended: " + name, None if read() == whole else "the files are not as they were")
        s.later(job)

    def distrust(name, *how):
        """Entries that are whole are not known to be ours without the secret, and are made again."""
        def job():
            at, read = copied(name, lambda d: d, *how)
            same(name, at)
            found = read()
            s.check("cache made again: " + name, None if all(found[n] != whole[n] for n in names) else
                    "an entry is as it was")
        s.later(job)
    distrust("another secret", bytes(16))
    distrust("a short secret", secret[:-1])
    distrust("no secret", b"")
    distrust("a secret that others can read", secret, 0o644)

    def flip(data, i):
        return data[:i] + bytes([data[i] ^ (1 << rng.randrange(8))]) + data[i + 1:]
    for i in range(0, 32, 1 if SLOW == 1 else 8):
        damage("header byte %d" % i, lambda d, i=i: flip(d, i))
    for part in range(8):
        damage("byte flipped in part %d" % part, lambda d, p=part: flip(d, 32 + rng.randrange(p * (len(d) - 32) // 8, (p + 1) * (len(d) - 32) // 8)))
    for n in (0, 1, 8, 31, 32, 33, 100, -1):
        damage("cut at %d" % n, lambda d, n=n: d[:n])
    damage("zeros", lambda d: bytes(len(d)))
    damage("zeros after the header", lambda d: d[:32] + bytes(len(d) - 32))
    damage("longer", lambda d: d + b"x")
    damage("another version", lambda d: b"RLYKERN0" + d[8:])
    damage("the same object for another key", lambda d: whole[names[0]][:8] + whole[names[-1]][8:] + b"\0")
    damage("text", lambda d: b"#!/bin/sh\nrm -rf /\n")
    damage("huge sizes", lambda d: d[:8] + b"\xff" * 16 + d[24:])
    damage("key of another processor", lambda d: d.replace(b"sapphirerapids", b"another-cpu-xx").replace(b"avx512", b"avx999"))

    def job(name, make):
        def run():
            at = s.path("cache is " + name)
            before = make(at)
            same("is " + name, at, before)
        s.later(run)

    def folder_of(at, mode):
        os.makedirs(os.path.join(at, "relay"))
        os.chmod(os.path.join(at, "relay"), mode)
    job("missing", lambda at: None)
    job("a file", lambda at: open(at, "w").close())
    job("a file below", lambda at: (os.mkdir(at), open(os.path.join(at, "relay"), "w").close()) and None)
    job("read-only", lambda at: folder_of(at, 0o500))
    job("not searchable", lambda at: folder_of(at, 0))
    job("in proc", lambda at: os.symlink("/proc", at))
    job("a link to itself", lambda at: os.symlink(at, at))
    job("below a long name", lambda at: None)
    job("limited", lambda at: limit_of(resource.RLIMIT_FSIZE, 100))
    job("limited to less than an object", lambda at: limit_of(resource.RLIMIT_FSIZE, 3000))
    job("without descriptors", lambda at: limit_of(resource.RLIMIT_NOFILE, 12))  # a shell needs 11
    job("folders for files", lambda at: [os.makedirs(os.path.join(at, "relay", n)) for n in names] and None)
    job("links to /dev/full", lambda at: (os.makedirs(os.path.join(at, "relay")),
                                          [os.symlink("/dev/full", os.path.join(at, "relay", n)) for n in names]) and None)

    def full():
        at = s.path("mounted")
        os.mkdir(at)
        if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=8k", "none", at], stderr=subprocess.DEVNULL) != 0:
            s.skip("a full disk: only root may mount")
            return
        try:
            same("on a full disk", at)
            subprocess.call(["mount", "-o", "remount,ro", at])
            same("on a read-only disk", at)
        finally:
            subprocess.call(["umount", at])
    s.later(full)

    def together():
        at = s.path("shared cache")
        runs = [subprocess.Popen([s.relay, "-e", KERNEL], env=dict(os.environ, XDG_CACHE_HOME=at), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE) for _ in range(6)]
        outs = [p.communicate(timeout=PATIENCE) for p in runs]
        s.check("cache: six at once", None if all(o == (want.encode(), b"") for o in outs) else str(outs))
        left = [n for n in os.listdir(os.path.join(at, "relay")) if n.startswith("tmp.")]
        s.check("cache: nothing temporary is left", None if not left else str(left))
    s.later(together)

    def nowhere():
        for env in ({"HOME": "", "XDG_CACHE_HOME": ""}, {"HOME": "relative", "XDG_CACHE_HOME": "relative"}):
            r = s.run(["-e", KERNEL], env=env)
            s.check("cache: no home", None if r.status == 0 and r.out == want else "another result", r)
        r = s.run(["-e", KERNEL], env={"RELAY_JIT": "/nonexistent.so"})
        s.check("no librelayjit.so", None if r.status == 0 and r.out == want else "another result", r)
        r = s.run(["-e", KERNEL], env={"RELAY_JIT": s.write("bad.so", b"\x7fELF garbage"), "XDG_CACHE_HOME": s.path("c2")})
        s.check("a damaged librelayjit.so", None if r.status == 0 and r.out == want else "another result", r)
    s.later(nowhere)


def foreign(s):
    s.write("not_a_library.so", b"\x7fELF\x02\x01\x01" + bytes(100))
    s.write("text.so", "text")
    for name, text, code in (
            ("missing library", 'operator @f : fn(float64) -> float64 = "cos" from "libnothing.so.9";', "R0612"),
            ("missing symbol", 'operator @f : fn(float64) -> float64 = "nothing_so_called" from "libm.so.6";', "R0612"),
            ("a folder", 'operator @f : fn(float64) -> float64 = "cos" from "/";', "R0612"),
            ("no library", 'operator @f : fn(float64) -> float64 = "cos" from "./text.so";', "R0612"),
            ("a damaged library", 'operator @f : fn(float64) -> float64 = "cos" from "./not_a_library.so";', "R0612"),
            ("empty names", 'operator @f : fn(float64) -> float64 = "" from "";', "R0612"),
            ("a long name", 'operator @f : fn(float64) -> float64 = "%s" from "libm.so.6";' % ("x" * 100000), "R0612"),
            ("text as argument", 'operator @f : fn(String) -> float64 = "cos" from "libm.so.6";', "R0118"),
            ("a function as argument", 'operator @f : fn(fn(float64) -> float64) -> float64 = "cos" from "libm.so.6";', "R0118"),
            ("no function", 'operator @f : float64 = "cos" from "libm.so.6";', None),
            ("a data type", 'operator @f : fn(List[float64]) -> float64 = "cos" from "libm.so.6";', None),
            ("a tuple", 'operator @f : fn(float64) -> (float64, float64) = "cos" from "libm.so.6";', None),
            ("many arguments", 'operator @f : fn(%s) -> float64 = "cos" from "libm.so.6";' % ", ".join(["float64"] * 100), "R0612"),
            ("unknown result", 'operator @f : fn(float64) -> Tensor[(?,), float64] = "cos" from "libm.so.6"; f(1.0)', None),
            ("unknown type", 'operator @f : fn(nope) -> float64 = "cos" from "libm.so.6";', "R0102"),
            ("wrong argument", 'operator @f : fn(float64) -> float64 = "cos" from "libm.so.6"; f(True)', None),
            ("too many", 'operator @f : fn(float64) -> float64 = "cos" from "libm.so.6"; f(1.0, 2.0)', "R0203"),
            ("derivative", 'operator @f : fn(float64) -> float64 = "cos" from "libm.so.6"; grad(f)(1.0)', None),
            ("a builtin", 'operator @f : fn(float64) -> int32 = "str.length" from "builtin"; f(1.0)', "R0612")):
        s.rejects("foreign: " + name, ["-e", text], code)


if __name__ == "__main__":
    sys.exit(run_parts(__doc__, (refusals, acceptances, changed_headers, kept_as_tvm, damaged, fifos, caches, foreign)))
