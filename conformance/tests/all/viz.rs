//! Pictures of programs: every instruction is there once, names are never markup, and other programs read
//! what is written.

use std::collections::BTreeMap;
use std::process::Command;

use hlo::{ElementType, Module, NewInstruction, Opcode, Shape, Span};
use hlo_conformance::viz::{Picture, dot, page, svg};
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, err, hlo, json_lines, out};
use crate::function;

const PROGRAM: &str = "HloModule steps
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
fused { p = f32[8]{0} parameter(0)  t = f32[8]{0} tanh(p)  ROOT e = f32[8]{0} multiply(t, t) }
body { v = f32[8]{0} parameter(0)  ROOT f = f32[8]{0} fusion(v), kind=kLoop, calls=fused }
cond { v = f32[8]{0} parameter(0)  z = f32[] constant(0)  r = f32[] reduce(v, z), dimensions={0}, to_apply=add
  l = f32[] constant(0.001)  ROOT g = pred[] compare(r, l), direction=GT }
ENTRY main { a = f32[8]{0} parameter(0), metadata={op_name=\"jit(f)/</script><script>alert(1)</script>\" source_file=\"m.py\" source_line=7}
  w = f32[8]{0} while(a), condition=cond, body=body  ROOT n = f32[8]{0} negate(w) }";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("viz/a page has every instruction once", every_instruction_once),
        function("viz/names are text in every format", hostile_names),
        function("viz/dot is read by Graphviz", graphviz),
        function("viz/the command line", command_line),
        function("viz/a profile has the time of what ran", profile),
        function("viz/a profile of the compiled program has its steps", compiled_profile),
        function("viz/large programs are drawn", large),
        function("viz/a browser shows the page", browser),
    ]
}

fn module(text: &str) -> Module {
    hlo_engines::frontend::parse_text(text).0.unwrap()
}

/// The data of a page, as the script in it reads them.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn every_instruction_once() {
    let module = module(PROGRAM);
    let text = page::write(&Picture::new("m.hlo", &module, None));
    let data = data(&text);
    let found = data["instructions"].as_array().unwrap();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    found.iter().for_each(|i| *names.entry(i[0].as_str().unwrap()).or_default() += 1);
    let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        *wanted.entry(&module.instr(id).name).or_default() += 1;
    }
    assert_eq!(names, wanted);
    // Every record is in one computation, and in one row of it.
    let mut seen = vec![0; found.len()];
    for c in data["computations"].as_array().unwrap() {
        let (first, count) = (c["first"].as_u64().unwrap(), c["count"].as_u64().unwrap());
        let rows = c["rows"].as_array().unwrap().iter().flat_map(|r| r.as_array().unwrap());
        rows.map(|e| e.as_u64().unwrap())
            .filter(|&e| e < count)
            .for_each(|e| seen[(first + e) as usize] += 1);
    }
    assert!(seen.iter().all(|&n| n == 1), "{seen:?}");
    assert_eq!(data["computations"][0]["name"], "main", "the entry is first");
    // Operands and called computations are by number.
    let number = |name: &str| found.iter().position(|i| i[0] == name).unwrap();
    assert_eq!(found[number("n")][3], serde_json::json!([number("w")]));
    let called = found[number("w")][4].as_array().unwrap();
    let names: Vec<&serde_json::Value> =
        called.iter().map(|c| &data["computations"][c.as_u64().unwrap() as usize]["name"]).collect();
    assert_eq!(names, ["cond", "body"]);
    assert_eq!(found[number("r")][5], "dimensions={0}, to_apply=add");
    assert_eq!(found[number("l")][5], "(0.001)");
    // By hand: a reducer of 3 instructions, which count 1 each, on 8 elements; 32 + 4 + 4 bytes.
    assert_eq!((&found[number("r")][6], &found[number("r")][7]), (&24.into(), &40.into()));
    // The elements of a reducer are not executed one by one.
    assert!(found[number("s")][8].is_null());
    assert_eq!(found[number("a")][10], "jit(f)/</script><script>alert(1)</script>, m.py:7");
}

const HOSTILE: &str = "</script><script>alert(1)</script><!--\"'&<b>\\\n\u{1}]]>{|}\u{2028}";

fn hostile() -> Module {
    let mut module = Module::new(HOSTILE);
    let c = module.add_computation(HOSTILE.into(), Span::NONE);
    module.set_entry(c);
    let f32s = Shape::array(ElementType::F32, &[2]);
    let parameter = NewInstruction::new(Opcode::Parameter, f32s.clone(), &[])
        .attr(hlo::AttrKey::ParameterNumber, hlo::AttrValue::Int(0))
        .named(HOSTILE);
    let p = module.append(c, parameter);
    let root = module.append(c, NewInstruction::new(Opcode::Negate, f32s, &[p]).named("\\\"; a -> b //"));
    module.set_root(c, root);
    module
}

