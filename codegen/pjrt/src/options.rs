//! `CompileOptionsProto`: of what a framework says to compilers in general, what matters to this one.
//!
//! The rest is what other back ends are told (autotuning, layouts of arguments, which the program says
//! itself), and skipped; of the debug options all but those that say what is dumped.

use crate::error::{Failure, Result};
use crate::xla_options::check_value;
use hlo_pjrt_abi::options::field;
use hlo_pjrt_abi::wire::{Fields, Value, put, put_number, put_packed};

/// Compile options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompileOptions {
    /// Replicas.
    pub replicas: u64,
    /// Partitions.
    pub partitions: u64,
    /// For each replica and partition a device; empty: not given.
    pub devices: Vec<u64>,
    /// The dump options.
    pub dump: DumpOptions,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self { replicas: 1, partitions: 1, devices: Vec::new(), dump: DumpOptions::default() }
    }
}

/// XLA's options of the same names, without what they begin with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DumpOptions {
    /// `xla_dump_to`: the folder; empty: nothing is dumped.
    pub to: String,
    /// `xla_dump_hlo_as_text`
    pub text: bool,
    /// `xla_dump_hlo_as_proto`
    pub proto: bool,
    /// `xla_dump_hlo_module_re`: only modules whose name this matches somewhere; empty: all.
    pub modules: String,
    /// `xla_dump_hlo_pass_re`: after passes whose name this matches somewhere, too; empty: none.
    pub passes: String,
}

fn number(value: Value<'_>, what: &str) -> Result<u64> {
    match value {
        Value::Number(n) => Ok(n),
        Value::Bytes(_) => Err(Failure::invalid(format!("the {what} is no number"))),
    }
}

fn message<'a>(value: Value<'a>, what: &str) -> Result<Fields<'a>> {
    match value {
        Value::Bytes(rest) => Ok(Fields::new(rest)),
        Value::Number(_) => Err(Failure::invalid(format!("the {what} is no message"))),
    }
}

impl CompileOptions {
    /// Reads a `CompileOptionsProto`.
    ///
    /// # Errors
    /// It is none, or its parts contradict each other.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Self::read_message(bytes)
            .map_err(|error| Failure { message: format!("the compile options: {}", error.message), ..error })
    }

    fn read_message(bytes: &[u8]) -> Result<Self> {
        let mut options = Self::default();
        let mut overrides = Vec::new();
        let mut all = Fields::new(bytes);
        while let Some((number, value)) = all.field()? {
            match number {
                field::BUILD_OPTIONS => options.read_build_options(message(value, "build options")?)?,
                field::OVERRIDES => overrides.push(message(value, "compiler option")?),
                _others => {}
            }
        }
        // They override the build options, wherever those are.
        for entry in overrides {
            options.dump.take(read_override(entry)?);
        }
        options.check()?;
        Ok(options)
    }

    fn read_build_options(&mut self, mut fields: Fields<'_>) -> Result<()> {
        while let Some((key, value)) = fields.field()? {
            match key {
                field::REPLICAS => self.replicas = number(value, "number of replicas")?,
                field::PARTITIONS => self.partitions = number(value, "number of partitions")?,
                field::ASSIGNMENT => self.read_assignment(message(value, "device assignment")?)?,
                field::DEBUG_OPTIONS => self.dump.read(message(value, "debug options")?)?,
                _others => {}
            }
        }
        Ok(())
    }

    fn read_assignment(&mut self, mut fields: Fields<'_>) -> Result<()> {
        let (mut replicas, mut computations) = (0, 0);
        let mut columns: Vec<Vec<u64>> = Vec::new();
        while let Some((key, value)) = fields.field()? {
            match key {
                field::REPLICA_COUNT => replicas = number(value, "replica count")?,
                field::COMPUTATION_COUNT => computations = number(value, "computation count")?,
                field::COMPUTATION_DEVICES => columns.push(device_ids(message(value, "device assignment")?)?),
                _others => {}
            }
        }
        let fits = columns.len() as u64 == computations && columns.iter().all(|c| c.len() as u64 == replicas);
        if !fits {
            let message = format!(
                "the device assignment says {replicas} replicas of {computations} computations, and has {} of {:?}",
                columns.len(),
                columns.iter().map(Vec::len).collect::<Vec<_>>()
            );
            return Err(Failure::invalid(message));
        }
        let replicas = columns.first().map_or(0, Vec::len);
        self.devices = (0..replicas).flat_map(|r| columns.iter().map(move |c| c[r])).collect();
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let Self { replicas, partitions, devices, dump: _ } = self;
        let wanted = replicas.checked_mul(*partitions);
        let Some(wanted) = wanted.filter(|&n| n > 0) else {
            let message = format!("{replicas} replicas of {partitions} partitions cannot be run");
            return Err(Failure::invalid(message));
        };
        if !devices.is_empty() && devices.len() as u64 != wanted {
            let message = format!(
                "{} devices are assigned to {replicas} replicas of {partitions} partitions",
                devices.len()
            );
            return Err(Failure::invalid(message));
        }
        Ok(())
    }
}

