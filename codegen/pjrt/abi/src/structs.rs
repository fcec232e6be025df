//! The structs of the PJRT C API 0.114, under its own names: what a caller and a function hand each other.
//!
//! Each begins with its size and a list of extensions. A caller that was built for an older version has
//! structs that end earlier, one for a newer version such that go on; `border.rs` handles both. Sizes and
//! offsets are checked against `tests/layout.txt`.

#![allow(
    non_camel_case_types,
    missing_docs,
    reason = "the names are those of the C API, whose documentation says what fields are"
)]

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use crate::opaque::{
    Buffer, Client, Device, DeviceDescription, Error, Event, Executable, ExecuteContext, LoadedExecutable,
    Memory, MemoryLayout, SerializedBytes, Topology,
};

/// A struct of the C API.
///
/// # Safety
/// It is `repr(C)`, begins with its size as a `usize`, and all bytes, zeros too, are a value of it.
pub unsafe trait Struct: Sized {
    /// Its name in the C API.
    const NAME: &'static str;
    /// Its fields and their offsets.
    const FIELDS: &'static [(&'static str, usize)];
}

/// Is called when an event is ready.
pub type OnReady = unsafe extern "C" fn(error: *mut Error, user_arg: *mut c_void);
/// Is called for each payload of an error.
pub type PayloadVisitor = unsafe extern "C" fn();
/// Is called when a view of memory is not used any more.
pub type OnDelete = unsafe extern "C" fn(device_buffer_ptr: *mut c_void, user_arg: *mut c_void);
/// Frees bytes.
pub type BytesDeleter = unsafe extern "C" fn(bytes: *mut SerializedBytes);
/// Frees a state of a handler of XLA's FFI.
pub type StateDeleter = unsafe extern "C" fn(state: *mut c_void);
/// Frees attributes of a device.
pub type AttributesDeleter = unsafe extern "C" fn(attributes: *mut c_void);

/// Which replica and partition of a program a device runs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LogicalDeviceIds {
    pub replica: i32,
    pub partition: i32,
}

macro_rules! structs {
    ($($name:ident { $($field:ident: $ty:ty),* $(,)? })*) => {
        $(
            #[derive(Clone, Copy, Debug)]
            #[repr(C)]
            pub struct $name {
                pub struct_size: usize,
                pub extension_start: *mut c_void,
                $(pub $field: $ty,)*
            }

            // SAFETY: it is `repr(C)` and begins with its size; its fields are numbers and pointers, or
            // functions that may be null.
            unsafe impl Struct for $name {
                const NAME: &'static str = stringify!($name);
                const FIELDS: &'static [(&'static str, usize)] = &[
                    ("struct_size", offset_of!($name, struct_size)),
                    ("extension_start", offset_of!($name, extension_start)),
                    $((stringify!($field), offset_of!($name, $field)),)*
                ];
            }
        )*

        /// Name, size and fields of all of them, for the check of their layout.
        pub const ALL: &[(&str, usize, &[(&str, usize)])] = &[$(($name::NAME, size_of::<$name>(), $name::FIELDS)),*];
    };
}