fn hostile_names() {
    let module = hostile();
    let picture = Picture::new(HOSTILE, &module, None);
    let html = page::write(&picture);
    assert_eq!(html.matches("</script").count(), 2, "data and script end once each");
    assert_eq!(html.matches("<script").count(), 2);
    let json = &html[html.find("id=\"data\">").unwrap() + 10..html.find("</script").unwrap()];
    assert!(!json.contains(['<', '>', '&', '\u{2028}', '\n']), "nothing in the data looks like markup");
    assert_eq!(data(&html)["instructions"][0][0], HOSTILE, "and they read back as they were");
    assert!(
        !html.contains("http://") && !html.contains("https://") && !html.contains("url("),
        "nothing is loaded"
    );
    let svg = svg::write(&picture);
    let text = well_formed(&svg);
    assert!(text.contains("</script><script>alert(1)"), "{text}");
    let dot = dot::write(&picture);
    assert_eq!(check_dot(&dot), (2, 1));
    assert!(dot.contains("\\\"; a -> b //"));
}

/// The text of an XML document. Panics where it is not well-formed.
fn well_formed(xml: &str) -> String {
    let (mut open, mut text, mut rest) = (Vec::new(), String::new(), xml);
    let entity = |piece: &str| {
        assert!(!piece.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{piece:?}");
        let mut out = String::new();
        for (i, part) in piece.split('&').enumerate() {
            let Some((name, after)) = part.split_once(';').filter(|_| i > 0) else {
                assert_eq!(i, 0, "a bare & in {piece}");
                out.push_str(part);
                continue;
            };
            let all = [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("#39", '\'')];
            out.push(all.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("&{name};")).1);
            out.push_str(after);
        }
        out
    };
    while let Some(at) = rest.find('<') {
        text.push_str(&entity(&rest[..at]));
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('?') {
            assert!(text.is_empty() && tag.ends_with('?'), "a declaration is at the beginning");
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "<{name}>");
        let mut keys = Vec::new();
        while !attributes.trim().is_empty() {
            let (key, value) = attributes.trim_start().split_once("=\"").expect("a quoted attribute");
            assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{key}");
            assert!(!keys.contains(&key), "{key} twice");
            keys.push(key);
            let (value, after) = value.split_once('"').expect("a closing quote");
            entity(value);
            attributes = after;
        }
        if !closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?}");
    text
}

/// Reads the grammar of Graphviz's language, as far as it is used: nodes and edges that are there. Panics
/// where it is broken.
fn check_dot(text: &str) -> (usize, usize) {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => {
                let (mut end, mut escaped) = (None, false);
                for (at, c) in rest.char_indices().skip(1) {
                    match c {
                        _ if escaped => escaped = false,
                        '\\' => escaped = true,
                        '"' => {
                            end = Some(at + 1);
                            break;
                        }
                        c => assert!(!c.is_control(), "a control character in a string"),
                    }
                }
                end.expect("a string ends")
            }
            '-' => {
                assert!(rest.starts_with("->"));
                2
            }
            '{' | '}' | '[' | ']' | ';' | ',' | '=' => 1,
            c if c.is_ascii_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len())
            }
            other => panic!("{other:?} in dot"),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    assert_eq!(tokens[0], "digraph");
    assert_eq!((tokens[2], *tokens.last().unwrap()), ("{", "}"));
    let (mut depth, mut declared, mut edges) = (0i64, Vec::new(), Vec::new());
    let mut at = 2;
    while at < tokens.len() {
        match tokens[at] {
            "{" => depth += 1,
            "}" => depth -= 1,
            "[" => {
                let node = tokens[at - 1];
                let closes = at + tokens[at..].iter().position(|&t| t == "]").unwrap();
                for part in tokens[at + 1..closes].split(|&t| t == ",") {
                    assert!(part.len() == 3 && part[1] == "=", "{part:?} is not key=value");
                }
                if tokens[at - 2] != "->" && node.starts_with('i') {
                    declared.push(node);
                }
                at = closes;
            }
            "->" => edges.push((tokens[at - 1], tokens[at + 1], tokens[at + 2] == "[")),
            _ => {}
        }
        assert!(depth >= 0);
        at += 1;
    }
    assert_eq!(depth, 0);
    let nodes = declared.len();
    let known = |n: &str| declared.contains(&n);
    assert!(edges.iter().all(|&(a, b, _)| known(a) && known(b)), "edges join nodes that are there");
    declared.sort_unstable();
    declared.dedup();
    assert_eq!(declared.len(), nodes, "a node is declared twice");
    (nodes, edges.iter().filter(|e| !e.2).count())
}

