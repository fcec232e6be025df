//! Counts, sizes and times as people read and write them.

use std::time::Duration;

/// `1,234` up to 99,999, then `16.8M`.
pub fn count(n: u64) -> String {
    match n {
        0..100_000 => grouped(n),
        100_000..1_000_000 => format!("{:.0}k", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1}M", n as f64 / 1e6),
        _ => format!("{:.1}G", n as f64 / 1e9),
    }
}

/// Thousands set apart by commas.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `64.0 MiB`.
pub fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..0x10_0000 => format!("{:.1} KiB", n as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// `2.41 ms`.
pub fn time(t: Duration) -> String {
    let s = t.as_secs_f64();
    if s < 1e-3 {
        format!("{:.0} us", s * 1e6)
    } else if s < 1.0 {
        format!("{:.2} ms", s * 1e3)
    } else if s < 120.0 {
        format!("{s:.2} s")
    } else {
        format!("{}:{:02} min", s as u64 / 60, s as u64 % 60)
    }
}

/// Reads `8GiB`, `512M`, `1e9`, `4096`: suffixes are powers of 1024, `kB`, `MB`, `GB` of 1000.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("`{unit}` is no unit of size: use B, KiB, MiB, GiB or TiB")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a size such as 8GiB"))?;
    let bytes = number * scale as f64;
    if bytes >= 1.8e19 {
        return Err(format!("`{text}` is too large"));
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(count(16_777_216), "16.8M");
        assert_eq!(count(99_999), "99,999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(67_108_864), "64.0 MiB");
        assert_eq!(time(Duration::from_micros(2410)), "2.41 ms");
        assert_eq!(parse_bytes("8GiB"), Ok(8 << 30));
        assert_eq!(parse_bytes("1.5k"), Ok(1536));
        assert_eq!(parse_bytes("2 GB"), Ok(2_000_000_000));
        assert!(parse_bytes("lots").is_err());
        assert!(parse_bytes("8Gb8").is_err());
        assert!(parse_bytes("99999999999999TiB").is_err());
    }
}