structs! {
    PJRT_Api_Version { major_version: i32, minor_version: i32 }
    PJRT_NamedValue {
        name: *const c_char, name_size: usize, r#type: u32, value: *const c_void, value_size: usize,
    }
    PJRT_Program { code: *mut c_char, code_size: usize, format: *const c_char, format_size: usize }
    PJRT_ExecuteOptions {
        send_callbacks: *mut c_void, recv_callbacks: *mut c_void, num_send_ops: usize, num_recv_ops: usize,
        launch_id: i32, non_donatable_input_indices: *const i64, num_non_donatable_input_indices: usize,
        context: *mut ExecuteContext, call_location: *mut c_void, num_tasks: usize, task_ids: *mut c_void,
        incarnation_ids: *mut c_void, multi_slice_config: *mut c_void,
        use_major_to_minor_data_layout_for_callbacks: u8, hlo_output_callbacks: *mut c_void,
        num_hlo_output_callbacks: usize,
    }
    PJRT_Buffer_MemoryLayout_Tiled {
        minor_to_major: *const i64, minor_to_major_size: usize, tile_dims: *const i64,
        tile_dim_sizes: *const usize, num_tiles: usize,
    }
    PJRT_Buffer_MemoryLayout { tiled: PJRT_Buffer_MemoryLayout_Tiled, r#type: u32 }
    PJRT_Error_Destroy_Args { error: *mut Error }
    PJRT_Error_Message_Args { error: *mut Error, message: *const c_char, message_size: usize }
    PJRT_Error_GetCode_Args { error: *mut Error, code: u32 }
    PJRT_Error_ForEachPayload_Args {
        error: *mut Error, visitor: Option<PayloadVisitor>, user_arg: *mut c_void,
    }
    PJRT_Plugin_Initialize_Args {}
    PJRT_Plugin_Attributes_Args { attributes: *const PJRT_NamedValue, num_attributes: usize }
    PJRT_Event_Destroy_Args { event: *mut Event }
    PJRT_Event_IsReady_Args { event: *mut Event, is_ready: u8 }
    PJRT_Event_Error_Args { event: *mut Event }
    PJRT_Event_Await_Args { event: *mut Event }
    PJRT_Event_OnReady_Args { event: *mut Event, callback: Option<OnReady>, user_arg: *mut c_void }
    PJRT_Event_Create_Args { event: *mut Event }
    PJRT_Event_Set_Args {
        event: *mut Event, error_code: u32, error_message: *const c_char, error_message_size: usize,
    }
    PJRT_Client_Create_Args {
        create_options: *const PJRT_NamedValue, num_options: usize, kv_get_callback: *mut c_void,
        kv_get_user_arg: *mut c_void, kv_put_callback: *mut c_void, kv_put_user_arg: *mut c_void,
        client: *mut Client, kv_try_get_callback: *mut c_void, kv_try_get_user_arg: *mut c_void,
    }
    PJRT_Client_Destroy_Args { client: *mut Client }
    PJRT_Client_PlatformName_Args {
        client: *mut Client, platform_name: *const c_char, platform_name_size: usize,
    }
    PJRT_Client_ProcessIndex_Args { client: *mut Client, process_index: i32 }
    PJRT_Client_PlatformVersion_Args {
        client: *mut Client, platform_version: *const c_char, platform_version_size: usize,
    }
    PJRT_Client_Devices_Args { client: *mut Client, devices: *const *mut Device, num_devices: usize }
    PJRT_Client_AddressableDevices_Args {
        client: *mut Client, addressable_devices: *const *mut Device, num_addressable_devices: usize,
    }
    PJRT_Client_LookupDevice_Args { client: *mut Client, id: i32, device: *mut Device }
    PJRT_Client_LookupAddressableDevice_Args {
        client: *mut Client, local_hardware_id: i32, addressable_device: *mut Device,
    }
    PJRT_Client_AddressableMemories_Args {
        client: *mut Client, addressable_memories: *const *mut Memory, num_addressable_memories: usize,
    }
    PJRT_Client_TopologyDescription_Args { client: *mut Client, topology: *mut Topology }
    PJRT_Client_DefaultDeviceAssignment_Args {
        client: *mut Client, num_replicas: i32, num_partitions: i32, default_assignment_size: usize,
        default_assignment: *mut i32,
    }
    PJRT_Client_Compile_Args {
        client: *mut Client, program: *mut PJRT_Program, compile_options: *const c_char,
        compile_options_size: usize, executable: *mut LoadedExecutable,
    }
    PJRT_Client_BufferFromHostBuffer_Args {
        client: *mut Client, data: *mut c_void, r#type: u32, dims: *const i64, num_dims: usize,
        byte_strides: *const i64, num_byte_strides: usize, host_buffer_semantics: u32, device: *mut Device,
        memory: *mut Memory, device_layout: *const PJRT_Buffer_MemoryLayout,
        done_with_host_buffer: *mut Event, buffer: *mut Buffer,
    }
    PJRT_Client_CreateUninitializedBuffer_Args {
        client: *mut Client, shape_dims: *const i64, shape_num_dims: usize, shape_element_type: u32,
        shape_layout: *const PJRT_Buffer_MemoryLayout, device: *mut Device, memory: *mut Memory,
        buffer: *mut Buffer,
    }
    PJRT_Client_CreateErrorBuffer_Args {
        client: *mut Client, error_code: u32, error_message: *const c_char, error_message_size: usize,
        shape_dims: *const i64, shape_num_dims: usize, shape_element_type: u32,
        shape_layout: *const PJRT_Buffer_MemoryLayout, memory: *mut Memory, buffer: *mut Buffer,
        payload: *mut c_void, num_payload: usize,
    }
    PJRT_Client_CreateViewOfDeviceBuffer_Args {
        client: *mut Client, device_buffer_ptr: *mut c_void, dims: *const i64, num_dims: usize,
        element_type: u32, layout: *const PJRT_Buffer_MemoryLayout, device: *mut Device,
        on_delete_callback: Option<OnDelete>, on_delete_callback_arg: *mut c_void, stream: i64,
        buffer: *mut Buffer, memory: *mut Memory,
    }
    PJRT_DeviceDescription_Id_Args { device_description: *mut DeviceDescription, id: i32 }
    PJRT_DeviceDescription_ProcessIndex_Args {
        device_description: *mut DeviceDescription, process_index: i32,
    }
    PJRT_DeviceDescription_Attributes_Args {
        device_description: *mut DeviceDescription, num_attributes: usize,
        attributes: *const PJRT_NamedValue,
    }
    PJRT_DeviceDescription_Kind_Args {
        device_description: *mut DeviceDescription, device_kind: *const c_char, device_kind_size: usize,
    }
    PJRT_DeviceDescription_DebugString_Args {
        device_description: *mut DeviceDescription, debug_string: *const c_char, debug_string_size: usize,
    }
    PJRT_DeviceDescription_ToString_Args {
        device_description: *mut DeviceDescription, to_string: *const c_char, to_string_size: usize,
    }
    PJRT_Device_GetDescription_Args { device: *mut Device, device_description: *mut DeviceDescription }
    PJRT_Device_IsAddressable_Args { device: *mut Device, is_addressable: u8 }
    PJRT_Device_LocalHardwareId_Args { device: *mut Device, local_hardware_id: i32 }
    PJRT_Device_AddressableMemories_Args {
        device: *mut Device, memories: *const *mut Memory, num_memories: usize,
    }
    PJRT_Device_DefaultMemory_Args { device: *mut Device, memory: *mut Memory }
    PJRT_Device_MemoryStats_Args {
        device: *mut Device, bytes_in_use: i64, peak_bytes_in_use: i64, peak_bytes_in_use_is_set: u8,
        num_allocs: i64, num_allocs_is_set: u8, largest_alloc_size: i64, largest_alloc_size_is_set: u8,
        bytes_limit: i64, bytes_limit_is_set: u8, bytes_reserved: i64, bytes_reserved_is_set: u8,
        peak_bytes_reserved: i64, peak_bytes_reserved_is_set: u8, bytes_reservable_limit: i64,
        bytes_reservable_limit_is_set: u8, largest_free_block_bytes: i64,
        largest_free_block_bytes_is_set: u8, pool_bytes: i64, pool_bytes_is_set: u8, peak_pool_bytes: i64,
        peak_pool_bytes_is_set: u8, peak_allocated_bytes: i64, peak_allocated_bytes_is_set: u8,
    }
    PJRT_Device_GetAttributes_Args {
        device: *mut Device, attributes: *const PJRT_NamedValue, num_attributes: usize,
        device_attributes: *mut c_void, attributes_deleter: Option<AttributesDeleter>,
    }
    PJRT_Memory_Id_Args { memory: *mut Memory, id: i32 }
    PJRT_Memory_Kind_Args { memory: *mut Memory, kind: *const c_char, kind_size: usize }
    PJRT_Memory_Kind_Id_Args { memory: *mut Memory, kind_id: i32 }
    PJRT_Memory_DebugString_Args {
        memory: *mut Memory, debug_string: *const c_char, debug_string_size: usize,
    }
    PJRT_Memory_ToString_Args { memory: *mut Memory, to_string: *const c_char, to_string_size: usize }
    PJRT_Memory_AddressableByDevices_Args {
        memory: *mut Memory, devices: *const *mut Device, num_devices: usize,
    }
    PJRT_TopologyDescription_Destroy_Args { topology: *mut Topology }
    PJRT_TopologyDescription_PlatformName_Args {
        topology: *mut Topology, platform_name: *const c_char, platform_name_size: usize,
    }
    PJRT_TopologyDescription_PlatformVersion_Args {
        topology: *mut Topology, platform_version: *const c_char, platform_version_size: usize,
    }
    PJRT_TopologyDescription_GetDeviceDescriptions_Args {
        topology: *mut Topology, descriptions: *const *mut DeviceDescription, num_descriptions: usize,
    }
    PJRT_TopologyDescription_Attributes_Args {
        topology: *mut Topology, attributes: *const PJRT_NamedValue, num_attributes: usize,
    }
    PJRT_TopologyDescription_Fingerprint_Args { topology: *mut Topology, fingerprint: usize }
    PJRT_Executable_Destroy_Args { executable: *mut Executable }
    PJRT_Executable_Name_Args {
        executable: *mut Executable, executable_name: *const c_char, executable_name_size: usize,
    }
    PJRT_Executable_NumReplicas_Args { executable: *mut Executable, num_replicas: usize }
    PJRT_Executable_NumPartitions_Args { executable: *mut Executable, num_partitions: usize }
    PJRT_Executable_NumOutputs_Args { executable: *mut Executable, num_outputs: usize }
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args { executable: *mut Executable, size_in_bytes: i64 }
    PJRT_Executable_GetCostAnalysis_Args {
        executable: *mut Executable, num_properties: usize, properties: *const PJRT_NamedValue,
    }
    PJRT_Executable_OutputMemoryKinds_Args {
        executable: *mut Executable, num_outputs: usize, memory_kinds: *const *const c_char,
        memory_kind_sizes: *const usize,
    }
    PJRT_Executable_ParameterMemoryKinds_Args {
        executable: *mut Executable, num_parameters: usize, memory_kinds: *const *const c_char,
        memory_kind_sizes: *const usize,
    }
    PJRT_Executable_OptimizedProgram_Args { executable: *mut Executable, program: *mut PJRT_Program }
    PJRT_Executable_Serialize_Args {
        executable: *mut Executable, serialized_bytes: *const c_char, serialized_bytes_size: usize,
        serialized_executable: *mut SerializedBytes, serialized_executable_deleter: Option<BytesDeleter>,
    }
    PJRT_Executable_DeserializeAndLoad_Args {
        client: *mut Client, serialized_executable: *const c_char, serialized_executable_size: usize,
        loaded_executable: *mut LoadedExecutable, overridden_serialized_compile_options: *mut c_void,
        overridden_serialized_compile_options_size: usize, load_options: *mut c_void,
    }
    PJRT_Executable_Fingerprint_Args {
        executable: *mut Executable, executable_fingerprint: *const c_char,
        executable_fingerprint_size: usize,
    }
    PJRT_Executable_OutputElementTypes_Args {
        executable: *mut Executable, output_types: *const u32, num_output_types: usize,
    }
    PJRT_Executable_OutputDimensions_Args {
        executable: *mut Executable, num_outputs: usize, dims: *const i64, dim_sizes: *const usize,
    }
    PJRT_Executable_GetCompiledMemoryStats_Args {
        executable: *mut Executable, generated_code_size_in_bytes: i64, argument_size_in_bytes: i64,
        output_size_in_bytes: i64, alias_size_in_bytes: i64, temp_size_in_bytes: i64,
        host_generated_code_size_in_bytes: i64, host_argument_size_in_bytes: i64,
        host_output_size_in_bytes: i64, host_alias_size_in_bytes: i64, host_temp_size_in_bytes: i64,
        peak_memory_in_bytes: i64, total_size_in_bytes: i64, total_allocation_bytes: i64,
        indefinite_allocations: i64, peak_unpadded_heap_bytes: i64,
    }
    PJRT_Executable_GetCompileOptions_Args {
        executable: *mut Executable, serialized_bytes: *const c_char, serialized_bytes_size: usize,
        serialized_compile_options: *mut SerializedBytes,
        serialized_compile_options_deleter: Option<BytesDeleter>,
    }
    PJRT_LoadedExecutable_Destroy_Args { executable: *mut LoadedExecutable }
    PJRT_LoadedExecutable_GetExecutable_Args {
        loaded_executable: *mut LoadedExecutable, executable: *mut Executable,
    }
    PJRT_LoadedExecutable_AddressableDevices_Args {
        executable: *mut LoadedExecutable, addressable_devices: *const *mut Device,
        num_addressable_devices: usize,
    }
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
        executable: *mut LoadedExecutable, addressable_device_logical_ids: *const LogicalDeviceIds,
        num_addressable_device_logical_ids: usize,
    }
    PJRT_LoadedExecutable_Delete_Args { executable: *mut LoadedExecutable }
    PJRT_LoadedExecutable_IsDeleted_Args { executable: *mut LoadedExecutable, is_deleted: u8 }
    PJRT_LoadedExecutable_Fingerprint_Args {
        executable: *mut LoadedExecutable, executable_fingerprint: *const c_char,
        executable_fingerprint_size: usize,
    }
    PJRT_LoadedExecutable_GetDeviceAssignment_Args {
        executable: *mut LoadedExecutable, serialized_bytes: *const c_char, serialized_bytes_size: usize,
        serialized_device_assignment: *mut SerializedBytes,
        serialized_device_assignment_deleter: Option<BytesDeleter>,
    }
    PJRT_LoadedExecutable_Execute_Args {
        executable: *mut LoadedExecutable, options: *const PJRT_ExecuteOptions,
        argument_lists: *const *const *mut Buffer, num_devices: usize, num_args: usize,
        output_lists: *const *mut *mut Buffer, device_complete_events: *mut *mut Event,
        execute_device: *mut Device,
    }
    PJRT_ExecuteContext_Create_Args { context: *mut ExecuteContext }
    PJRT_ExecuteContext_Destroy_Args { context: *mut ExecuteContext }
    PJRT_Buffer_Destroy_Args { buffer: *mut Buffer }
    PJRT_Buffer_ElementType_Args { buffer: *mut Buffer, r#type: u32 }
    PJRT_Buffer_Dimensions_Args { buffer: *mut Buffer, dims: *const i64, num_dims: usize }
    PJRT_Buffer_UnpaddedDimensions_Args { buffer: *mut Buffer, unpadded_dims: *const i64, num_dims: usize }
    PJRT_Buffer_DynamicDimensionIndices_Args {
        buffer: *mut Buffer, dynamic_dim_indices: *const usize, num_dynamic_dims: usize,
    }
    PJRT_Buffer_GetMemoryLayout_Args { buffer: *mut Buffer, layout: PJRT_Buffer_MemoryLayout }
    PJRT_Buffer_OnDeviceSizeInBytes_Args { buffer: *mut Buffer, on_device_size_in_bytes: usize }
    PJRT_Buffer_Device_Args { buffer: *mut Buffer, device: *mut Device }
    PJRT_Buffer_Memory_Args { buffer: *mut Buffer, memory: *mut Memory }
    PJRT_Buffer_Delete_Args { buffer: *mut Buffer }
    PJRT_Buffer_IsDeleted_Args { buffer: *mut Buffer, is_deleted: u8 }
    PJRT_Buffer_CopyToDevice_Args { buffer: *mut Buffer, dst_device: *mut Device, dst_buffer: *mut Buffer }
    PJRT_Buffer_CopyToMemory_Args { buffer: *mut Buffer, dst_memory: *mut Memory, dst_buffer: *mut Buffer }
    PJRT_Buffer_ToHostBuffer_Args {
        src: *mut Buffer, host_layout: *const PJRT_Buffer_MemoryLayout, dst: *mut c_void, dst_size: usize,
        event: *mut Event,
    }
    PJRT_Buffer_CopyRawToHost_Args {
        buffer: *mut Buffer, dst: *mut c_void, offset: i64, transfer_size: i64, event: *mut Event,
    }
    PJRT_Buffer_IsOnCpu_Args { buffer: *mut Buffer, is_on_cpu: u8 }
    PJRT_Buffer_ReadyEvent_Args { buffer: *mut Buffer, event: *mut Event }
    PJRT_Buffer_UnsafePointer_Args { buffer: *mut Buffer, buffer_pointer: usize }
    PJRT_Buffer_IncreaseExternalReferenceCount_Args { buffer: *mut Buffer }
    PJRT_Buffer_DecreaseExternalReferenceCount_Args { buffer: *mut Buffer }
    PJRT_FFI_Type_Register_Args {
        type_name: *const c_char, type_name_size: usize, type_id: i64, type_info: *const c_void,
    }
    PJRT_FFI_UserData_Add_Args {
        context: *mut ExecuteContext, type_id: i64, data: *mut c_void, deleter: Option<StateDeleter>,
    }
    PJRT_Layouts_MemoryLayout_Destroy_Args { layout: *mut MemoryLayout }
    PJRT_Layouts_MemoryLayout_Serialize_Args {
        layout: *mut MemoryLayout, serialized_bytes: *const c_char, serialized_bytes_size: usize,
        serialized_layout: *mut SerializedBytes, serialized_layout_deleter: Option<BytesDeleter>,
    }
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
        client: *mut Client, r#type: u32, dims: *const i64, num_dims: usize, layout: *mut MemoryLayout,
    }
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args { buffer: *mut Buffer, layout: *mut MemoryLayout }
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
        topology_description: *mut Topology, r#type: u32, dims: *const i64, num_dims: usize,
        layout: *mut MemoryLayout,
    }
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
        executable: *mut Executable, num_outputs: usize, layouts: *const *mut MemoryLayout,
    }
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
        executable: *mut Executable, num_parameters: usize, layouts: *const *mut MemoryLayout,
    }
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
        executable: *mut Executable, num_parameters: usize, shardings: *const *const c_char,
        sharding_sizes: *const usize,
    }
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
        executable: *mut Executable, num_outputs: usize, shardings: *const *const c_char,
        sharding_sizes: *const usize,
    }
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: *mut Buffer, device_memory_ptr: *mut c_void }
}
