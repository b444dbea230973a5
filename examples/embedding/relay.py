# SPDX-License-Identifier: Apache-2.0
"""Relay from Python, by its C library (relay.h); needs nothing besides Python.

    import numpy as np, relay
    s = relay.Session()
    s.evaluate("def loss(w, x, y) { mean((x @@ w - y) ** 2) }")
    loss, (dw, dx, dy) = s.call("grad(loss)", w, x, y)    # NumPy arrays, PyTorch tensors: what has __dlpack__
    w -= 0.1 * np.from_dlpack(dw)

Tensors are handed over without copying, both ways, and may not be changed while the other side has them. What
Relay has to complain about is a relay.Error.
"""
import ctypes
import os
from ctypes import c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint64, c_void_p

__all__ = ["Error", "Session", "Value"]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


def _function(name, result, *arguments):
    f = getattr(_library, name)
    f.restype, f.argtypes = result, arguments
    return f


_library = ctypes.CDLL(os.environ.get("LIBRELAY", "librelay.so.0"))
_open = _function("relay_open", c_void_p, c_void_p)
_close = _function("relay_close", None, c_void_p)
_error = _function("relay_error", c_char_p, c_void_p)
_interrupt = _function("relay_interrupt", None, c_void_p)
_evaluate = _function("relay_evaluate", c_void_p, c_void_p, c_char_p)
_call = _function("relay_call", c_void_p, c_void_p, c_char_p, ctypes.POINTER(c_void_p), c_size_t)
_define = _function("relay_define", ctypes.c_bool, c_void_p, c_char_p, c_void_p)
_load = _function("relay_load", ctypes.c_bool, c_void_p, c_char_p)
_kind = _function("relay_kind", ctypes.c_int, c_void_p)
_count = _function("relay_count", c_size_t, c_void_p)
_item = _function("relay_item", c_void_p, c_void_p, c_size_t)
_text = _function("relay_text", c_void_p, c_void_p, ctypes.POINTER(c_size_t))
_constructor = _function("relay_constructor", c_char_p, c_void_p)
_show = _function("relay_show", c_char_p, c_void_p)
_release = _function("relay_release", None, c_void_p)
_tuple = _function("relay_tuple", c_void_p, c_void_p, ctypes.POINTER(c_void_p), c_size_t)
_string = _function("relay_string", c_void_p, c_void_p, c_char_p, c_size_t)
_from_dlpack = _function("relay_from_dlpack", c_void_p, c_void_p, c_void_p)
_to_dlpack = _function("relay_to_dlpack", ctypes.POINTER(DLManagedTensor), c_void_p)

_TENSOR, _TUPLE, _DATA, _STRING = range(4)
_NUMBERS = {(0, 8): ctypes.c_int8, (0, 16): ctypes.c_int16, (0, 32): c_int32, (0, 64): c_int64,
            (1, 8): c_uint8, (1, 16): c_uint16, (1, 32): ctypes.c_uint32, (1, 64): c_uint64,
            (2, 32): ctypes.c_float, (2, 64): ctypes.c_double, (6, 8): ctypes.c_bool}

# A capsule is how Python hands a DLPack tensor over; who takes it renames it.
_python = ctypes.pythonapi
_capsule_new = _python.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", _python))
_capsule_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, c_char_p)(("PyCapsule_SetName", _python))
_dying_is_unused = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _python))
_dying_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _python))


@ctypes.PYFUNCTYPE(None, c_void_p)
def _capsule_dies(capsule):
    if _dying_is_unused(capsule, b"dltensor"):
        pointer = _dying_pointer(capsule, b"dltensor")
        DLManagedTensor.from_address(pointer).deleter(pointer)


class Error(Exception):
    """What Relay said, with the lines it is about."""


class Value:
    """A value of a session: iterate over its parts, or hand it to np.from_dlpack."""

    def __init__(self, session, handle):
        self._session, self._handle = session, handle

    def __del__(self):
        _release(self._handle)

    def __repr__(self):
        return _show(self._handle).decode()

    def __len__(self):
        return _count(self._handle)

    def __getitem__(self, index):
        handle = _item(self._handle, range(len(self))[index])
        return self._session._take(handle)

    @property
    def constructor(self):
        name = _constructor(self._handle)
        return name.decode() if name else None

    def __float__(self):
        return float(self._number())

    def __int__(self):
        return int(self._number())

    def __bool__(self):
        return bool(self._number())

    def _number(self):
        managed = _to_dlpack(self._handle)
        if not managed:
            raise TypeError("no tensor: %r" % self)
        try:
            t = managed.contents.tensor
            if t.ndim or (t.code, t.bits) not in _NUMBERS:
                raise TypeError("no single number: %r" % self)
            return _NUMBERS[t.code, t.bits].from_address(t.data).value
        finally:
            managed.contents.deleter(ctypes.addressof(managed.contents))

    def __dlpack__(self, **_):
        managed = _to_dlpack(self._handle)
        if not managed:
            raise TypeError("no tensor: %r" % self)
        return _capsule_new(ctypes.addressof(managed.contents), b"dltensor",
                            ctypes.cast(_capsule_dies, c_void_p))

    def __dlpack_device__(self):
        return (1, 0)


class Session:
    """Definitions, as of one prompt."""

    def __init__(self):
        self._handle = _open(None)
        if not self._handle:
            raise MemoryError("Relay could not begin")

    def evaluate(self, text):
        """Runs a text, as the prompt does; the value of its last expression."""
        return self._take(_evaluate(self._handle, text.encode()))

    def call(self, function, *arguments):
        """function(*arguments); function is a text."""
        handles, kept = self._give_all(arguments)
        return self._take(_call(self._handle, function.encode(), handles, len(kept)))

    def define(self, name, value):
        """let name = value"""
        value = self._give(value)
        self._check(_define(self._handle, name.encode(), value._handle))

    def load(self, path):
        self._check(_load(self._handle, os.fsencode(path)))

    def interrupt(self):
        """From another thread: what runs ends soon."""
        _interrupt(self._handle)

    def _check(self, result):
        if not result:
            raise Error(_error(self._handle).decode())
        return result

    def _take(self, handle):
        """A tuple as a tuple, a String as a str, all else as a Value."""
        value = Value(self, self._check(handle))
        kind = _kind(handle)
        if kind == _TUPLE:
            return tuple(value[i] for i in range(len(value)))
        if kind == _STRING:
            length = c_size_t()
            start = _text(handle, ctypes.byref(length))
            return ctypes.string_at(start, length.value).decode()
        return value

    def _give_all(self, values):
        kept = [self._give(v) for v in values]
        return (c_void_p * len(kept))(*[v._handle for v in kept]), kept

    def _give(self, x):
        if isinstance(x, Value):
            return x
        if isinstance(x, tuple):
            handles, kept = self._give_all(x)
            return Value(self, self._check(_tuple(self._handle, handles, len(kept))))
        if isinstance(x, str):
            text = x.encode()
            return Value(self, self._check(_string(self._handle, text, len(text))))
        if isinstance(x, (bool, int, float)):
            return Value(self, self._check(_evaluate(self._handle, repr(x).encode())))
        capsule = x.__dlpack__()
        value = Value(self, self._check(_from_dlpack(self._handle, _capsule_pointer(capsule, b"dltensor"))))
        _capsule_rename(capsule, b"used_dltensor")
        return value
