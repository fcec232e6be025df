"""The plugin by its C API, without JAX: what callers do wrong has to end in an error, and never in the end of the process.

Usage: python border.py PLUGIN.so    (pypjrt has to be installed: its layouts are used, none of its own code)
"""

import ctypes
import sys

import pypjrt._abi.pjrt_0_114 as abi

CODES = {3: "INVALID_ARGUMENT", 12: "UNIMPLEMENTED", 9: "FAILED_PRECONDITION"}
TEXT = b"""module @m { func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.add %x, %x : tensor<3xf32>
  return %y : tensor<3xf32> } }"""


class Plugin:
    def __init__(self, path):
        library = ctypes.CDLL(path)
        library.GetPjrtApi.restype = ctypes.c_void_p
        self.api = library.GetPjrtApi()

    def raw(self, name, args):
        slot = ctypes.c_void_p.from_address(self.api + abi.VTABLE_OFFSET + 8 * abi.SLOT["PJRT_" + name])
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(slot.value)
        return function(ctypes.addressof(args) if args is not None else None)

    def error(self, error):
        args = self.args("Error_GetCode", error=error)
        assert not self.raw("Error_GetCode", args)
        text = self.args("Error_Message", error=error)
        self.raw("Error_Message", text)
        message = ctypes.string_at(text.message, text.message_size).decode()
        self.raw("Error_Destroy", self.args("Error_Destroy", error=error))
        return args.code, message

    def args(self, name, **fields):
        args = getattr(abi, f"PJRT_{name}_Args")()
        args.struct_size = ctypes.sizeof(args)
        for field, value in fields.items():
            if isinstance(value, bytes):
                value = ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p)
            setattr(args, field, value)
        return args

    def call(self, name, **fields):
        args = self.args(name, **fields)
        error = self.raw(name, args)
        assert not error, (name, self.error(error))
        return args

    def refused(self, code, name, *words, **fields):
        error = self.raw(name, self.args(name, **fields))
        assert error, f"{name} is not refused"
        got, message = self.error(error)
        assert got == code, (name, got, message)
        for word in words:
            assert word in message, (word, message)


def program(code=TEXT, format=b"mlir"):
    p = abi.PJRT_Program()
    p.struct_size = ctypes.sizeof(p)
    p.code = ctypes.cast(ctypes.c_char_p(code), ctypes.c_void_p)
    p.code_size = len(code)
    p.format = ctypes.cast(ctypes.c_char_p(format), ctypes.c_void_p)
    p.format_size = len(format)
    p.keep = (code, format)
    return p


