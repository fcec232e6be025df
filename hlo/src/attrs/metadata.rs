//! Where an instruction came from in the user's program (`OpMetadata`, `StackFrameIndexProto` of
//! `xla/xla_data.proto`, `xla/service/hlo.proto`).

/// `metadata={...}`. A field is `None` (or empty) where the text does not have it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Metadata {
    /// Framework's operation type.
    pub op_type: Option<Box<str>>,
    /// Framework's operation name.
    pub op_name: Option<Box<str>>,
    /// Source file.
    pub source_file: Option<Box<str>>,
    /// Line.
    pub source_line: Option<i64>,
    /// Last line.
    pub source_end_line: Option<i64>,
    /// Column.
    pub source_column: Option<i64>,
    /// Last column.
    pub source_end_column: Option<i64>,
    /// Kinds of profile that led to an optimization.
    pub profile_type: Option<Vec<i64>>,
    /// Name of the computation that this one was merged with.
    pub deduplicated_name: Option<Box<str>>,
    /// Name under which it was scheduled.
    pub scheduling_name: Option<Box<str>>,
    /// Frame in [`StackTables`].
    pub stack_frame_id: Option<i64>,
    /// Bytes.
    pub size_of_generated_code_in_bytes: Option<i64>,
    /// Bytes.
    pub size_of_memory_working_set_in_bytes: Option<i64>,
    /// `preserve_layout=true`.
    pub preserve_layout: Option<bool>,
    /// `metadata_payload`, unescaped.
    pub payload: Option<Box<str>>,
    /// Fields that are not known here, verbatim and in order: `(key, value)`.
    pub unknown: Vec<(Box<str>, Box<str>)>,
}

/// The tables after the module header that `stack_frame_id` refers to. Ids in text are one-based; here
/// position 0 has id 1.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StackTables {
    /// `FileNames`
    pub file_names: Vec<Box<str>>,
    /// `FunctionNames`
    pub function_names: Vec<Box<str>>,
    /// `FileLocations`
    pub file_locations: Vec<FileLocation>,
    /// `StackFrames`
    pub stack_frames: Vec<StackFrame>,
}

/// An entry of `FileLocations`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileLocation {
    /// Id in `FileNames`.
    pub file_name_id: i64,
    /// Id in `FunctionNames`.
    pub function_name_id: i64,
    /// Line.
    pub line: i64,
    /// Last line.
    pub end_line: i64,
    /// Column.
    pub column: i64,
    /// Last column.
    pub end_column: i64,
}

/// An entry of `StackFrames`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackFrame {
    /// Id in `FileLocations`.
    pub file_location_id: i64,
    /// As written in the text: id of the caller's frame; its own id at the outermost.
    pub parent_frame_id: i64,
}

impl StackTables {
    /// Whether there is nothing to print.
    pub fn is_empty(&self) -> bool {
        self.file_names.is_empty()
            && self.function_names.is_empty()
            && self.file_locations.is_empty()
            && self.stack_frames.is_empty()
    }
}
