// Prints sizes and offsets of the structs of XLA's FFI, as the headers that it is compiled with have them.
#include <cstddef>
#include <cstdio>

#include "xla/ffi/api/c_api.h"

#define SIZE(type) std::printf("size %s %zu\n", #type, sizeof(type))
#define AT(type, field) std::printf("at %s %s %zu\n", #type, #field, offsetof(type, field))
#define OLDER_SIZE(type, version) std::printf("size %s_%s %zu\n", #type, #version, sizeof(type))
#define OLDER_AT(type, version, field) std::printf("at %s_%s %s %zu\n", #type, #version, #field, offsetof(type, field))
#define DECLARED(type) std::printf("declared %s %d\n", #type, (int)type##_STRUCT_SIZE)

int main() {
  std::printf("version %d %d\n", XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
  SIZE(XLA_FFI_ByteSpan); AT(XLA_FFI_ByteSpan, len);
  SIZE(XLA_FFI_Scalar); AT(XLA_FFI_Scalar, value);
  SIZE(XLA_FFI_Array); AT(XLA_FFI_Array, size); AT(XLA_FFI_Array, data);
  SIZE(XLA_FFI_TypeId);
  SIZE(XLA_FFI_Api_Version); AT(XLA_FFI_Api_Version, major_version); AT(XLA_FFI_Api_Version, minor_version);
  SIZE(XLA_FFI_Buffer); AT(XLA_FFI_Buffer, dtype); AT(XLA_FFI_Buffer, data); AT(XLA_FFI_Buffer, rank); AT(XLA_FFI_Buffer, dims);
  SIZE(XLA_FFI_Args); AT(XLA_FFI_Args, size); AT(XLA_FFI_Args, types); AT(XLA_FFI_Args, args);
  SIZE(XLA_FFI_Rets); AT(XLA_FFI_Rets, size); AT(XLA_FFI_Rets, types); AT(XLA_FFI_Rets, rets);
  SIZE(XLA_FFI_Attrs); AT(XLA_FFI_Attrs, size); AT(XLA_FFI_Attrs, types); AT(XLA_FFI_Attrs, names); AT(XLA_FFI_Attrs, attrs);
  SIZE(XLA_FFI_CallFrame); AT(XLA_FFI_CallFrame, api); AT(XLA_FFI_CallFrame, ctx); AT(XLA_FFI_CallFrame, stage);
  AT(XLA_FFI_CallFrame, args); AT(XLA_FFI_CallFrame, rets); AT(XLA_FFI_CallFrame, attrs); AT(XLA_FFI_CallFrame, future);
  DECLARED(XLA_FFI_CallFrame);
  AT(XLA_FFI_Handler_Bundle, instantiate); AT(XLA_FFI_Handler_Bundle, prepare); AT(XLA_FFI_Handler_Bundle, initialize);
  AT(XLA_FFI_Handler_Bundle, execute);
  AT(XLA_FFI_Handler_Register_Args, name); AT(XLA_FFI_Handler_Register_Args, platform); AT(XLA_FFI_Handler_Register_Args, bundle);
  DECLARED(XLA_FFI_Handler_Register_Args);
  SIZE(XLA_FFI_Error_Create_Args); AT(XLA_FFI_Error_Create_Args, message); AT(XLA_FFI_Error_Create_Args, errc);
  SIZE(XLA_FFI_Error_Destroy_Args); AT(XLA_FFI_Error_Destroy_Args, error);
  SIZE(XLA_FFI_Stream_Get_Args); AT(XLA_FFI_Stream_Get_Args, stream);
  SIZE(XLA_FFI_DeviceMemory_Allocate_Args); AT(XLA_FFI_DeviceMemory_Allocate_Args, size);
  AT(XLA_FFI_DeviceMemory_Allocate_Args, alignment); AT(XLA_FFI_DeviceMemory_Allocate_Args, data);
  SIZE(XLA_FFI_DeviceMemory_Free_Args); AT(XLA_FFI_DeviceMemory_Free_Args, data);
  SIZE(XLA_FFI_ThreadPool_Schedule_Args); AT(XLA_FFI_ThreadPool_Schedule_Args, task); AT(XLA_FFI_ThreadPool_Schedule_Args, data);
  SIZE(XLA_FFI_ThreadPool_NumThreads_Args); AT(XLA_FFI_ThreadPool_NumThreads_Args, num_threads);
  SIZE(XLA_FFI_RunId_Get_Args); AT(XLA_FFI_RunId_Get_Args, run_id);
  SIZE(XLA_FFI_DeviceOrdinal_Get_Args); AT(XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
  SIZE(XLA_FFI_Future_Create_Args); AT(XLA_FFI_Future_Create_Args, future);
  SIZE(XLA_FFI_Future_SetAvailable_Args); AT(XLA_FFI_Future_SetAvailable_Args, future);
  SIZE(XLA_FFI_Future_SetError_Args); AT(XLA_FFI_Future_SetError_Args, error);
  AT(XLA_FFI_Metadata, api_version); AT(XLA_FFI_Metadata, traits);
  SIZE(XLA_FFI_Metadata_Extension); AT(XLA_FFI_Metadata_Extension, metadata);
  AT(XLA_FFI_Api, api_version); AT(XLA_FFI_Api, internal_api); AT(XLA_FFI_Api, XLA_FFI_Error_Create);
  AT(XLA_FFI_Api, XLA_FFI_Error_Destroy); AT(XLA_FFI_Api, XLA_FFI_Handler_Register); AT(XLA_FFI_Api, XLA_FFI_Stream_Get);
  AT(XLA_FFI_Api, XLA_FFI_State_Set); AT(XLA_FFI_Api, XLA_FFI_State_Get);
  AT(XLA_FFI_Api, XLA_FFI_DeviceMemory_Allocate); AT(XLA_FFI_Api, XLA_FFI_DeviceMemory_Free);
  AT(XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule); AT(XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads);
  AT(XLA_FFI_Api, XLA_FFI_Future_Create); AT(XLA_FFI_Api, XLA_FFI_Future_SetAvailable); AT(XLA_FFI_Api, XLA_FFI_Future_SetError);
  AT(XLA_FFI_Api, XLA_FFI_RunId_Get); AT(XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);
#if XLA_FFI_API_MINOR == 1
  OLDER_SIZE(XLA_FFI_State_Set_Args, 0_1); OLDER_AT(XLA_FFI_State_Set_Args, 0_1, ctx); OLDER_AT(XLA_FFI_State_Set_Args, 0_1, type_id);
  OLDER_AT(XLA_FFI_State_Set_Args, 0_1, state); OLDER_AT(XLA_FFI_State_Set_Args, 0_1, deleter);
#elif XLA_FFI_API_MINOR == 2
  OLDER_SIZE(XLA_FFI_State_Set_Args, 0_2); OLDER_AT(XLA_FFI_State_Set_Args, 0_2, ctx); OLDER_AT(XLA_FFI_State_Set_Args, 0_2, type_id);
  OLDER_AT(XLA_FFI_State_Set_Args, 0_2, state);
#endif
#if XLA_FFI_API_MINOR < 3
  OLDER_SIZE(XLA_FFI_State_Get_Args, 0_2); OLDER_AT(XLA_FFI_State_Get_Args, 0_2, ctx); OLDER_AT(XLA_FFI_State_Get_Args, 0_2, type_id);
  OLDER_AT(XLA_FFI_State_Get_Args, 0_2, state);
#else
  SIZE(XLA_FFI_State_Set_Args); AT(XLA_FFI_State_Set_Args, ctx); AT(XLA_FFI_State_Set_Args, stage);
  AT(XLA_FFI_State_Set_Args, type_id); AT(XLA_FFI_State_Set_Args, state);
  SIZE(XLA_FFI_State_Get_Args); AT(XLA_FFI_State_Get_Args, ctx); AT(XLA_FFI_State_Get_Args, stage);
  AT(XLA_FFI_State_Get_Args, type_id); AT(XLA_FFI_State_Get_Args, state);
#endif
#if XLA_FFI_API_MINOR >= 2
  SIZE(XLA_FFI_TypeInfo); AT(XLA_FFI_TypeInfo, deleter);
  SIZE(XLA_FFI_Type_Register_Args); AT(XLA_FFI_Type_Register_Args, name); AT(XLA_FFI_Type_Register_Args, type_id);
  AT(XLA_FFI_Type_Register_Args, type_info); AT(XLA_FFI_Api, XLA_FFI_Type_Register);
  SIZE(XLA_FFI_Metadata); AT(XLA_FFI_Metadata, state_type_id);
#endif
#if XLA_FFI_API_MINOR >= 4
  SIZE(XLA_FFI_InternalExtension); AT(XLA_FFI_InternalExtension, type); AT(XLA_FFI_InternalExtension, next);
  SIZE(XLA_FFI_Handler_Bundle); AT(XLA_FFI_Handler_Bundle, record);
  SIZE(XLA_FFI_Handler_Register_Args); AT(XLA_FFI_Handler_Register_Args, traits);
  SIZE(XLA_FFI_Error_GetDetails_Args); AT(XLA_FFI_Error_GetDetails_Args, message); AT(XLA_FFI_Error_GetDetails_Args, errc);
  SIZE(XLA_FFI_InvokeContext_Get_Args); AT(XLA_FFI_InvokeContext_Get_Args, type_id); AT(XLA_FFI_InvokeContext_Get_Args, data);
  SIZE(XLA_FFI_InvokeContext_FindExtension_Args); AT(XLA_FFI_InvokeContext_FindExtension_Args, extension);
  AT(XLA_FFI_Api, XLA_FFI_Error_GetDetails); AT(XLA_FFI_Api, XLA_FFI_InvokeContext_Get); AT(XLA_FFI_Api, XLA_FFI_InvokeContext_FindExtension);
#endif
#if XLA_FFI_API_MINOR >= 5
  SIZE(XLA_FFI_CustomOptions_Get_Args); AT(XLA_FFI_CustomOptions_Get_Args, attrs);
  SIZE(XLA_FFI_Api); AT(XLA_FFI_Api, XLA_FFI_CustomOptions_Get);
#endif
  return 0;
}
