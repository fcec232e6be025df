"""The plugin for JAX: `JAX_PLATFORMS=hlo`, once `hlo_ref` is installed or this folder's parent is on PYTHONPATH.

JAX finds `jax_plugins.hlo` by itself and calls `initialize`, which registers the plugin and hands it the handlers of custom calls that JAX has for the processor: those of `jax.ffi.register_ffi_target`,
before and after, callbacks into Python, and LAPACK's. Who does not ask for it by JAX_PLATFORMS, or by the name of a back end, goes on with what JAX chooses.

HLO_PLUGIN names the shared library; by default it is the one of the package `hlo_ref`, or of the checkout that this file is in.
"""

import ctypes

from hlo_ref import places

from . import frames

# Below every back end of JAX's own, so that being installed changes nothing.
_PRIORITY = -100


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
        self.api = frames.Api(path)

    def register(self, name, handler):
        """`handler` is a capsule, or capsules by stage."""
        bundle = frames.Bundle()
        for stage, capsule in (handler if isinstance(handler, dict) else {"execute": handler}).items():
            if capsule is not None and stage in dict(frames.Bundle._fields_):
                setattr(bundle, stage, _pointer(capsule))
        self.api.register(name, bundle)

    def register_callbacks(self, names):
        from . import callbacks

        self._callbacks = callbacks.handler(self.api)
        for name in names:
            self.api.register(name, frames.Bundle(execute=ctypes.cast(self._callbacks, ctypes.c_void_p)))

    def register_type(self, name, registration):
        """`registration` is a dictionary with capsules `type_id` and, perhaps, `type_info`."""
        info = registration.get("type_info")
        self.api.register_type(name, _pointer(registration["type_id"]), None if info is None else _pointer(info))


def _table_of_jaxlib(register):
    """The table of functions of jaxlib's own runtime, which hands out no pointer to it: a handler that is registered there is asked for its version, by a call with the table."""
    tables = []

    def handle(frame):
        frame = frame.contents
        frames.answer_version(frame)
        tables.append(frame.api)

    # It stays registered, and is called by programs that name it: by none.
    global _probe
    _probe = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(frames.Frame))(handle)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    register("hlo_ref.table", capsule(ctypes.cast(_probe, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None), "Host", 1, 0)
    return tables[0]


def _names(name):
    return name.decode() if isinstance(name, bytes) else name


def _forward(handlers):
    """Hands over what JAX has for the processor, and what is registered from now on, to both runtimes."""
    from jax._src.lib import _jax as _xla
    from jax._src.lib import xla_client

    callbacks = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
    # jaxlib's handlers look into errors as into its own.
    handlers.api.errors_of(_table_of_jaxlib(_xla.register_custom_call_target))
    handlers.register_callbacks(callbacks)
    for name, handler in xla_client.custom_call_targets("Host").items():
        if _names(name) not in callbacks:
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

    path = places.library()
    xla_bridge.register_plugin("hlo", priority=_PRIORITY, library_path=path)
    global _handlers  # it lasts as long as the plugin, which calls what it registers
    _handlers = Handlers(path)
    _forward(_handlers)
