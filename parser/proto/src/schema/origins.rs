//! Where instructions came from, and what else describes them.

use super::Type::*;
use super::{enums, messages};

enums! {
    COMPILATION_EVENT "CompilationEvent" { COMPILATION_EVENT_UNKNOWN_EVENT = 0, COMPILATION_EVENT_FIRST_COMPILATION = 1, COMPILATION_EVENT_RECOMPILATION = 2, }
    PROFILE_GENERATION_STRATEGY "ProfileGenerationStrategy" { PROFILE_GENERATION_STRATEGY_UNKNOWN = 0, PROFILE_GENERATION_STRATEGY_GA = 1, PROFILE_GENERATION_STRATEGY_FANTA = 2, PROFILE_GENERATION_STRATEGY_CFO = 3, PROFILE_GENERATION_STRATEGY_EXHAUSTIVE = 4, PROFILE_GENERATION_STRATEGY_LCM_GNN = 5, PROFILE_GENERATION_STRATEGY_LCM_MOE = 6, }
    PROFILE_SOURCE "ProfileSource" { PROFILE_SOURCE_UNKNOWN_SOURCE = 0, PROFILE_SOURCE_EMBEDDED = 1, PROFILE_SOURCE_REMOTE = 2, }
    PROFILE_TYPE "ProfileType" { INVALID = 0, WINDOW = 1, FLAG = 2, INTEGER = 3, }
}

messages! {
    OP_METADATA op_metadata "OpMetadata" {
        op_type OP_TYPE = 1: one String;
        op_name OP_NAME = 2: one String;
        source_file SOURCE_FILE = 3: one String;
        source_line SOURCE_LINE = 4: one Int32;
        profile_type PROFILE_TYPE = 5: many Enum(&PROFILE_TYPE);
        size_of_generated_code_in_bytes SIZE_OF_GENERATED_CODE_IN_BYTES = 8: one Int64;
        size_of_memory_working_set_in_bytes SIZE_OF_MEMORY_WORKING_SET_IN_BYTES = 9: one Int64;
        profile_info PROFILE_INFO = 10: one Message(&OP_METADATA_PROFILE_INFO);
        deduplicated_name DEDUPLICATED_NAME = 12: one String;
        stack_frame_id STACK_FRAME_ID = 15: one Int32;
        scheduling_name SCHEDULING_NAME = 16: one String;
        source_end_line SOURCE_END_LINE = 17: one Int32;
        source_column SOURCE_COLUMN = 18: one Int32;
        source_end_column SOURCE_END_COLUMN = 19: one Int32;
        metadata_payload METADATA_PAYLOAD = 20: one Message(&PAYLOAD);
    }
    OP_METADATA_PROFILE_INFO op_metadata_profile_info "OpMetadata.ProfileInfo" {
        profile_type PROFILE_TYPE = 1: many Enum(&PROFILE_TYPE);
        relative_speedup RELATIVE_SPEEDUP = 2: one Double;
        profile_source PROFILE_SOURCE = 3: one Enum(&PROFILE_SOURCE);
        compilation_event COMPILATION_EVENT = 4: one Enum(&COMPILATION_EVENT);
        profile_generation_strategy PROFILE_GENERATION_STRATEGY = 5: one Enum(&PROFILE_GENERATION_STRATEGY);
    }
    PAYLOAD payload "Payload" {
        value VALUE = 1: one Bytes;
        id ID = 2: one Int64;
    }
    FRONTEND_ATTRIBUTES frontend_attributes "FrontendAttributes" {
        map MAP = 1: many Message(&FRONTEND_ATTRIBUTES_MAP_ENTRY);
    }
    FRONTEND_ATTRIBUTES_MAP_ENTRY frontend_attributes_map_entry "FrontendAttributes.MapEntry" {
        key KEY = 1: one String;
        value VALUE = 2: one String;
    }
    STATISTICS_VIZ statistics_viz "StatisticsViz" {
        stat_index_to_visualize STAT_INDEX_TO_VISUALIZE = 1: one Int64;
        statistics STATISTICS = 2: many Message(&STATISTIC);
    }
    STATISTIC statistic "Statistic" {
        stat_name STAT_NAME = 1: one String;
        stat_val STAT_VAL = 2: one Double;
    }
    ORIGINAL_VALUE original_value "OriginalValueProto" {
        elements ELEMENTS = 1: many Message(&ORIGINAL_VALUE_ELEMENT);
        is_synthetic_call IS_SYNTHETIC_CALL = 2: one Bool;
    }
    ORIGINAL_VALUE_ELEMENT original_value_element "OriginalValueElementProto" {
        shape_index SHAPE_INDEX = 1: many Int64;
        original_array ORIGINAL_ARRAY = 2: one Message(&ORIGINAL_ARRAY);
    }
    ORIGINAL_ARRAY original_array "OriginalArrayProto" {
        instruction_name INSTRUCTION_NAME = 1: one String;
        shape_index SHAPE_INDEX = 2: many Int64;
    }
}
