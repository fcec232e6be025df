//! The assignment of buffers of a compiled program.

use super::Type::*;
use super::shapes::PRIMITIVE_TYPE;
use super::{enums, messages};

enums! {
    HEAP_SIMULATOR_TRACE_EVENT_KIND "HeapSimulatorTrace.Event.Kind" { ALLOC = 0, FREE = 1, SHARE_WITH = 2, }
}

messages! {
    BUFFER_ASSIGNMENT buffer_assignment "BufferAssignmentProto" {
        logical_buffers LOGICAL_BUFFERS = 1: many Message(&LOGICAL_BUFFER);
        buffer_aliases BUFFER_ALIASES = 2: many Message(&BUFFER_ASSIGNMENT_BUFFER_ALIAS);
        buffer_allocations BUFFER_ALLOCATIONS = 3: many Message(&BUFFER_ALLOCATION);
        heap_simulator_traces HEAP_SIMULATOR_TRACES = 4: many Message(&HEAP_SIMULATOR_TRACE);
        peak_buffers PEAK_BUFFERS = 5: many Message(&BUFFER_ASSIGNMENT_PEAK_BUFFERS);
    }
    LOGICAL_BUFFER logical_buffer "LogicalBufferProto" {
        id ID = 1: one Int64;
        size SIZE = 2: one Int64;
        defined_at DEFINED_AT = 3: one Message(&LOGICAL_BUFFER_LOCATION);
        color COLOR = 4: one Int64;
    }
    LOGICAL_BUFFER_LOCATION logical_buffer_location "LogicalBufferProto.Location" {
        instruction_name INSTRUCTION_NAME = 2: one String;
        shape_index SHAPE_INDEX = 3: many Int64;
        instruction_id INSTRUCTION_ID = 4: one Int64;
    }
    BUFFER_ASSIGNMENT_BUFFER_ALIAS buffer_assignment_buffer_alias "BufferAssignmentProto.BufferAlias" {
        source_buffer_id SOURCE_BUFFER_ID = 1: one Int64;
        location LOCATION = 2: one Message(&LOGICAL_BUFFER_LOCATION);
    }
    BUFFER_ALLOCATION buffer_allocation "BufferAllocationProto" {
        index INDEX = 1: one Int64;
        size SIZE = 2: one Int64;
        is_thread_local IS_THREAD_LOCAL = 3: one Bool;
        is_entry_computation_parameter IS_ENTRY_COMPUTATION_PARAMETER = 5: one Bool;
        parameter_number PARAMETER_NUMBER = 6: one Int64;
        maybe_live_out MAYBE_LIVE_OUT = 7: one Bool;
        color COLOR = 8: one Int64;
        assigned ASSIGNED = 9: many Message(&BUFFER_ALLOCATION_ASSIGNED);
        parameter_shape_index PARAMETER_SHAPE_INDEX = 10: many Int64;
        is_tuple IS_TUPLE = 11: one Bool;
        is_constant IS_CONSTANT = 12: one Bool;
        is_parameter_aliased_with_output IS_PARAMETER_ALIASED_WITH_OUTPUT = 13: one Bool;
    }
    BUFFER_ALLOCATION_ASSIGNED buffer_allocation_assigned "BufferAllocationProto.Assigned" {
        logical_buffer_id LOGICAL_BUFFER_ID = 1: one Int64;
        offset OFFSET = 2: one Int64;
        size SIZE = 3: one Int64;
        element_type ELEMENT_TYPE = 4: one Enum(&PRIMITIVE_TYPE);
    }
    HEAP_SIMULATOR_TRACE heap_simulator_trace "HeapSimulatorTrace" {
        events EVENTS = 1: many Message(&HEAP_SIMULATOR_TRACE_EVENT);
        whole_module_simulation WHOLE_MODULE_SIMULATION = 2: one Bool;
        buffer_allocation_index BUFFER_ALLOCATION_INDEX = 3: one Int64;
    }
    HEAP_SIMULATOR_TRACE_EVENT heap_simulator_trace_event "HeapSimulatorTrace.Event" {
        kind KIND = 1: one Enum(&HEAP_SIMULATOR_TRACE_EVENT_KIND);
        buffer_id BUFFER_ID = 2: one Int64;
        computation_name COMPUTATION_NAME = 3: one String;
        instruction_name INSTRUCTION_NAME = 4: one String;
        share_with_canonical_id SHARE_WITH_CANONICAL_ID = 5: one Int64;
    }
    BUFFER_ASSIGNMENT_PEAK_BUFFERS buffer_assignment_peak_buffers "BufferAssignmentProto.PeakBuffers" {
        index INDEX = 1: one Int64;
        logical_buffer_ids LOGICAL_BUFFER_IDS = 2: many Int64;
    }
}
