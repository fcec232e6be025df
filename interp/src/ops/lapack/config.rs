//! The settings of a call: a dictionary of MLIR, such as `{mode = 86 : ui8, uplo = 76 : ui8}`.

use hlo_matrices::Triangle;

use crate::custom_call::Call;
use crate::error::Result;

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting<'a> {
    Int(i64),
    Bool(bool),
    Other(&'a str),
}

/// The settings of a call, in the order of the text.
#[derive(Debug)]
pub(super) struct Config<'a> {
    call: &'a Call<'a>,
    settings: Vec<(&'a str, Setting<'a>)>,
}

impl<'a> Config<'a> {
    /// Reads the `backend_config` of a call, which must have exactly these settings.
    pub(super) fn new(call: &'a Call<'a>, keys: &[&str]) -> Result<Self> {
        let text = call.backend_config();
        let settings = parse(text)
            .ok_or_else(|| call.unsupported(&format!("whose backend_config is no dictionary: {text}")))?;
        if let Some((key, _)) = settings.iter().find(|(key, _)| !keys.contains(key)) {
            return Err(call.unsupported(&format!("with a setting `{key}`")));
        }
        Ok(Self { call, settings })
    }

    fn get(&self, key: &str) -> Result<Setting<'a>> {
        let found = self.settings.iter().find(|(k, _)| *k == key);
        found.map(|(_, s)| *s).ok_or_else(|| self.call.unsupported(&format!("without the setting `{key}`")))
    }

    fn bad<T>(&self, key: &str, setting: Setting<'_>) -> Result<T> {
        let value = match setting {
            Setting::Int(i) => i.to_string(),
            Setting::Bool(b) => b.to_string(),
            Setting::Other(s) => s.to_owned(),
        };
        Err(self.call.unsupported(&format!("with the setting `{key} = {value}`")))
    }

    /// A truth value.
    pub(super) fn bool(&self, key: &str) -> Result<bool> {
        match self.get(key)? {
            Setting::Bool(b) => Ok(b),
            other => self.bad(key, other),
        }
    }

    /// An integer.
    pub(super) fn int(&self, key: &str) -> Result<i64> {
        match self.get(key)? {
            Setting::Int(i) => Ok(i),
            other => self.bad(key, other),
        }
    }

    /// One of some characters, by its code; returns its meaning.
    pub(super) fn choice<T: Copy>(&self, key: &str, choices: &[(u8, T)]) -> Result<T> {
        let setting = self.get(key)?;
        let found = choices.iter().find(|(code, _)| setting == Setting::Int(i64::from(*code)));
        found.map_or_else(|| self.bad(key, setting), |(_, value)| Ok(*value))
    }

    /// `uplo`.
    pub(super) fn triangle(&self) -> Result<Triangle> {
        self.choice("uplo", &[(b'L', Triangle::Lower), (b'U', Triangle::Upper)])
    }
}

/// The entries of a dictionary; `None` if the text is none.
fn parse(text: &str) -> Option<Vec<(&str, Setting<'_>)>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    if inside.trim().is_empty() {
        return Some(Vec::new());
    }
    inside
        .split(',')
        .map(|entry| {
            let (key, value) = entry.split_once('=')?;
            let key = key.trim();
            let key = key.strip_prefix('"').and_then(|k| k.strip_suffix('"')).unwrap_or(key);
            let value = value.split_once(':').map_or(value, |(value, _)| value).trim();
            let setting = match (value, value.parse()) {
                ("true", _) => Setting::Bool(true),
                ("false", _) => Setting::Bool(false),
                (_, Ok(i)) => Setting::Int(i),
                (_, Err(_)) => Setting::Other(value),
            };
            (!key.is_empty() && !value.is_empty()).then_some((key, setting))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries() {
        let settings = parse("{mode = 86 : ui8, left = true, \"low\" = -1 : i32, other = dense<1>}").unwrap();
        let expected = [
            ("mode", Setting::Int(86)),
            ("left", Setting::Bool(true)),
            ("low", Setting::Int(-1)),
            ("other", Setting::Other("dense<1>")),
        ];
        assert_eq!(settings, expected);
        assert_eq!(parse("{}").unwrap(), []);
        assert_eq!(parse(" ").unwrap(), []);
        for bad in ["mode = 1", "{mode}", "{mode = 1", "{= 1}", "{mode = }", "{mode = 1,}"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