fn graphviz() {
    let module = module(PROGRAM);
    let text = dot::write(&Picture::new("m.hlo", &module, None));
    // By hand: 3 + 3 + 2 + 5 + 3 instructions; edges: add 2, fused 2 (both operands of e are t), body 1, cond
    // 4, main 2.
    assert_eq!(check_dot(&text), (16, 11));
    let svg = svg::write(&Picture::new("m.hlo", &module, None));
    well_formed(&svg);
    assert_eq!(svg.matches("<g id=\"i").count(), 16);
    let d = Dir::new();
    for (name, text) in [("m.dot", text), ("h.dot", dot::write(&Picture::new("h", &hostile(), None)))] {
        let file = d.file(name, text);
        match Command::new("dot").args(["-Tplain", &file]).output() {
            Ok(made) => assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr)),
            Err(_) => eprintln!("Graphviz is not installed: only the test's own reader has read {name}"),
        }
    }
}

fn command_line() {
    let d = Dir::new();
    let file = d.file("m.hlo", PROGRAM);
    let made = hlo(&["viz", &file]);
    ends(&made, 0);
    assert!(out(&made).contains("m.html: 16 instructions, "), "{}", out(&made));
    data(&std::fs::read_to_string(d.path("m.html")).unwrap());
    for (name, begins) in
        [("m.svg", "<?xml"), ("m.dot", "digraph"), ("m.gv", "digraph"), ("m.htm", "<!DOCTYPE html>")]
    {
        let path = d.path(name);
        ends(&hlo(&["viz", &file, "-o", path.to_str().unwrap()]), 0);
        assert!(std::fs::read_to_string(path).unwrap().starts_with(begins), "{name}");
    }
    let shown = hlo(&["viz", &file, "--format", "dot", "-o", "-"]);
    assert_eq!(check_dot(&out(&shown)), (16, 11));
    let json = hlo(&["viz", &file, "--json", "-o", d.path("j.svg").to_str().unwrap()]);
    assert_eq!(
        (&json_lines(&json)[0]["instructions"], &json_lines(&json)[0]["format"]),
        (&16.into(), &"svg".into())
    );
    let unknown = hlo(&["viz", &file, "-o", d.path("m.pdf").to_str().unwrap()]);
    ends(&unknown, 2);
    assert!(err(&unknown).contains("the name says no format"), "{}", err(&unknown));
    ends(&hlo(&["viz", &file, "-o", &file, "--format", "svg"]), 2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), PROGRAM, "the program is not written over");
    let broken = d.file("b.hlo", "HloModule b\nENTRY e { ROOT p = f32[2] negate(q) }");
    ends(&hlo(&["viz", &broken]), 3);
    assert!(!d.path("b.html").exists());
    let wrong =
        d.file("w.hlo", "HloModule w\nENTRY e { p = f32[2] parameter(0)  ROOT n = f32[3] negate(p) }");
    ends(&hlo(&["viz", &wrong]), 4);
    assert!(!d.path("w.html").exists());
    ends(&hlo(&["viz", &wrong, "--no-verify", "-q"]), 4);
    assert!(d.path("w.html").exists(), "what does not verify is drawn at one's own risk");
}

