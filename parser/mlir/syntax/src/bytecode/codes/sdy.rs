//! Encodings of Shardy's dialect, which are the same in every version of VHLO.

use super::Field::{Attr, Attrs, Bool, OptionalAttr, OptionalCount, Signed, SignedList, Text};
use super::encodings;

encodings! {
    /// Attributes. There are no types.
    ATTRIBUTES:
    MANUAL_AXES 0 "manual_axes" 0 9 [Attrs],
    MESH_AXIS 1 "mesh_axis" 0 9 [Text, Signed],
    MESH 2 "mesh" 0 9 [Attrs, SignedList],
    SUB_AXIS 3 "sub_axis_info" 0 9 [Signed, Signed],
    AXIS_REF 4 "axis_ref" 0 9 [Text, OptionalAttr],
    DIMENSION_SHARDING 5 "dimension_sharding" 0 9 [Attrs, Bool, OptionalCount],
    SHARDING 6 "sharding" 0 9 [Attr, Attrs, Attrs],
    SHARDING_PER_VALUE 7 "sharding_per_value" 0 9 [Attrs],
    DIM_MAPPING 8 "dim_mapping" 0 9 [SignedList],
    TENSOR_MAPPING 9 "tensor_mapping" 0 9 [Attrs],
    OP_SHARDING_RULE 10 "op_sharding_rule" 0 9 [SignedList, Attrs, Attrs, SignedList, SignedList, SignedList, SignedList, Bool],
    AXIS_REF_LIST 11 "axis_ref_list" 0 9 [Attrs],
    LIST_OF_AXIS_REF_LISTS 12 "list_of_axis_ref_lists" 0 9 [Attrs],
    ALL_TO_ALL_PARAM 13 "all_to_all_param" 0 9 [Attrs, Signed, Signed],
    ALL_TO_ALL_PARAM_LIST 14 "all_to_all_param_list" 0 9 [Attrs],
    SHARDING_UNREDUCED 15 "sharding with unreduced axes" 0 9 [Attr, Attrs, Attrs, Attrs],
    SHARDING_PER_VALUE_UNREDUCED 16 "sharding_per_value with unreduced axes" 0 9 [Attrs],
    SHARDING_REDUCED_BY 17 "sharding with a reduction" 0 9 [Attr, Attrs, Attrs, Attrs, Signed],
}