impl DumpOptions {
    /// Reads `DebugOptions`.
    fn read(&mut self, mut fields: Fields<'_>) -> Result<()> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        while let Some((key, value)) = fields.field()? {
            match (key, value) {
                (field::DUMP_TO, Value::Bytes(bytes)) => self.to = text(bytes),
                (field::DUMP_MODULES, Value::Bytes(bytes)) => self.modules = text(bytes),
                (field::DUMP_PASSES, Value::Bytes(bytes)) => self.passes = text(bytes),
                (field::DUMP_AS_TEXT, Value::Number(n)) => self.text = n != 0,
                (field::DUMP_AS_PROTO, Value::Number(n)) => self.proto = n != 0,
                _others => {}
            }
        }
        Ok(())
    }

    /// Takes an option by its name, if it is one of these.
    fn take(&mut self, (name, text): (String, String)) {
        let is_on = text == "1" || text.eq_ignore_ascii_case("true");
        match &*name {
            "xla_dump_to" => self.to = text,
            "xla_dump_hlo_module_re" => self.modules = text,
            "xla_dump_hlo_pass_re" => self.passes = text,
            "xla_dump_hlo_as_text" => self.text = is_on,
            "xla_dump_hlo_as_proto" => self.proto = is_on,
            _others => {}
        }
    }
}

/// The name and the value of an overridden option. An unknown one is refused, and so is a string that does
/// not parse as the type of a known one of XLA, most of which have no effect here: they configure its own
/// back ends.
fn read_override(mut entry: Fields<'_>) -> Result<(String, String)> {
    let (mut name, mut text, mut is_string) = (String::new(), String::new(), false);
    while let Some((key, value)) = entry.field()? {
        match (key, value) {
            (field::KEY, Value::Bytes(bytes)) => name = String::from_utf8_lossy(bytes).into_owned(),
            (field::VALUE, value) => {
                let mut fields = message(value, "value of a compiler option")?;
                while let Some((key, value)) = fields.field()? {
                    match (key, value) {
                        (field::STRING, Value::Bytes(bytes)) => {
                            (text, is_string) = (String::from_utf8_lossy(bytes).into_owned(), true);
                        }
                        (field::BOOL, Value::Number(n)) => text = (n != 0).to_string(),
                        _others => {}
                    }
                }
            }
            _others => {}
        }
    }
    if !name.starts_with("xla_") {
        return Err(Failure::invalid(format!("No such compile option: '{name}'")));
    }
    if is_string {
        check_value(&name, &text)?;
    }
    Ok((name, text))
}

/// Numbers one after another: packed, or a field each.
fn device_ids(mut fields: Fields<'_>) -> Result<Vec<u64>> {
    let mut ids = Vec::new();
    while let Some((key, value)) = fields.field()? {
        match (key, value) {
            (field::DEVICE_IDS, Value::Number(id)) => ids.push(id),
            (field::DEVICE_IDS, Value::Bytes(rest)) => {
                let mut packed = Fields::new(rest);
                while !packed.is_empty() {
                    ids.push(packed.varint()?);
                }
            }
            _others => {}
        }
    }
    Ok(ids)
}

/// The `DeviceAssignmentProto` of devices, for each replica and partition one.
pub fn assignment(replicas: u64, partitions: u64, ids: &[u64]) -> Vec<u8> {
    let mut message = Vec::new();
    put_number(&mut message, field::REPLICA_COUNT, replicas);
    put_number(&mut message, field::COMPUTATION_COUNT, partitions);
    for partition in 0..partitions as usize {
        let mut column = Vec::new();
        put_packed(
            &mut column,
            field::DEVICE_IDS,
            ids.iter().skip(partition).step_by(partitions as usize).copied(),
        );
        put(&mut message, field::COMPUTATION_DEVICES, &column);
    }
    message
}

#[cfg(test)]
mod tests {
    use hlo_pjrt_abi::options::write_for_one_device;

    use super::*;

    /// What jaxlib 0.10.2 writes, without its debug options.
    const OF_JAX: [u8; 27] = [
        0x1a, 25, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x20, 1, 0x28, 1, 0x4a, 9,
        8, 1, 0x10, 1, 0x1a, 3, 0x0a, 1,
    ];

