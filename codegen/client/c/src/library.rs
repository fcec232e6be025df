//! Libraries of several functions in C: `hlo_library`.

use std::ffi::{CString, c_char, c_void};

use hlo_client::exports::Library;
use hlo_client::{Code, CompileOptions, Error, VerifiedModule};

use super::{
    HloClient, HloError, HloExecutable, array, c_string, c_text, destroy, executable, give, give_bytes,
    guarded, invalid, object, text,
};

/// `hlo_library`.
#[derive(Debug)]
pub struct HloLibrary {
    library: Library,
    names: Vec<CString>,
}

/// `hlo_function`.
#[derive(Debug)]
#[repr(C)]
pub struct HloFunction {
    name: *const c_char,
    text: *const c_char,
    length: usize,
}

/// Compiles several programs to one artifact.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_library_compile_to_bytes(
    client: *mut HloClient,
    functions: *const HloFunction,
    count: usize,
    bytes: *mut *mut u8,
    bytes_length: *mut usize,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let (client, functions) =
            unsafe { (object(client, "the client")?, array(functions, count, "the list of functions")?) };
        let mut programs = Vec::with_capacity(count);
        for function in functions {
            // SAFETY: by the caller's word.
            let (name, program) =
                unsafe { (c_text(function.name, "a name")?, text(function.text, function.length)?) };
            let program = VerifiedModule::parse(program)
                .map_err(|e| Error::new(e.code(), format!("{name}: {e}")).caused_by(e))?;
            programs.push((name, program));
        }
        let functions: Vec<_> = programs.iter().map(|(name, program)| (*name, program)).collect();
        let artifact = Library::artifact(&client.0, &functions, &CompileOptions::default())?;
        // SAFETY: by the caller's word.
        unsafe { give_bytes(artifact, bytes, bytes_length) }
    })
}

/// Loads such an artifact.
///
/// # Safety
/// As the header says of every function; the bytes are to be trusted as a program is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_library_load(
    client: *mut HloClient,
    bytes: *const c_void,
    length: usize,
    loaded: *mut *mut HloLibrary,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let (client, bytes) =
            unsafe { (object(client, "the client")?, array(bytes.cast::<u8>(), length, "the library")?) };
        let library = Library::load(&client.0, bytes)?;
        let names = library.names().map(c_string).collect();
        // SAFETY: by the caller's word.
        unsafe { give(loaded, HloLibrary { library, names }) }
    })
}

/// Destroys a library; executables of it stay.
///
/// # Safety
/// A library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_library_destroy(library: *mut HloLibrary) {
    // SAFETY: by the caller's word.
    unsafe { destroy(library) }
}

/// How many functions it has.
///
/// # Safety
/// A library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_library_count(library: *const HloLibrary) -> usize {
    // SAFETY: by the caller's word.
    unsafe { library.as_ref() }.map_or(0, |l| l.names.len())
}

/// The name of a function; null: there is none of this ordinal.
///
/// # Safety
/// A library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_library_name(library: *const HloLibrary, ordinal: usize) -> *const c_char {
    // SAFETY: by the caller's word.
    let name = unsafe { library.as_ref() }.and_then(|l| l.names.get(ordinal));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// The ordinal of a function.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_library_find(
    library: *const HloLibrary,
    name: *const c_char,
    ordinal: *mut usize,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let (library, name) = unsafe { (object(library, "the library")?, c_text(name, "the name")?) };
        let found = library.library.ordinal(name);
        let found =
            found.ok_or_else(|| Error::new(Code::NotFound, format!("there is no function {name}")))?;
        if ordinal.is_null() {
            return Err(invalid("there is nowhere to put the result"));
        }
        // SAFETY: by the caller's word.
        unsafe { ordinal.write(found) };
        Ok(())
    })
}

/// A function by its ordinal.
///
/// # Safety
/// As the header says of every function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hlo_library_function(
    library: *const HloLibrary,
    ordinal: usize,
    function: *mut *mut HloExecutable,
) -> *mut HloError {
    guarded(|| {
        // SAFETY: by the caller's word.
        let library = &unsafe { object(library, "the library") }?.library;
        let found = executable(library.function(ordinal)?.clone());
        // SAFETY: by the caller's word.
        unsafe { give(function, HloExecutable { library: Some(library.clone()), ..found }) }
    })
}
