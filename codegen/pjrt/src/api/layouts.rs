//! The Layouts extension, version 3: how arrays are laid out in memory.

use std::ptr;

use crate::api::extension::{Extension, functions};
use crate::api::structs::{
    PJRT_Layouts_MemoryLayout_Destroy_Args, PJRT_Layouts_MemoryLayout_Serialize_Args,
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args,
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args,
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args,
};
use crate::error::{Failure, Result};
use crate::handles::{self, Handle, as_pointers, object};
use crate::layout::{self, Order};
use crate::opaque;
use crate::serialized;

/// `PJRT_Layouts_MemoryLayout`: a layout, minor to major.
#[derive(Debug)]
pub struct MemoryLayout(Box<[i64]>);

object!(MemoryLayout, "memory layout");

/// Layouts that a caller reads, and that live as long as this.
#[derive(Debug)]
pub struct OwnLayouts(Box<[Handle<MemoryLayout>]>);

impl OwnLayouts {
    /// Of arrays, each with its rank.
    pub fn new<'o>(all: impl Iterator<Item = (&'o Order, usize)>) -> Self {
        let one = |(order, rank)| Handle::new(MemoryLayout(layout::minor_to_major(order, rank)));
        Self(all.map(one).collect())
    }
}

impl Drop for OwnLayouts {
    fn drop(&mut self) {
        self.0.iter().for_each(|layout| layout.destroy());
    }
}

/// `PJRT_Extension_Type_Layouts`.
const EXTENSION_TYPE_LAYOUTS: u32 = 4;

/// `PJRT_Layouts_Extension`.
pub static LAYOUTS_EXTENSION: Extension<7> = Extension::new(
    EXTENSION_TYPE_LAYOUTS,
    ptr::null(),
    functions![
        "PJRT_Layouts_MemoryLayout_Destroy" => destroy,
        "PJRT_Layouts_MemoryLayout_Serialize" => serialize,
        "PJRT_Layouts_PJRT_Client_GetDefaultLayout" => default_of_client,
        "PJRT_Layouts_PJRT_Buffer_MemoryLayout" => of_buffer,
        "PJRT_Layouts_PJRT_Topology_GetDefaultLayout" => default_of_topology,
        "PJRT_Layouts_PJRT_Executable_GetOutputLayouts" => of_outputs,
        "PJRT_Layouts_PJRT_Executable_GetParameterLayouts" => of_parameters,
    ],
);

fn destroy(args: &mut PJRT_Layouts_MemoryLayout_Destroy_Args) -> Result<()> {
    handles::destroy(args.layout)
}

fn serialize(args: &mut PJRT_Layouts_MemoryLayout_Serialize_Args) -> Result<()> {
    let layout = handles::get(args.layout)?;
    let given = serialized::give(layout::text(&layout.0).into_bytes());
    (args.serialized_bytes, args.serialized_bytes_size) = (given.start, given.size);
    (args.serialized_layout, args.serialized_layout_deleter) = (given.object, given.deleter);
    Ok(())
}

/// Row-major, whatever the array.
fn default_layout(rank: usize) -> Result<*mut opaque::MemoryLayout> {
    if rank > hlo::shape::MAX_RANK {
        return Err(Failure::invalid(format!("an array of {rank} dimensions")));
    }
    Ok(handles::give(MemoryLayout(layout::minor_to_major(&None, rank))))
}

fn default_of_client(args: &mut PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args) -> Result<()> {
    handles::get(args.client)?;
    args.layout = default_layout(args.num_dims)?;
    Ok(())
}

fn default_of_topology(args: &mut PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args) -> Result<()> {
    handles::get(args.topology_description)?;
    args.layout = default_layout(args.num_dims)?;
    Ok(())
}

fn of_buffer(args: &mut PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    args.layout = handles::give(MemoryLayout(buffer.minor_to_major().into()));
    Ok(())
}

fn of_outputs(args: &mut PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args) -> Result<()> {
    let executable = handles::get(args.executable)?;
    let layouts = &executable.program().result_layouts().0;
    (args.layouts, args.num_outputs) = (as_pointers(layouts), layouts.len());
    Ok(())
}

fn of_parameters(args: &mut PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args) -> Result<()> {
    let executable = handles::get(args.executable)?;
    let layouts = &executable.program().parameter_layouts().0;
    (args.layouts, args.num_parameters) = (as_pointers(layouts), layouts.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::structs;

    /// Sizes in bytes as the extension's header has them.
    #[test]
    fn structs_are_those_of_the_extension() {
        let size = |name: &str| structs::ALL.iter().find(|s| s.0 == name).map(|s| s.1);
        for (name, bytes) in [
            ("PJRT_Layouts_MemoryLayout_Destroy_Args", 24),
            ("PJRT_Layouts_MemoryLayout_Serialize_Args", 56),
            ("PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args", 56),
            ("PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args", 32),
            ("PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args", 56),
            ("PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args", 40),
            ("PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args", 40),
        ] {
            assert_eq!(size(name), Some(bytes), "{name}");
        }
        assert_eq!(size_of::<Extension<7>>(), 80);
    }

    #[test]
    fn layouts_are_written_as_xla_reads_them() {
        let mut args = structs::PJRT_Layouts_MemoryLayout_Serialize_Args {
            struct_size: 56,
            extension_start: ptr::null_mut(),
            layout: default_layout(3).unwrap(),
            serialized_bytes: ptr::null(),
            serialized_bytes_size: 0,
            serialized_layout: ptr::null_mut(),
            serialized_layout_deleter: None,
        };
        serialize(&mut args).unwrap();
        // SAFETY: these are the bytes that were given.
        let bytes = unsafe {
            std::slice::from_raw_parts(args.serialized_bytes.cast::<u8>(), args.serialized_bytes_size)
        };
        assert_eq!(bytes, b"{2,1,0}");
        handles::destroy(args.serialized_layout).unwrap();
        handles::destroy(args.layout).unwrap();
    }
}