    #[test]
    fn options_of_jax_are_read() {
        let mut bytes = OF_JAX.to_vec();
        bytes.push(0);
        bytes[1] = 26;
        let wanted = CompileOptions { devices: vec![0], ..CompileOptions::default() };
        assert_eq!(CompileOptions::read(&bytes).unwrap(), wanted);
        assert_eq!(CompileOptions::read(&[]).unwrap(), CompileOptions::default());
    }

    #[test]
    fn what_is_written_is_read() {
        for tupled in [false, true] {
            let bytes = write_for_one_device(tupled);
            assert_eq!(CompileOptions::read(&bytes).unwrap(), CompileOptions::default());
        }
        // As jaxlib writes it, but for the assignment of devices.
        assert_eq!(write_for_one_device(false)[2..], OF_JAX[2..17]);
    }

    #[test]
    fn assignments_are_read_back() {
        // Two replicas of three partitions; the second replica has devices 6, 7, 8.
        let ids = [3, 4, 5, 6, 7, 300];
        let mut build = Vec::new();
        put_number(&mut build, field::REPLICAS, 2);
        put_number(&mut build, field::PARTITIONS, 3);
        put(&mut build, field::ASSIGNMENT, &assignment(2, 3, &ids));
        let mut options = Vec::new();
        put(&mut options, field::BUILD_OPTIONS, &build);
        let devices = ids.to_vec();
        let wanted = CompileOptions { replicas: 2, partitions: 3, devices, ..CompileOptions::default() };
        assert_eq!(CompileOptions::read(&options).unwrap(), wanted);
    }

    #[test]
    fn whatever_is_cut_is_refused_or_read() {
        for n in 0..OF_JAX.len() {
            let _ = CompileOptions::read(&OF_JAX[..n]);
        }
        assert!(CompileOptions::read(&OF_JAX).is_err());
    }

    #[test]
    fn compiler_options_of_nobody_are_refused() {
        let options = |name: &str, text: &str| {
            let (mut value, mut entry, mut options) = (Vec::new(), Vec::new(), Vec::new());
            put(&mut value, field::STRING, text.as_bytes());
            put(&mut entry, field::KEY, name.as_bytes());
            put(&mut entry, field::VALUE, &value);
            put(&mut options, field::OVERRIDES, &entry);
            CompileOptions::read(&options)
        };
        assert!(options("xla_embed_ir_in_executable", "true").is_ok());
        let error = options("invalid_key", "true").unwrap_err();
        assert!(error.message.contains("No such compile option: 'invalid_key'"), "{}", error.message);
        let error = options("xla_embed_ir_in_executable", "invalid").unwrap_err();
        assert!(error.message.contains("is not a valid bool value."), "{}", error.message);
    }

    #[test]
    fn options_of_dumps_are_read() {
        let (mut debug, mut build, mut options) = (Vec::new(), Vec::new(), Vec::new());
        put(&mut debug, field::DUMP_TO, b"/of/flags");
        put(&mut debug, field::DUMP_PASSES, b"fusion");
        put_number(&mut debug, field::DUMP_AS_TEXT, 1);
        put(&mut build, field::DEBUG_OPTIONS, &debug);
        let over = |options: &mut Vec<u8>, name: &str, value: &dyn Fn(&mut Vec<u8>)| {
            let (mut entry, mut message) = (Vec::new(), Vec::new());
            value(&mut message);
            put(&mut entry, field::KEY, name.as_bytes());
            put(&mut entry, field::VALUE, &message);
            put(options, field::OVERRIDES, &entry);
        };
        // Overrides hold though they come first.
        over(&mut options, "xla_dump_to", &|m| put(m, field::STRING, b"/of/options"));
        over(&mut options, "xla_dump_hlo_as_proto", &|m| put_number(m, field::BOOL, 1));
        over(&mut options, "xla_dump_hlo_as_text", &|m| put(m, field::STRING, b"False"));
        put(&mut options, field::BUILD_OPTIONS, &build);
        let wanted = DumpOptions {
            to: "/of/options".to_owned(),
            text: false,
            proto: true,
            modules: String::new(),
            passes: "fusion".to_owned(),
        };
        assert_eq!(CompileOptions::read(&options).unwrap().dump, wanted);
    }

    #[test]
    fn contradictions_are_refused() {
        // Two partitions, and one device.
        let bytes = [0x1a, 13, 0x28, 2, 0x4a, 9, 8, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 0];
        let error = CompileOptions::read(&bytes).unwrap_err();
        assert!(error.message.contains("1 devices are assigned"), "{}", error.message);
        // No replicas at all.
        assert!(CompileOptions::read(&[0x1a, 2, 0x20, 0]).is_err());
        // Two replicas are announced, one is there.
        let bytes = [0x1a, 11, 0x4a, 9, 8, 2, 0x10, 1, 0x1a, 3, 0x0a, 1, 0];
        assert!(CompileOptions::read(&bytes).is_err());
    }
}
