//! The table of the API: its functions in order, each with what answers it, or nothing.
//!
//! **Invariant:** every slot has a function. One that nothing answers says so, with its name, and a caller
//! goes on.

use std::ffi::c_void;
use std::ptr;

pub use hlo_pjrt_abi::names::{Function, NAMES};

use crate::api::extension::Extension;
use crate::api::numbers::API_VERSION;
use crate::api::shardings::SHARDINGS_EXTENSION;
use crate::api::structs::PJRT_Api_Version;
use crate::border::{answer, enter};
use crate::error::{Error, Failure};
use crate::opaque;
use crate::{buffer, client, device, error, event, executable, execute, ffi, memory, topology, transfer};

/// `PJRT_Api`.
#[derive(Debug)]
#[repr(C)]
#[allow(dead_code, reason = "callers read the fields")]
pub struct Api {
    struct_size: usize,
    extension_start: *mut c_void,
    version: PJRT_Api_Version,
    functions: [Function; NAMES.len()],
}

// SAFETY: nothing in it is ever written, nor is what its one pointer points at.
unsafe impl Sync for Api {}

/// `PJRT_Extension_Type_FFI`.
const EXTENSION_TYPE_FFI: u32 = 5;

/// `PJRT_FFI_Extension`, version 3, of the C API 0.114: the functions of XLA's FFI.
pub static FFI_EXTENSION: Extension<3> = Extension::new(
    EXTENSION_TYPE_FFI,
    (&raw const SHARDINGS_EXTENSION).cast(),
    [ffi_type_register, ffi_user_data_add, ffi_register_handler],
);

unsafe extern "C" fn ffi_type_register(args: *mut c_void) -> *mut opaque::Error {
    // SAFETY: the C API: a function is given a struct of its own.
    unsafe { enter(args, "PJRT_FFI_Type_Register", ffi::type_register) }
}

unsafe extern "C" fn ffi_user_data_add(args: *mut c_void) -> *mut opaque::Error {
    // SAFETY: the C API: a function is given a struct of its own.
    unsafe { enter(args, "PJRT_FFI_UserData_Add", ffi::user_data_add) }
}

unsafe extern "C" fn ffi_register_handler(args: *mut c_void) -> *mut opaque::Error {
    answer("PJRT_FFI_Register_Handler", || ffi::register_handler(args.cast()))
}

/// The table.
pub static API: Api = Api {
    struct_size: size_of::<Api>(),
    extension_start: (&raw const FFI_EXTENSION).cast_mut().cast(),
    version: PJRT_Api_Version {
        struct_size: size_of::<PJRT_Api_Version>(),
        extension_start: ptr::null_mut(),
        major_version: API_VERSION.0,
        minor_version: API_VERSION.1,
    },
    functions: FUNCTIONS,
};

macro_rules! table {
    (@function $name:ident) => {{
        unsafe extern "C" fn call(_args: *mut c_void) -> *mut opaque::Error {
            Error::give(Failure::unimplemented(concat!(stringify!($name), " is not supported by this plugin")))
        }
        call as Function
    }};
    (@function $name:ident $handler:path) => {{
        unsafe extern "C" fn call(args: *mut c_void) -> *mut opaque::Error {
            // SAFETY: the C API: a function is given a struct of its own.
            unsafe { enter(args, stringify!($name), $handler) }
        }
        call as Function
    }};
    ($($name:ident $(=> $handler:path)?,)*) => {
        /// Names of the functions that these are for.
        #[cfg(test)]
        const FOR: &[&str] = &[$(stringify!($name)),*];
        /// Whether each is answered.
        #[cfg(test)]
        const IS_ANSWERED: &[bool] = &[$(table!(@is_answered $($handler)?)),*];
        const FUNCTIONS: [Function; NAMES.len()] = [$(table!(@function $name $($handler)?)),*];
    };
    (@is_answered) => { false };
    (@is_answered $handler:path) => { true };
}

