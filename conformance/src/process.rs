//! Other programs' processes: lines for the shell, and their end.
//!
//! **Invariant:** a process that takes too long is ended with everything that it started.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// `line` with each place, such as `{module}`, replaced by its path, quoted; if it has none of them, `otherwise` is added to it before.
pub fn filled(line: &str, places: &[(&str, &Path)], otherwise: &str) -> String {
    let mut text = line.to_owned();
    if places.iter().all(|(place, _)| !line.contains(place)) {
        text.push(' ');
        text.push_str(otherwise);
    }
    for (place, path) in places {
        let quoted = format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
        text = text.replace(place, &quoted);
    }
    text
}

/// Makes a command the first of a group of its own, so that [`wait`] can end what it starts along with it.
pub fn grouped(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Waits for the process of a [`grouped`] command; `None` if it takes too long, and is ended with its group.
pub fn wait(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < timeout => std::thread::sleep(pause),
            Ok(None) | Err(_) => break,
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    // It may have ended just now: whoever is gone needs no ending.
    #[cfg(unix)]
    let _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
    let _ = child.kill();
    let _ = child.wait();
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_quoted() {
        let (a, b) = (Path::new("/a b"), Path::new("/it's"));
        let fill = |line| filled(line, &[("{x}", a), ("{y}", b)], "{y} {x}");
        assert_eq!(fill("run --in {x}"), "run --in '/a b'");
        assert_eq!(fill("run"), r"run '/it'\''s' '/a b'");
    }
}
