//! Kernels on CUDA devices: run, compare with the interpreter, list what there is.

#[cfg(feature = "cuda")]
use super::Ready;
use super::{Left, Run};
use crate::cli::ui::Ui;
use hlo_system::exit::{Exit, Failure};

/// The device of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// The interpreter.
    Interpreter,
    /// A CUDA device by its number.
    Cuda(usize),
}

impl std::str::FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no device; those are interpreter, cuda, cuda:1");
        match text.split_once(':') {
            None if text == "interpreter" => Ok(Choice::Interpreter),
            None if text == "cuda" => Ok(Choice::Cuda(0)),
            Some(("cuda", ordinal)) => ordinal.parse().map(Choice::Cuda).map_err(|_| wrong()),
            Some(_) | None => Err(wrong()),
        }
    }
}

#[cfg(not(feature = "cuda"))]
mod absent {
    use super::*;

    fn no_cuda<T>() -> Result<T, Failure> {
        Err(Failure::new(Exit::Unsupported, "this program was built without CUDA (feature `cuda`)"))
    }

    pub(crate) fn list(_ui: &Ui) -> Result<Exit, Failure> {
        no_cuda()
    }

    pub(super) fn arrays_of(_run: &Run, _ordinal: usize) -> Result<Vec<Left>, Failure> {
        no_cuda()
    }
}

#[cfg(not(feature = "cuda"))]
use absent::arrays_of;
#[cfg(not(feature = "cuda"))]
pub(super) use absent::list;
#[cfg(feature = "cuda")]
use present::arrays_of;
#[cfg(feature = "cuda")]
pub(super) use present::{list, open};

#[cfg(feature = "cuda")]
mod present {
    use std::time::Duration;

    use hlo_cuda::{Device, Driver, Error, Launch};
    use serde::Serialize;

    use super::super::kernel_of;
    use super::*;
    use hlo_engines::engine::xla_gpu::ptx_module;
    use hlo_system::files::read_source;

    /// The exit code of a failure of the device.
    pub(crate) fn failure(error: &Error) -> Failure {
        let exit = match error {
            Error::Compile { .. } => Exit::Unsupported,
            absent if absent.is_absent() => Exit::Unsupported,
            Error::Launch { .. } | Error::NoSuchSymbol { .. } => Exit::Usage,
            _failed => Exit::Trap,
        };
        Failure::new(exit, error.to_string())
    }

    /// Opens a device.
    pub(crate) fn open(ordinal: usize, seconds: u64) -> Result<Device, Failure> {
        let driver = Driver::load().map_err(|e| failure(&e))?;
        driver.open(ordinal, Duration::from_secs(seconds)).map_err(|e| failure(&e))
    }

    #[derive(Serialize)]
    struct DeviceObject {
        device: usize,
        name: String,
        sm: u32,
        multiprocessors: u32,
        memory_bytes: u64,
        shared_bytes_per_block: u32,
        clock_khz: u32,
        l2_bytes: u64,
        cuda: i32,
    }

    pub(crate) fn list(ui: &Ui) -> Result<Exit, Failure> {
        let driver = Driver::load().map_err(|e| failure(&e))?;
        for d in driver.devices().map_err(|e| failure(&e))? {
            if ui.json {
                ui.object(&DeviceObject {
                    device: d.ordinal,
                    sm: d.sm(),
                    name: d.name,
                    multiprocessors: d.multiprocessors,
                    memory_bytes: d.memory_bytes,
                    shared_bytes_per_block: d.shared_bytes_per_block_opt_in,
                    clock_khz: d.clock_khz,
                    l2_bytes: d.l2_bytes,
                    cuda: d.driver_version,
                });
            } else {
                ui.line(format!(
                    "cuda:{}  {}, sm_{}, {} multiprocessors, {:.1} GiB, {} KiB of shared memory a block, CUDA {}.{}",
                    d.ordinal,
                    d.name,
                    d.sm(),
                    d.multiprocessors,
                    d.memory_bytes as f64 / (1_u64 << 30) as f64,
                    d.shared_bytes_per_block_opt_in >> 10,
                    d.driver_version / 1000,
                    d.driver_version % 1000 / 10
                ));
            }
        }
        Ok(Exit::Ok)
    }

    /// The arrays after the kernel ran on a device. Those of which nothing is written begin as zeros.
    pub(super) fn arrays_of(run: &Run, ordinal: usize) -> Result<Vec<Left>, Failure> {
        let source = read_source(&run.file)?;
        let module = ptx_module(&run.file, &source.text)?;
        let kernel = kernel_of(run, &module)?;
        let device = open(ordinal, run.device_timeout)?;
        on_device(run, &device, &source.text, &kernel).map_err(|e| {
            let failure = failure(&e);
            Failure::new(failure.exit, format!("{}: {}", run.file, failure.message))
        })?
    }

