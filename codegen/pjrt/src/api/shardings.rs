//! The Shardings extension: how arguments and results of a program are divided among devices.
//!
//! A framework that finds no such extension asks for the whole program with each compilation, and takes the
//! shardings out of it.

use std::ffi::c_char;
use std::ptr;

use crate::api::extension::{Extension, functions};
use crate::api::layouts::LAYOUTS_EXTENSION;
use crate::api::structs::{
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args,
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args,
};
use crate::error::Result;
use crate::handles;

/// Messages `xla.OpSharding` that a caller reads, and that live as long as this.
#[derive(Debug)]
pub struct OwnShardings {
    starts: Box<[*const c_char]>,
    sizes: Box<[usize]>,
    /// What the pointers are to.
    _messages: Box<[Box<[u8]>]>,
}

// SAFETY: nothing in it is ever written; the pointers are to memory of its own.
unsafe impl Send for OwnShardings {}
// SAFETY: the same.
unsafe impl Sync for OwnShardings {}

impl OwnShardings {
    /// Of these messages.
    pub fn new(messages: Vec<Vec<u8>>) -> Self {
        let messages: Box<[Box<[u8]>]> = messages.into_iter().map(Vec::into_boxed_slice).collect();
        Self {
            starts: messages.iter().map(|message| message.as_ptr().cast()).collect(),
            sizes: messages.iter().map(|message| message.len()).collect(),
            _messages: messages,
        }
    }

    /// How many there are, where they begin and how many bytes they have: nulls if there are none.
    fn given(all: Option<&Self>) -> (usize, *const *const c_char, *const usize) {
        match all {
            Some(all) if !all.starts.is_empty() => {
                (all.starts.len(), all.starts.as_ptr(), all.sizes.as_ptr())
            }
            Some(_) | None => (0, ptr::null(), ptr::null()),
        }
    }
}

/// `PJRT_Extension_Type_Shardings`, since version 0.91.
const EXTENSION_TYPE_SHARDINGS: u32 = 19;

/// `PJRT_Shardings_Extension`.
pub static SHARDINGS_EXTENSION: Extension<2> = Extension::new(
    EXTENSION_TYPE_SHARDINGS,
    (&raw const LAYOUTS_EXTENSION).cast(),
    functions![
        "PJRT_Shardings_PJRT_Executable_ParameterShardings" => of_parameters,
        "PJRT_Shardings_PJRT_Executable_OutputShardings" => of_outputs,
    ],
);

fn of_parameters(args: &mut PJRT_Shardings_PJRT_Executable_ParameterShardings_Args) -> Result<()> {
    let executable = handles::get(args.executable)?;
    let shardings = executable.program().shardings();
    (args.num_parameters, args.shardings, args.sharding_sizes) =
        OwnShardings::given(shardings.map(|(arguments, _)| arguments));
    Ok(())
}

fn of_outputs(args: &mut PJRT_Shardings_PJRT_Executable_OutputShardings_Args) -> Result<()> {
    let executable = handles::get(args.executable)?;
    let shardings = executable.program().shardings();
    (args.num_outputs, args.shardings, args.sharding_sizes) =
        OwnShardings::given(shardings.map(|(_, results)| results));
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
        for name in ["ParameterShardings", "OutputShardings"] {
            let name = format!("PJRT_Shardings_PJRT_Executable_{name}_Args");
            assert_eq!(size(&name), Some(48), "{name}");
        }
        assert_eq!(size_of::<Extension<2>>(), 40);
    }

    #[test]
    fn messages_lie_where_callers_are_told() {
        let all = OwnShardings::new(vec![vec![8, 1], vec![]]);
        let (count, starts, sizes) = OwnShardings::given(Some(&all));
        // SAFETY: `given` returned two arrays of `count` elements, which `all` owns.
        let (starts, sizes) =
            unsafe { (std::slice::from_raw_parts(starts, count), std::slice::from_raw_parts(sizes, count)) };
        assert_eq!(sizes, [2, 0]);
        // SAFETY: the bytes of the first message.
        assert_eq!(unsafe { std::slice::from_raw_parts(starts[0].cast::<u8>(), 2) }, [8, 1]);
        assert!(OwnShardings::given(None).1.is_null());
        assert!(OwnShardings::given(Some(&OwnShardings::new(Vec::new()))).1.is_null());
    }
}