fn profile() {
    let d = Dir::new();
    let file = d.file("m.hlo", "HloModule m
b { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = f32[4] get-tuple-element(s), index=1
  k = s32[] constant(1)  j = s32[] add(i, k)  y = f32[4] tanh(x)  ROOT t = (s32[], f32[4]) tuple(j, y) }
c { s = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(5)  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { z = s32[] constant(0)  x = f32[4] parameter(0)  t = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(t), condition=c, body=b  ROOT r = f32[4] get-tuple-element(w), index=1 }");
    let page = d.path("m.html");
    ends(&hlo(&["viz", &file, "--profile", "-o", page.to_str().unwrap()]), 0);
    let data = data(&std::fs::read_to_string(page).unwrap());
    let of =
        |name: &str| data["instructions"].as_array().unwrap().iter().find(|i| i[0] == name).unwrap().clone();
    assert_eq!(of("y")[9][0], 5, "five iterations");
    assert_eq!(of("y")[8], 5, "which are estimated as well");
    assert_eq!(of("l")[9][0], 6);
    assert!(of("w")[9][1].as_f64().unwrap() >= of("y")[9][1].as_f64().unwrap(), "with what it runs");
    assert!(data["total_us"].as_f64().unwrap() > 0.0);
    assert_eq!(data["memory"]["measured"], true);
    assert!(!data["memory"]["points"].as_array().unwrap().is_empty());
}

fn compiled_profile() {
    let d = Dir::new();
    let file = d.file("m.hlo", "HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[64,64] parameter(0)  y = f32[64,64] tanh(x)  z = f32[64,64] multiply(y, x)  d = f32[64,64] dot(z, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  o = f32[] constant(0)  ROOT r = f32[64] reduce(d, o), dimensions={1}, to_apply=add }");
    let page = d.path("m.html");
    let page = page.to_str().unwrap();
    for platform in ["cpu:scalar", "cpu"] {
        if platform == "cpu" && cfg!(not(feature = "llvm")) {
            continue;
        }
        ends(&hlo(&["viz", &file, "--profile", "--platform", platform, "-o", page]), 0);
        let data = data(&std::fs::read_to_string(page).unwrap());
        let spent = |i: &serde_json::Value| i[9][1].as_f64();
        let instructions = data["instructions"].as_array().unwrap();
        let times: Vec<f64> = instructions.iter().filter_map(spent).collect();
        // The product, and fusions around it: what was compiled, not what was given.
        assert!((2..=4).contains(&times.len()), "{platform}: {times:?}");
        let dot = instructions.iter().find(|i| i[0].as_str().is_some_and(|n| n.starts_with("d"))).unwrap();
        assert_eq!(dot[9][0], 1, "{platform}: {dot}");
        let total = data["total_us"].as_f64().unwrap();
        assert!(total > 0.0 && (times.iter().sum::<f64>() - total).abs() < 0.01 * total, "{times:?} {total}");
        assert_eq!(data["memory"]["measured"], false);
    }
    // The time of a loop (of too many iterations to be unrolled) has that of its steps in it, which do not
    // count again.
    let file = d.file("l.hlo", "HloModule l
b { s = (s32[], f32[32,32]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = f32[32,32] get-tuple-element(s), index=1
  k = s32[] constant(1)  j = s32[] add(i, k)  y = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}  ROOT t = (s32[], f32[32,32]) tuple(j, y) }
c { s = (s32[], f32[32,32]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(300)  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { z = s32[] constant(0)  x = f32[32,32] parameter(0)  t = (s32[], f32[32,32]) tuple(z, x)
  w = (s32[], f32[32,32]) while(t), condition=c, body=b  ROOT r = f32[32,32] get-tuple-element(w), index=1 }");
    ends(&hlo(&["viz", &file, "--profile", "--platform", "cpu:scalar", "-o", page]), 0);
    let data = data(&std::fs::read_to_string(page).unwrap());
    let times = data["instructions"].as_array().unwrap().iter();
    let times: Vec<f64> = times.map(|i| i[9][1].as_f64().unwrap_or(0.0)).collect();
    let of_entry = data["computations"][0]["count"].as_u64().unwrap() as usize;
    let (entry, total) = (times[..of_entry].iter().sum::<f64>(), data["total_us"].as_f64().unwrap());
    assert!(
        (entry - total).abs() < 0.01 * total && times.iter().sum::<f64>() > 1.1 * total,
        "{times:?} {total}"
    );
    let refused = hlo(&["viz", &file, "--profile", "--platform", "passes:default", "-o", page]);
    ends(&refused, 2);
    assert!(err(&refused).contains("has no profile of instructions"), "{}", err(&refused));
}

fn large() {
    let mut text = String::from("HloModule m\n\nENTRY main {\n  v0 = f32[4] parameter(0)\n");
    let n = 10_000;
    for i in 1..n {
        let root = if i == n - 1 { "ROOT " } else { "" };
        text.push_str(&format!("  {root}v{i} = f32[4] subtract(v{}, v{})\n", i - 1 - i % 7 % i, i / 2));
    }
    text.push_str("}\n");
    let module = module(&text);
    let picture = Picture::new("m.hlo", &module, None);
    let html = page::write(&picture);
    assert_eq!(data(&html)["instructions"].as_array().unwrap().len(), n);
    assert!(html.len() < 4_000_000, "{} bytes", html.len());
    assert_eq!(check_dot(&dot::write(&picture)).0, n);
}

/// The page in a browser, where there is one: it draws, and says so.
fn browser() {
    let d = Dir::new();
    let file = d.file("page.html", page::write(&Picture::new("m.hlo", &module(PROGRAM), None)));
    let folder = d.path("profile");
    let shown = ["chromium", "chromium-browser", "google-chrome"].iter().find_map(|browser| {
        Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", folder.display()))
            .arg(format!("file://{file}#search=tanh"))
            .output()
            .ok()
    });
    let Some(shown) = shown else {
        eprintln!("no Chromium is installed: the page is not looked at in a browser");
        return;
    };
    let dom = out(&shown);
    assert!(dom.contains("data-ready=\""), "the script has ended: {}\n{}", dom, err(&shown));
    // What was searched for is found, in a fusion in the body of a loop, and shown.
    assert!(dom.contains("tanh, in fused"), "{dom}");
}
