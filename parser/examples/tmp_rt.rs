use hlo::print::*;
fn main() {
    let mut per: std::collections::BTreeMap<String, (usize, usize, usize, usize)> = Default::default();
    let verbose = std::env::var("V").is_ok();
    for path in std::io::stdin().lines() {
        let path = path.unwrap();
        let folder =
            path.split("/shared/").nth(1).unwrap_or("x").split('/').take(2).collect::<Vec<_>>().join("/");
        let folder = if folder.starts_with("bench") { "bench".to_string() } else { folder };
        let e = per.entry(folder).or_default();
        e.0 += 1;
        let text = match std::fs::read_to_string(&path) {
            Ok(t) => t,
            Err(x) => {
                println!("READ {path} {x}");
                continue;
            }
        };
        let p = hlo_parser::parse_module(&text, &Default::default());
        let Some(m) = p.module else {
            println!("PARSE {path}: {:?}", p.diagnostics.iter().next().map(|d| d.message.clone()));
            continue;
        };
        e.1 += 1;
        let out = print_module(&m, &PrintOptions::source(&m));
        if out == text {
            e.2 += 1
        } else {
            let (a, b) = out
                .lines()
                .zip(text.lines())
                .find(|(a, b)| a != b)
                .unwrap_or((&out[out.len().saturating_sub(30)..], &text[text.len().saturating_sub(30)..]));
            let at = a
                .bytes()
                .zip(b.bytes())
                .position(|(x, y)| x != y)
                .unwrap_or(a.len().min(b.len()))
                .saturating_sub(40);
            if verbose {
                println!(
                    "DIFF {path}\n  ours {}\n  text {}",
                    &String::from_utf8_lossy(&a.as_bytes()[at..]).chars().take(220).collect::<String>(),
                    String::from_utf8_lossy(&b.as_bytes()[at..]).chars().take(220).collect::<String>()
                );
            }
        }
        let again = hlo_parser::parse_module(&out, &Default::default());
        match again.module {
            None => {
                println!("REPARSE {path} {:?}", again.diagnostics.iter().next().map(|d| d.message.clone()))
            }
            Some(n) => match hlo::modules_equal(&m, &n) {
                Ok(()) => e.3 += 1,
                Err(d) => println!("NOTEQ {path} {d}"),
            },
        }
    }
    for (k, v) in per {
        println!("{k}: {} files, {} parsed, {} byte-exact, {} equal", v.0, v.1, v.2, v.3)
    }
}
