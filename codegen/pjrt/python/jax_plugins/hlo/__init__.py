"""The plugin for JAX: `JAX_PLATFORMS=hlo` with this folder's parent on PYTHONPATH.

JAX finds `jax_plugins.hlo` by itself and calls `initialize`, which registers the plugin and hands it the handlers of custom calls that JAX has for the processor: those of `jax.ffi.register_ffi_target`,
before and after, and LAPACK's.

HLO_PLUGIN names the shared library; by default it is libhlo_pjrt.so beside this file, or the one of the checkout that this file is in.
"""

import ctypes
import os
import pathlib

_PJRT_EXTENSION_FFI = 5


class _ByteSpan(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class _Bundle(ctypes.Structure):
    _fields_ = [(stage, ctypes.c_void_p) for stage in ("instantiate", "prepare", "initialize", "execute", "record")]


class _RegisterArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", _ByteSpan),
        ("platform", _ByteSpan),
        ("bundle", _Bundle),
        ("traits", ctypes.c_uint32),
    ]


class _TypeArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", _ByteSpan),
        ("type_id", ctypes.c_void_p),
        ("type_info", ctypes.c_void_p),
    ]


# Slots of XLA_FFI_Api after its size, extensions, version and internal table.
_FIRST_SLOT = 48
_ERROR_DETAILS, _HANDLER_REGISTER, _TYPE_REGISTER = 1, 3, 5


def _library_path():
    named = os.environ.get("HLO_PLUGIN")
    if named:
        return named
    here = pathlib.Path(__file__).resolve()
    beside = here.parent / "libhlo_pjrt.so"
    if beside.exists():
        return str(beside)
    target = here.parents[4] / "target"
    built = [target / profile / "libhlo_pjrt.so" for profile in ("release", "debug")]
    for path in built:
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"libhlo_pjrt.so is neither beside {here} nor in {target}: HLO_PLUGIN names it")


def _pointer(capsule):
    """What a capsule holds, whatever its name is."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


class Handlers:
    """Registers handlers with the plugin."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        library.XLA_FFI_GetApi.restype = ctypes.c_void_p
        self._library, self._api = library, library.XLA_FFI_GetApi()

    def _call(self, slot, args):
        address = ctypes.c_void_p.from_address(self._api + _FIRST_SLOT + 8 * slot).value
        error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)(ctypes.addressof(args))
        if error:
            raise ValueError(f"{args.name.ptr.decode()!r} cannot be registered")

    def register(self, name, handler, platform="Host"):
        """`handler` is a capsule, or capsules by stage."""
        stages = handler if isinstance(handler, dict) else {"execute": handler}
        args = _RegisterArgs(struct_size=ctypes.sizeof(_RegisterArgs))
        args.name = _ByteSpan(name.encode(), len(name.encode()))
        args.platform = _ByteSpan(platform.encode(), len(platform))
        for stage, capsule in stages.items():
            if capsule is not None and stage in dict(_Bundle._fields_):
                setattr(args.bundle, stage, _pointer(capsule))
        self._call(_HANDLER_REGISTER, args)

    def register_type(self, name, registration):
        """`registration` is a dictionary with capsules `type_id` and, perhaps, `type_info`."""
        args = _TypeArgs(struct_size=ctypes.sizeof(_TypeArgs))
        args.name = _ByteSpan(name.encode(), len(name.encode()))
        args.type_id = _pointer(registration["type_id"])
        info = registration.get("type_info")
        args.type_info = _pointer(info) if info is not None else None
        self._call(_TYPE_REGISTER, args)


def _names(name):
    return name.decode() if isinstance(name, bytes) else name


def _forward(handlers):
    """Hands over what JAX has for the processor, and what is registered from now on, to both runtimes."""
    from jax._src.lib import _jax as _xla
    from jax._src.lib import xla_client

    for name, handler in xla_client.custom_call_targets("Host").items():
        # Of callbacks jaxlib hands out one of two stages, which cannot run without the other.
        if "python_cpu_callback" not in _names(name):
            handlers.register(_names(name), handler)

    def call(name, handler, platform, api_version=0, traits=0):
        _xla.register_custom_call_target(name, handler, platform, api_version, traits)
        if api_version == 1:  # functions of the conventions from before are for JAX's own back end
            handlers.register(_names(name), handler)

    def type_(name, registration):
        _xla.register_custom_type(name, registration)
        handlers.register_type(_names(name), registration)

    # What JAX's own back end would register is in one of the two: it keeps lists until there is one who takes them, and the first stays.
    xla_client._custom_callback_handler.pop("Host", None)
    xla_client.register_custom_call_handler("cpu", call)
    xla_client._custom_type_id_handler.pop("Host", None)
    xla_client.register_custom_type_handler("cpu", type_)


def initialize():
    from jax._src import xla_bridge

    path = _library_path()
    xla_bridge.register_plugin("hlo", priority=400, library_path=path)
    global _handlers  # it lasts as long as the plugin, which calls what it registers
    _handlers = Handlers(path)
    _forward(_handlers)