def main(path):
    p = Plugin(path)
    client = p.call("Client_Create").client

    # Null structs, and structs that lie about their size.
    for name in abi.SLOT:
        error = p.raw(name.removeprefix("PJRT_"), None)
        assert error, name
        p.error(error)
    for size in [0, 1, 15, 1 << 40]:
        args = p.args("Client_Devices", client=client)
        args.struct_size = size
        assert p.error(p.raw("Client_Devices", args))[0] == 3

    # An older caller's struct ends earlier: nothing is written behind it.
    args = p.args("Client_Devices", client=client)
    args.struct_size = 32
    args.num_devices = 77
    assert not p.raw("Client_Devices", args) and args.num_devices == 77

    # Objects that are not there.
    p.refused(3, "Client_Devices", "null", client=None)
    p.refused(3, "Client_Devices", "destroyed", client=12345)
    p.refused(3, "Buffer_Dimensions", "buffer", buffer=client)

    # Programs and options.
    def compiled(code=TEXT, format=b"mlir", options=b""):
        return dict(client=client, program=ctypes.addressof(keep(program(code, format))), compile_options=options,
                    compile_options_size=len(options))

    kept = []

    def keep(x):
        kept.append(x)
        return x

    p.refused(12, "Client_Compile", "tensorflow", **compiled(format=b"tensorflow"))
    p.refused(3, "Client_Compile", **compiled(code=b"module {"))
    p.refused(3, "Client_Compile", **compiled(code=b"ML\xefR\x0d\x00" + b"\xff" * 64))
    p.refused(3, "Client_Compile", **compiled(code=b"\xff" * 64, format=b"hlo"))
    p.refused(3, "Client_Compile", "devices", **compiled(options=b"\x1a\x02\x28\x02"))
    p.refused(3, "Client_Compile", "options", **compiled(options=b"\x1a\x7f"))
    p.refused(3, "Client_Compile", client=client, program=None)
    executable = p.call("Client_Compile", **compiled()).executable

    # Buffers.
    dims = (ctypes.c_int64 * 1)(3)
    data = (ctypes.c_float * 3)(1, 2, 3)
    fields = dict(client=client, data=ctypes.addressof(data), type=11, dims=ctypes.addressof(dims), num_dims=1,
                  host_buffer_semantics=0)
    buffer = p.call("Client_BufferFromHostBuffer", **fields).buffer
    p.refused(3, "Client_BufferFromHostBuffer", "null", **fields | dict(data=None))
    p.refused(3, "Client_BufferFromHostBuffer", "dimensions", **fields | dict(dims=None))
    p.refused(3, "Client_BufferFromHostBuffer", "no shape", **fields | dict(dims=ctypes.addressof(keep((ctypes.c_int64 * 1)(-1)))))
    p.refused(3, "Client_BufferFromHostBuffer", "no shape",
              **fields | dict(num_dims=2, dims=ctypes.addressof(keep((ctypes.c_int64 * 2)(1 << 62, 1 << 62)))))
    p.refused(12, "Client_BufferFromHostBuffer", "Type 99", **fields | dict(type=99))
    p.refused(3, "Client_BufferFromHostBuffer", "strides",
              **fields | dict(byte_strides=ctypes.addressof(dims), num_byte_strides=2))
    # Views are of aligned memory, dense, and without tiles.
    memory = (ctypes.c_char * 192)()
    start = ctypes.addressof(memory) + -ctypes.addressof(memory) % 64
    view = dict(client=client, device_buffer_ptr=start, element_type=11, dims=ctypes.addressof(dims), num_dims=1)
    p.call("Buffer_Destroy", buffer=p.call("Client_CreateViewOfDeviceBuffer", **view).buffer)
    p.refused(3, "Client_CreateViewOfDeviceBuffer", "not aligned to 64 bytes", **view | dict(device_buffer_ptr=start + 4))
    layout = keep(abi.PJRT_Buffer_MemoryLayout())
    layout.tiled.minor_to_major, layout.tiled.minor_to_major_size = ctypes.addressof(dims), 1
    p.refused(3, "Client_CreateViewOfDeviceBuffer", "no order", **view | dict(layout=ctypes.addressof(layout)))
    layout.tiled.num_tiles = 1
    p.refused(12, "Client_CreateViewOfDeviceBuffer", "tiles", **view | dict(layout=ctypes.addressof(layout)))

    # More than there is memory for, and statistics that leave nothing of the caller's.
    device = p.call("Client_LookupDevice", client=client, id=0).device
    statistics = p.args("Device_MemoryStats", device=device)
    statistics.num_allocs_is_set = statistics.bytes_limit_is_set = 1
    assert not p.raw("Device_MemoryStats", statistics)
    assert not statistics.num_allocs_is_set and statistics.bytes_limit_is_set and statistics.bytes_limit > 0
    much = keep((ctypes.c_int64 * 1)(1 << 45))
    p.refused(8, "Client_CreateUninitializedBuffer", client=client, shape_dims=ctypes.addressof(much), shape_num_dims=1,
              shape_element_type=11)
    short = (ctypes.c_float * 2)()
    p.refused(3, "Buffer_ToHostBuffer", "fit", src=buffer, dst=ctypes.addressof(short), dst_size=8)
    p.refused(10 + 1, "Buffer_CopyRawToHost", buffer=buffer, dst=ctypes.addressof(short), offset=8, transfer_size=8)
    p.refused(9, "Buffer_DecreaseExternalReferenceCount", buffer=buffer)

    # Executions.
    options = abi.PJRT_ExecuteOptions()
    options.struct_size = ctypes.sizeof(options)
    arguments = (ctypes.c_void_p * 1)(buffer)
    argument_lists = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
    results = (ctypes.c_void_p * 1)()
    output_lists = (ctypes.c_void_p * 1)(ctypes.addressof(results))
    run = dict(executable=executable, options=ctypes.addressof(options), argument_lists=ctypes.addressof(argument_lists),
               num_devices=1, num_args=1, output_lists=ctypes.addressof(output_lists))
    p.call("LoadedExecutable_Execute", **run)
    out = (ctypes.c_float * 3)()
    p.call("Buffer_ToHostBuffer", src=results[0], dst=ctypes.addressof(out), dst_size=12)
    assert list(out) == [2, 4, 6]
    p.refused(3, "LoadedExecutable_Execute", "arrays", **run | dict(num_args=0))
    p.refused(3, "LoadedExecutable_Execute", "device", **run | dict(num_devices=2))
    p.refused(3, "LoadedExecutable_Execute", **run | dict(options=None))
    p.refused(3, "LoadedExecutable_Execute", **run | dict(argument_lists=None))
    wrong = (ctypes.c_int64 * 1)(2)
    other = p.call("Client_BufferFromHostBuffer", **fields | dict(dims=ctypes.addressof(wrong))).buffer
    arguments[0] = other
    p.refused(3, "LoadedExecutable_Execute", "f32[2]", **run)
    p.call("Buffer_Delete", buffer=other)
    p.refused(9, "LoadedExecutable_Execute", "deleted", **run)
    p.call("Buffer_Destroy", buffer=other)
    p.refused(3, "LoadedExecutable_Execute", "destroyed", **run)
    p.refused(3, "Buffer_Destroy", "destroyed", buffer=other)
    arguments[0] = buffer
    p.call("LoadedExecutable_Delete", executable=executable)
    p.refused(9, "LoadedExecutable_Execute", "deleted", **run)
    p.call("LoadedExecutable_Destroy", executable=executable)
    p.refused(3, "LoadedExecutable_Execute", "destroyed", **run)

    # A client's objects outlive it, its handle does not.
    p.call("Client_Destroy", client=client)
    p.refused(3, "Client_Devices", "destroyed", client=client)
    p.call("Buffer_ToHostBuffer", src=results[0], dst=ctypes.addressof(out), dst_size=12)
    print("the border holds")


if __name__ == "__main__":
    main(sys.argv[1])