    fn on_device(
        run: &Run,
        device: &Device,
        text: &str,
        kernel: &str,
    ) -> hlo_cuda::Result<Result<Vec<Left>, Failure>> {
        let function = device.module(text)?.function(kernel)?;
        let stream = device.stream()?;
        let (mut arguments, mut arrays) = (Vec::new(), Vec::new());
        let ready = match super::super::ready(run) {
            Ok(ready) => ready,
            Err(failure) => return Ok(Err(failure)),
        };
        for argument in ready {
            match argument {
                Ready::Number(bytes) => arguments.push(bytes),
                Ready::Array { name, shape, bytes, data } => {
                    let buffer = stream.allocate(bytes)?;
                    match data {
                        Some(data) => stream.write(&buffer, 0, &data)?,
                        None => stream.fill(&buffer, 0, bytes, 0)?,
                    }
                    arguments.push(buffer.address().to_le_bytes().to_vec());
                    arrays.push((name, shape, buffer));
                }
            }
        }
        let shared_bytes = u32::try_from(run.shared).unwrap_or(u32::MAX);
        stream.launch(&function, &Launch { grid: run.grid, block: run.block, shared_bytes, arguments })?;
        stream.synchronize()?;
        let mut all = Vec::new();
        for (name, shape, buffer) in arrays {
            all.push(Left { name, shape, bytes: stream.download(&buffer)?, unwritten: 0 });
        }
        Ok(Ok(all))
    }
}

/// Runs the kernel on a device.
pub(super) fn launch(run: &Run, ordinal: usize, ui: &Ui) -> Result<Exit, Failure> {
    let arrays = arrays_of(run, ordinal)?;
    super::give(run, &arrays, ui)?;
    Ok(Exit::Ok)
}

/// Elements that are shown where arrays differ.
const MAX_SHOWN: usize = 10;

/// Runs the kernel in the interpreter and on a device, and compares.
pub(super) fn compare(run: &Run, ui: &Ui) -> Result<Exit, Failure> {
    let ordinal = match run.device {
        Choice::Interpreter => 0,
        Choice::Cuda(ordinal) => ordinal,
    };
    let done = super::interpret(run)?;
    super::say(run, &done, ui);
    if done.stopped.is_some() {
        return Ok(done.exit);
    }
    let arrays = arrays_of(run, ordinal)?;
    Ok(done.exit.first_failure(differences(&done.arrays, &arrays, ui)))
}

/// Says where arrays differ.
fn differences(interpreter: &[Left], device: &[Left], ui: &Ui) -> Exit {
    let mut exit = Exit::Ok;
    for (i, d) in interpreter.iter().zip(device) {
        let width = i.shape.element_type.storage_bytes().max(1);
        let elements = i.bytes.chunks(width).zip(d.bytes.chunks(width)).enumerate();
        let different: Vec<_> = elements.filter(|(_, (x, y))| x != y).collect();
        if different.is_empty() {
            ui.detail(format!("{}: {} bytes are equal", i.name, i.bytes.len()));
            continue;
        }
        exit = Exit::Differs;
        let hex = |bytes: &[u8]| bytes.iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
        ui.line(format!("{}: {} of {} elements differ", i.name, different.len(), i.bytes.len() / width));
        for (at, (x, y)) in different.iter().take(MAX_SHOWN) {
            ui.line(format!("  [{at}]: interpreter {}, device {}", hex(x), hex(y)));
        }
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::{ArrayShape, ElementType};

    #[test]
    fn devices_are_read() {
        assert_eq!("interpreter".parse(), Ok(Choice::Interpreter));
        assert_eq!(("cuda".parse(), "cuda:3".parse()), (Ok(Choice::Cuda(0)), Ok(Choice::Cuda(3))));
        for text in ["", "gpu", "cuda:", "cuda:x", "interpreter:0"] {
            assert!(text.parse::<Choice>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_different_byte_is_a_difference() {
        let ui = Ui {
            quiet: true,
            verbose: false,
            json: true,
            color: false,
            color_errors: false,
            progress: false,
        };
        let left = |bytes: &[u8]| Left {
            name: "arg0".to_owned(),
            shape: ArrayShape::new(ElementType::U16, &[2]),
            bytes: bytes.to_vec(),
            unwritten: 0,
        };
        assert_eq!(differences(&[left(&[1, 2, 3, 4])], &[left(&[1, 2, 3, 4])], &ui), Exit::Ok);
        assert_eq!(differences(&[left(&[1, 2, 3, 4])], &[left(&[1, 2, 3, 5])], &ui), Exit::Differs);
    }
}
