"""The structs of XLA's FFI that the plugin's module reads and writes, and functions of its table."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

# Slots of XLA_FFI_Api come after its size, extensions, version and internal table.
_FIRST_SLOT = 48
_ERROR_CREATE, _HANDLER_REGISTER, _TYPE_REGISTER, _CONTEXT_GET = 0, 3, 5, 6


class ByteSpan(Structure):
    _fields_ = [("ptr", c_char_p), ("len", c_size_t)]


class Bundle(Structure):
    _fields_ = [(stage, c_void_p) for stage in ("instantiate", "prepare", "initialize", "execute", "record")]


class _Sized(Structure):
    """What every struct begins with."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p)]


class RegisterArgs(_Sized):
    _fields_ = [("name", ByteSpan), ("platform", ByteSpan), ("bundle", Bundle), ("traits", c_uint32)]


class TypeArgs(_Sized):
    _fields_ = [("name", ByteSpan), ("type_id", c_void_p), ("type_info", c_void_p)]


class Buffer(_Sized):
    _fields_ = [("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))]


class Buffers(_Sized):
    _fields_ = [("size", c_int64), ("types", c_void_p), ("values", POINTER(POINTER(Buffer)))]


class Scalar(Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_uint64))]


class Attributes(_Sized):
    _fields_ = [("size", c_int64), ("types", c_void_p), ("names", c_void_p), ("values", POINTER(POINTER(Scalar)))]


class Frame(_Sized):
    _fields_ = [
        ("api", c_void_p), ("ctx", c_void_p), ("stage", c_int), ("args", Buffers), ("rets", Buffers), ("attrs", Attributes),
        ("future", c_void_p),
    ]


class Version(_Sized):
    _fields_ = [("major", c_int), ("minor", c_int)]


class Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", Version)]


class MetadataExtension(Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata))]


class ContextGet(_Sized):
    _fields_ = [("ctx", c_void_p), ("type_id", POINTER(c_int64)), ("data", c_void_p)]


class ErrorCreate(_Sized):
    _fields_ = [("message", c_char_p), ("code", c_int)]


class Callbacks(Structure):
    """What JAX hands to an execution: its callables."""

    _fields_ = [("callables", POINTER(c_void_p)), ("count", c_uint32)]


def span(text):
    return ByteSpan(text.encode(), len(text.encode()))


def answer_version(frame):
    """Answers, to a call that asks for it, which version a handler is of; false: the call is another one."""
    if not frame.extension_start:
        return False
    version = MetadataExtension.from_address(frame.extension_start).metadata.contents.version
    version.major, version.minor = 0, 3
    return True


class Api:
    """The table of functions of the plugin."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.XLA_FFI_GetApi.restype = c_void_p
        self._library.hlo_ffi_errors_of.argtypes = [c_void_p]
        self._table = self._library.XLA_FFI_GetApi()

    def errors_of(self, table):
        """Lets another runtime, whose table of functions it is, make the errors that handlers get."""
        if not self._library.hlo_ffi_errors_of(table):
            raise RuntimeError("errors were made before it was known who makes them")

    def _slot(self, number, args):
        address = c_void_p.from_address(self._table + _FIRST_SLOT + 8 * number).value
        return ctypes.CFUNCTYPE(c_void_p, c_void_p)(address)(ctypes.addressof(args))

    def register(self, name, bundle):
        args = RegisterArgs(ctypes.sizeof(RegisterArgs), None, span(name), span("Host"), bundle, 0)
        if self._slot(_HANDLER_REGISTER, args):
            raise ValueError(f"the handler {name!r} cannot be registered")

    def register_type(self, name, type_id, type_info):
        args = TypeArgs(ctypes.sizeof(TypeArgs), None, span(name), type_id, type_info)
        if self._slot(_TYPE_REGISTER, args):
            raise ValueError(f"the type {name!r} cannot be registered")

    def user_data(self, ctx):
        """The user data of an execution, which has one: the number that jaxlib gave its type is jaxlib's to know, so the unknown type is asked for."""
        args = ContextGet(ctypes.sizeof(ContextGet), None, ctx, ctypes.pointer(c_int64(0)), None)
        if self._slot(_CONTEXT_GET, args):
            raise RuntimeError("the execution was given no callbacks")
        return args.data

    def error(self, code, text):
        message = text.encode().replace(b"\0", b"")
        return self._slot(_ERROR_CREATE, ErrorCreate(ctypes.sizeof(ErrorCreate), None, message, code))
