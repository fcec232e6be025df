//! What XLA's text says and its protocol buffers do not: fields of the module's header, and how the text
//! looked.
//!
//! It is one field of `HloModuleProto` with a number that XLA does not use, so that XLA (which skips what it
//! does not know) reads the same module, and text comes back as it was. A module in XLA's own style of text
//! that says nothing else does not have it. A field of the same number in `HloInstructionProto` is the name
//! of an instruction in text, where another computation has one of that name: XLA wants names that are unique
//! in the module.

use super::Type::*;
use super::messages;

messages! {
    MODULE_TEXT module_text "hlo_reference.ModuleText" {
        style STYLE = 1: one Uint64;
        no_entry_layout NO_ENTRY_LAYOUT = 2: one Bool;
        replica_count REPLICA_COUNT = 3: one Int64;
        num_partitions NUM_PARTITIONS = 4: one Int64;
        alias_passthrough_params ALIAS_PASSTHROUGH_PARAMS = 5: one Bool;
        spmd_to_parameters SPMD_TO_PARAMETERS = 6: one Message(&FLAGS);
        spmd_to_output SPMD_TO_OUTPUT = 7: one Message(&FLAGS);
        is_scheduled IS_SCHEDULED = 8: one Bool;
        field FIELD = 9: many Message(&HEADER_FIELD);
    }
    FLAGS flags "hlo_reference.Flags" {
        each EACH = 1: many Bool;
        all ALL = 2: one Bool;
    }
    HEADER_FIELD header_field "hlo_reference.HeaderField" {
        key KEY = 1: one String;
        value VALUE = 2: one String;
    }
}
