//! What the tests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hlo::ArrayLiteral;
use hlo_client::artifact::Signature;
use hlo_client::backend::{Backend, Compiled, Cpu, Loaded};
use hlo_client::{
    Buffer, Client, ClientOptions, CompileOptions, Configuration, Error, Executable, VerifiedModule,
};

/// A client of the compiler. Under Miri, which executes no machine code, of the interpreter.
pub(crate) fn cpu() -> Client {
    if cfg!(miri) {
        return interpreter();
    }
    Client::cpu(ClientOptions { threads: 2, ..ClientOptions::default() }).unwrap()
}

/// A client of the interpreter.
pub(crate) fn interpreter() -> Client {
    Client::interpreter(ClientOptions::default()).unwrap()
}

pub(crate) fn floats(values: &[f32]) -> ArrayLiteral {
    ArrayLiteral::new([values.len() as i64].as_slice().into(), hlo::Buffer::F32(values.to_vec())).unwrap()
}

pub(crate) fn values(buffer: &Buffer) -> Vec<f32> {
    match &*buffer.to_literal().unwrap().buffer {
        hlo::Buffer::F32(values) => values.clone(),
        other => panic!("{:?}", other.element_type()),
    }
}

pub(crate) fn compile(client: &Client, text: &str) -> Executable {
    client.compile(&client.parse(text).unwrap(), &CompileOptions::default()).unwrap()
}

/// A program that adds two arrays of `n` floats, and by its constant differs from others.
pub(crate) fn adds(n: usize, constant: u32) -> String {
    format!(
        "HloModule adds\nENTRY e {{ a = f32[{n}] parameter(0)  b = f32[{n}] parameter(1)  s = f32[{n}] add(a, b)
           c = f32[] constant({constant})  cs = f32[{n}] broadcast(c), dimensions={{}}  ROOT r = f32[{n}] add(s, cs) }}"
    )
}

/// Values for the parameters of a program, which follow from their numbers and shapes.
pub(crate) fn arguments(client: &Client, executable: &Executable) -> Vec<Buffer> {
    let of = |(n, shape)| hlo::elided::elided_literal(&format!("argument{n}"), shape);
    let literals: Vec<hlo::Literal> = executable.parameters().iter().enumerate().filter_map(of).collect();
    literals.iter().flat_map(hlo::Literal::arrays).map(|array| client.buffer(array).unwrap()).collect()
}

/// The arrays of results.
pub(crate) fn arrays(buffers: &[Buffer]) -> Vec<ArrayLiteral> {
    buffers.iter().map(|buffer| buffer.to_literal().unwrap()).collect()
}

/// The texts below a folder that parse and verify, by path, in order.
pub(crate) fn programs(folder: &str) -> Vec<(String, VerifiedModule)> {
    let mut files = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(suffix) if suffix == "hlo" => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    let program = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        Some((path.display().to_string(), VerifiedModule::parse(&text).ok()?))
    };
    files.into_iter().filter_map(program).collect()
}

/// The compiler for the processor, which counts what it compiles.
#[derive(Debug)]
pub(crate) struct Counting(Cpu, AtomicUsize);

impl Counting {
    pub(crate) fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self(Cpu::new(threads, Configuration::default()), AtomicUsize::new(0)))
    }

    pub(crate) fn compilations(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl Backend for Counting {
    fn platform(&self) -> &'static str {
        self.0.platform()
    }

    fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }

    fn compile(
        &self,
        module: &Arc<hlo::Module>,
        options: &CompileOptions,
        keep: bool,
    ) -> Result<Compiled, Error> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.compile(module, options, keep)
    }

    fn load(&self, artifact: &[u8]) -> Result<(Signature, Arc<dyn Loaded>), Error> {
        self.0.load(artifact)
    }
}
