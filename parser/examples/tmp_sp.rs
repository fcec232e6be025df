use hlo::print::*;
use std::time::Instant;
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let (mut pb, mut wb, mut sb) = (f64::MAX, f64::MAX, f64::MAX);
        let n = (40_000_000 / text.len()).clamp(5, 400);
        let mut out = 0;
        for _ in 0..n {
            let t = Instant::now();
            let p = hlo_parser::parse_module(&text, &Default::default());
            pb = pb.min(t.elapsed().as_secs_f64());
            let m = p.module.unwrap();
            let t = Instant::now();
            let s = print_module(&m, &PrintOptions::source(&m));
            wb = wb.min(t.elapsed().as_secs_f64());
            out = s.len();
            struct Null(usize);
            impl std::fmt::Write for Null {
                fn write_str(&mut self, s: &str) -> std::fmt::Result {
                    self.0 += s.len();
                    Ok(())
                }
            }
            let t = Instant::now();
            let mut null = Null(0);
            write_module(&m, &PrintOptions::source(&m), &mut null).unwrap();
            sb = sb.min(t.elapsed().as_secs_f64());
        }
        println!(
            "{:60} {:8} parse {:6.1} MB/s print {:6.1} MB/s stream {:6.1} MB/s",
            path.rsplit('/').next().unwrap(),
            text.len(),
            text.len() as f64 / pb / 1e6,
            out as f64 / wb / 1e6,
            out as f64 / sb / 1e6
        );
    }
}