table! {
    PJRT_Error_Destroy => error::destroy,
    PJRT_Error_Message => error::message,
    PJRT_Error_GetCode => error::get_code,
    PJRT_Plugin_Initialize => client::plugin_initialize,
    PJRT_Plugin_Attributes => client::plugin_attributes,
    PJRT_Event_Destroy => event::destroy,
    PJRT_Event_IsReady => event::is_ready,
    PJRT_Event_Error => event::error,
    PJRT_Event_Await => event::wait,
    PJRT_Event_OnReady => event::on_ready,
    PJRT_Client_Create => client::create,
    PJRT_Client_Destroy => client::destroy,
    PJRT_Client_PlatformName => client::platform_name,
    PJRT_Client_ProcessIndex => client::process_index,
    PJRT_Client_PlatformVersion => client::platform_version,
    PJRT_Client_Devices => client::devices,
    PJRT_Client_AddressableDevices => client::addressable_devices,
    PJRT_Client_LookupDevice => client::lookup_device,
    PJRT_Client_LookupAddressableDevice => client::lookup_addressable_device,
    PJRT_Client_AddressableMemories => client::addressable_memories,
    PJRT_Client_Compile => executable::compile,
    PJRT_Client_DefaultDeviceAssignment => client::default_device_assignment,
    PJRT_Client_BufferFromHostBuffer => transfer::from_host,
    PJRT_DeviceDescription_Id => device::description_id,
    PJRT_DeviceDescription_ProcessIndex => device::description_process_index,
    PJRT_DeviceDescription_Attributes => device::description_attributes,
    PJRT_DeviceDescription_Kind => device::description_kind,
    PJRT_DeviceDescription_DebugString => device::description_debug_string,
    PJRT_DeviceDescription_ToString => device::description_to_string,
    PJRT_Device_GetDescription => device::get_description,
    PJRT_Device_IsAddressable => device::is_addressable,
    PJRT_Device_LocalHardwareId => device::local_hardware_id,
    PJRT_Device_AddressableMemories => device::addressable_memories,
    PJRT_Device_DefaultMemory => device::default_memory,
    PJRT_Device_MemoryStats => device::memory_stats,
    PJRT_Memory_Id => memory::id,
    PJRT_Memory_Kind => memory::kind,
    PJRT_Memory_DebugString => memory::debug_string,
    PJRT_Memory_ToString => memory::to_string,
    PJRT_Memory_AddressableByDevices => memory::addressable_by_devices,
    PJRT_Executable_Destroy => executable::destroy,
    PJRT_Executable_Name => executable::name,
    PJRT_Executable_NumReplicas => executable::num_replicas,
    PJRT_Executable_NumPartitions => executable::num_partitions,
    PJRT_Executable_NumOutputs => executable::num_outputs,
    PJRT_Executable_SizeOfGeneratedCodeInBytes => executable::size_of_code,
    PJRT_Executable_GetCostAnalysis => executable::cost_analysis,
    PJRT_Executable_OutputMemoryKinds => executable::output_memory_kinds,
    PJRT_Executable_OptimizedProgram => executable::optimized_program,
    PJRT_Executable_Serialize => executable::serialize,
    PJRT_LoadedExecutable_Destroy => executable::destroy_loaded,
    PJRT_LoadedExecutable_GetExecutable => executable::get_executable,
    PJRT_LoadedExecutable_AddressableDevices => executable::addressable_devices,
    PJRT_LoadedExecutable_Delete => executable::delete,
    PJRT_LoadedExecutable_IsDeleted => executable::is_deleted,
    PJRT_LoadedExecutable_Execute => execute::execute,
    PJRT_Executable_DeserializeAndLoad => executable::deserialize_and_load,
    PJRT_LoadedExecutable_Fingerprint => executable::loaded_fingerprint,
    PJRT_Buffer_Destroy => buffer::destroy,
    PJRT_Buffer_ElementType => buffer::element_type,
    PJRT_Buffer_Dimensions => buffer::dimensions,
    PJRT_Buffer_UnpaddedDimensions => buffer::unpadded_dimensions,
    PJRT_Buffer_DynamicDimensionIndices => buffer::dynamic_dimension_indices,
    PJRT_Buffer_GetMemoryLayout => buffer::memory_layout,
    PJRT_Buffer_OnDeviceSizeInBytes => buffer::on_device_size,
    PJRT_Buffer_Device => buffer::device,
    PJRT_Buffer_Memory => buffer::memory,
    PJRT_Buffer_Delete => buffer::delete,
    PJRT_Buffer_IsDeleted => buffer::is_deleted,
    PJRT_Buffer_CopyToDevice => buffer::copy_to_device,
    PJRT_Buffer_ToHostBuffer => transfer::to_host,
    PJRT_Buffer_IsOnCpu => buffer::is_on_cpu,
    PJRT_Buffer_ReadyEvent => buffer::ready_event,
    PJRT_Buffer_UnsafePointer => buffer::unsafe_pointer,
    PJRT_Buffer_IncreaseExternalReferenceCount => buffer::increase_references,
    PJRT_Buffer_DecreaseExternalReferenceCount => buffer::decrease_references,
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer => buffer::device_pointer,
    PJRT_CopyToDeviceStream_Destroy,
    PJRT_CopyToDeviceStream_AddChunk,
    PJRT_CopyToDeviceStream_TotalBytes,
    PJRT_CopyToDeviceStream_GranuleSize,
    PJRT_CopyToDeviceStream_CurrentBytes,
    PJRT_TopologyDescription_Create,
    PJRT_TopologyDescription_Destroy => topology::destroy,
    PJRT_TopologyDescription_PlatformName => topology::platform_name,
    PJRT_TopologyDescription_PlatformVersion => topology::platform_version,
    PJRT_TopologyDescription_GetDeviceDescriptions => topology::device_descriptions,
    PJRT_TopologyDescription_Serialize,
    PJRT_TopologyDescription_Attributes => topology::attributes,
    PJRT_Compile,
    PJRT_Executable_OutputElementTypes => executable::output_element_types,
    PJRT_Executable_OutputDimensions => executable::output_dimensions,
    PJRT_Buffer_CopyToMemory => buffer::copy_to_memory,
    PJRT_Client_CreateViewOfDeviceBuffer => transfer::view_of_device_buffer,
    PJRT_Executable_Fingerprint => executable::fingerprint,
    PJRT_Client_TopologyDescription => client::topology_description,
    PJRT_Executable_GetCompiledMemoryStats => executable::memory_stats,
    PJRT_Memory_Kind_Id => memory::kind_id,
    PJRT_ExecuteContext_Create => execute::create_context,
    PJRT_ExecuteContext_Destroy => execute::destroy_context,
    PJRT_Buffer_CopyRawToHost => transfer::copy_raw_to_host,
    PJRT_AsyncHostToDeviceTransferManager_Destroy,
    PJRT_AsyncHostToDeviceTransferManager_TransferData,
    PJRT_Client_CreateBuffersForAsyncHostToDevice,
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer,
    PJRT_AsyncHostToDeviceTransferManager_Device,
    PJRT_AsyncHostToDeviceTransferManager_BufferCount,
    PJRT_AsyncHostToDeviceTransferManager_BufferSize,
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError,
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata,
    PJRT_Client_DmaMap,
    PJRT_Client_DmaUnmap,
    PJRT_Client_CreateUninitializedBuffer => transfer::uninitialized,
    PJRT_Client_UpdateGlobalProcessInfo,
    PJRT_TopologyDescription_Deserialize,
    PJRT_Client_CreateAliasBuffer,
    PJRT_Client_FulfillAliasBuffer,
    PJRT_LoadedExecutable_GetDeviceAssignment => executable::device_assignment,
    PJRT_Client_CreateErrorBuffer => transfer::error_buffer,
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral,
    PJRT_Buffer_CopyRawToHostFuture,
    PJRT_Device_PoisonExecution,
    PJRT_Device_CreateAsyncTrackingEvent,
    PJRT_AsyncTrackingEvent_Destroy,
    PJRT_Executable_GetCompileOptions => executable::compile_options,
    PJRT_Buffer_DonateWithControlDependency,
    PJRT_Event_Create => event::create,
    PJRT_Event_Set => event::set,
    PJRT_Device_GetAttributes => device::get_attributes,
    PJRT_Client_Load,
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds => executable::logical_ids,
    PJRT_Buffer_Bitcast,
    PJRT_Error_ForEachPayload => error::for_each_payload,
    PJRT_TopologyDescription_Fingerprint => topology::fingerprint,
    PJRT_Executable_ParameterMemoryKinds => executable::parameter_memory_kinds,
    PJRT_Device_ClearMemoryStats,
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace,
    PJRT_TopologyDescription_GetMemorySpaceKindIds,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::structs::{self, Struct as _};

    /// Sizes, offsets and slots against those that others have derived from the C header.
    #[test]
    fn structs_and_slots_are_those_of_the_c_api() {
        let facts = include_str!("../../tests/layout.txt");
        let mut checked = 0;
        let mut slots = 0;
        for line in facts.lines().filter(|l| !l.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["slot", number, name] => {
                    assert_eq!(NAMES.get(number.parse::<usize>().unwrap()), Some(&name));
                    slots += 1;
                }
                ["PJRT_Api", size] => assert_eq!(size_of::<Api>().to_string(), size),
                [name, size, ref fields @ ..] => {
                    let ours = structs::ALL.iter().find(|s| s.0 == name);
                    let &(_, our_size, our_fields) = ours.unwrap_or_else(|| panic!("{name} is missing"));
                    assert_eq!(our_size.to_string(), size, "size of {name}");
                    let ours: Vec<String> = our_fields
                        .iter()
                        .map(|(field, offset)| format!("{}:{offset}", field.trim_start_matches("r#")))
                        .collect();
                    assert_eq!(ours, fields, "fields of {name}");
                    checked += 1;
                }
                _ => panic!("{line}"),
            }
        }
        // Those of the extensions are checked where these are.
        let is_of_extension =
            |name: &str| ["PJRT_FFI", "PJRT_Layouts", "PJRT_Shardings"].iter().any(|e| name.starts_with(e));
        let of_extensions = structs::ALL.iter().filter(|s| is_of_extension(s.0)).count();
        assert_eq!(checked + of_extensions, structs::ALL.len());
        assert_eq!(slots, NAMES.len());
        assert_eq!(FOR, NAMES);
        assert_eq!(PJRT_Api_Version::NAME, "PJRT_Api_Version");
    }

    #[test]
    fn what_is_not_answered_says_so() {
        for (n, function) in API.functions.iter().enumerate().filter(|(n, _)| !IS_ANSWERED[*n]) {
            // SAFETY: such functions do not look at what they are given.
            let error = unsafe { function(ptr::null_mut()) };
            let mut args = structs::PJRT_Error_GetCode_Args {
                struct_size: size_of::<structs::PJRT_Error_GetCode_Args>(),
                extension_start: ptr::null_mut(),
                error,
                code: 0,
            };
            error::get_code(&mut args).unwrap();
            assert_eq!(args.code, error::Code::Unimplemented as u32, "{}", NAMES[n]);
            crate::handles::destroy(error).unwrap();
        }
    }

    #[test]
    fn null_is_an_error_everywhere() {
        for (function, name) in API.functions.iter().zip(NAMES) {
            // SAFETY: null is refused before anything is read.
            let error = unsafe { function(ptr::null_mut()) };
            assert!(!error.is_null(), "{name}");
            crate::handles::destroy(error).unwrap();
        }
    }
}
