//! Reports: complete or absent, what is in them runs again, and says no more than it should.

use std::fs;

use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

const PROGRAM: &str = "HloModule secret_model
secret_add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
ENTRY secret_main { secret_p = f32[8] parameter(0)  secret_z = f32[] constant(0), metadata={op_name=\"secret/zero\" source_file=\"/home/secret/m.py\"}
  secret_w = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  secret_q = f32[6] slice(secret_p), slice={[0:6]}
  secret_n = f32[8] pad(secret_q, secret_z), padding=1_1
  ROOT secret_m = f32[8] multiply(secret_n, secret_w) }";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("reports/a failing program comes with what repeats it", failing),
        function("reports/anonymized ones name nobody", anonymized),
        function("reports/a program that is fine is reported too", fine),
        function("reports/a program that is not taken comes with why", refused),
        function("reports/what is not a report is not overwritten", not_overwritten),
    ]
}

fn failing() {
    let d = Dir::new();
    let (file, to) = (d.file("m.hlo", PROGRAM), d.path("report"));
    let to = to.to_str().unwrap();
    let made = hlo(&["report", &file, "-o", to, "--platform", "faulty:pad-low-sign", "--json"]);
    ends(&made, 0);
    let object = &json_lines(&made)[0];
    let files: Vec<&str> = object["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    assert_eq!(
        files,
        [
            "README.txt",
            "actual.npz",
            "environment.json",
            "expected.npz",
            "finding.json",
            "inputs.npz",
            "isolate.html",
            "module.hlo",
            "reduced",
            "snapshot.pb"
        ]
    );
    assert!(object["verdict"].as_str().unwrap().contains("pad"), "{}", out(&made));
    // It repeats what was found, in each of its forms.
    ends(&hlo(&["run", to, "-q"]), 1);
    ends(&hlo(&["run", &format!("{to}/reduced"), "-q"]), 1);
    ends(&hlo(&["isolate", to, "-q"]), 1);
    let snapshot = format!("{to}/snapshot.pb");
    ends(&hlo(&["run", &snapshot, "--platform", "interpreter", "--exact", "-q"]), 0);
    ends(&hlo(&["run", &snapshot, "--platform", "faulty:pad-low-sign", "-q"]), 1);
    let reduced = fs::read_to_string(format!("{to}/reduced/module.hlo")).unwrap();
    assert!(reduced.contains("pad(") && !reduced.contains("multiply("), "{reduced}");
    let environment = fs::read_to_string(format!("{to}/environment.json")).unwrap();
    assert!(environment.contains("\"hlo_report\": 1") && environment.contains("architecture"));
    // From the folder of a report another one is made.
    let again = d.path("again");
    ends(&hlo(&["report", to, "-o", again.to_str().unwrap(), "--max-time", "0s", "-q"]), 0);
    let text = |name: &str| fs::read_to_string(again.join(name)).unwrap();
    assert_eq!(text("module.hlo"), PROGRAM);
    assert!(!again.join("reduced").exists());
}

fn anonymized() {
    let d = Dir::new();
    let (file, to) = (d.file("secret.hlo", PROGRAM), d.path("report"));
    let fault = ["--platform", "faulty:pad-low-sign", "-q"];
    for (flag, keeps) in [("--anonymize", true), ("--anonymize=constants", false)] {
        ends(&hlo(&[&["report", &file, "-o", to.to_str().unwrap(), flag], &fault[..]].concat()), 0);
        for path in all_files(&to) {
            let bytes = fs::read(&path).unwrap();
            assert!(!bytes.windows(6).any(|w| w == b"secret"), "{}", path.display());
        }
        let text = fs::read_to_string(to.join("module.hlo")).unwrap();
        assert_eq!(text.contains("{1, 2, 3, 4, 5, 6, 7, 8}"), keeps, "{text}");
        ends(&hlo(&["run", to.to_str().unwrap(), "-q"]), 1);
    }
}

fn all_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    ["txt", "json", "hlo", "npz", "pb", "html"].iter().flat_map(|e| crate::files_below(folder, e)).collect()
}

fn fine() {
    let d = Dir::new();
    let (file, to) = (d.file("m.hlo", PROGRAM), d.path("report"));
    let made = hlo(&["report", &file, "-o", to.to_str().unwrap(), "--platform", "passes:default"]);
    ends(&made, 0);
    assert!(
        to.join("snapshot.pb").exists() && !to.join("reduced").exists() && !to.join("isolate.html").exists()
    );
    ends(&hlo(&["run", to.to_str().unwrap(), "-q"]), 0);
}

fn refused() {
    let d = Dir::new();
    let (file, to) =
        (d.file("m.hlo", "HloModule m\nENTRY e { ROOT p = f32[2] negate(q) }"), d.path("report"));
    let made = hlo(&["report", &file, "-o", to.to_str().unwrap()]);
    ends(&made, 0);
    assert_eq!(fs::read(to.join("module.hlo")).unwrap(), fs::read(&file).unwrap());
    assert!(fs::read_to_string(to.join("error.txt")).unwrap().contains("error["));
    ends(&hlo(&["report", &file, "-o", d.path("other").to_str().unwrap(), "--anonymize"]), 3);
    assert!(!d.path("other").exists());
    ends(&hlo(&["report", d.path("none.hlo").to_str().unwrap(), "-o", d.path("other").to_str().unwrap()]), 2);
    assert!(!d.path("other").exists());
    assert_eq!(fs::read_dir(d.path("")).unwrap().count(), 2, "nothing is left of what was not completed");
}

fn not_overwritten() {
    let d = Dir::new();
    let (file, to) = (d.file("m.hlo", PROGRAM), d.path("mine"));
    d.file("mine/notes.txt", "mine");
    let kept = hlo(&["report", &file, "-o", to.to_str().unwrap()]);
    ends(&kept, 2);
    assert!(err(&kept).contains("is not a report"), "{}", err(&kept));
    assert_eq!(fs::read_to_string(to.join("notes.txt")).unwrap(), "mine");
    // A report is.
    let to = d.path("report");
    for _ in 0..2 {
        ends(&hlo(&["report", &file, "-o", to.to_str().unwrap(), "--platform", "passes:default", "-q"]), 0);
    }
    assert_eq!(fs::read_dir(d.path("")).unwrap().count(), 3);
}
