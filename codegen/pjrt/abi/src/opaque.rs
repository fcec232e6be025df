//! Objects of the C API, of which a caller knows nothing but pointers.

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )*};
}

opaque! {
    /// `PJRT_Buffer`.
    Buffer
    /// `PJRT_Client`.
    Client
    /// `PJRT_Device`.
    Device
    /// `PJRT_DeviceDescription`.
    DeviceDescription
    /// `PJRT_Error`.
    Error
    /// `PJRT_Event`.
    Event
    /// `PJRT_Executable`.
    Executable
    /// `PJRT_ExecuteContext`.
    ExecuteContext
    /// `PJRT_LoadedExecutable`.
    LoadedExecutable
    /// `PJRT_Memory`.
    Memory
    /// `PJRT_Layouts_MemoryLayout`.
    MemoryLayout
    /// Bytes of a serialized object, which their deleter frees.
    SerializedBytes
    /// `PJRT_TopologyDescription`.
    Topology
}
