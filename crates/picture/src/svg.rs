//! A recorded screen as an SVG: text in a window, which shows itself row by row as it did at the terminal. The last state is the picture
//! itself, so that it is whole wherever nothing moves. It has colours for bright and for dark surroundings, and no scripts. Pure.

use std::fmt::Write;
use std::time::Duration;

use crate::screen::{Span, Style, Version};

/// The width of a letter, and the height of a line, in units of the picture.
const LETTER: f64 = 8.4;
const LINE: f64 = 19.0;

/// Around the text, and above it for the title.
const MARGIN: f64 = 18.0;
const HEAD: f64 = 38.0;

const STYLE: &str = "\
svg{--b:#fff;--e:#d0d7de;--h:#f6f8fa;--t:#1f2328;--f:#656d76;--c1:#cf222e;--c2:#1a7f37;--c3:#9a6700;--c4:#0969da;--c5:#8250df;--c6:#1b7c83}\
@media(prefers-color-scheme:dark){svg{--b:#0d1117;--e:#30363d;--h:#161b22;--t:#e6edf3;--f:#8b949e;--c1:#ff7b72;--c2:#3fb950;--c3:#d29922;--c4:#58a6ff;--c5:#bc8cff;--c6:#39c5cf}}\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:var(--t);white-space:pre}\
.b{font-weight:600}.f{fill:var(--f)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}\
@keyframes h{from,to{opacity:0}}@keyframes s{from,to{opacity:1}}.l{animation:h}.p{opacity:0;animation:s}\
@media(prefers-reduced-motion){.l,.p{animation:none}}";

/// Draws rows that so many letters fit into.
pub(crate) fn draw(title: &str, columns: usize, rows: &[Vec<Version>]) -> String {
    let width = 2.0 * MARGIN + columns as f64 * LETTER;
    let height = HEAD + MARGIN + rows.len() as f64 * LINE + MARGIN / 2.0;
    let title = escaped(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
         <rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"9\" fill=\"var(--b)\" stroke=\"var(--e)\"/>\n\
         <path d=\"M.5 {HEAD}V9.5a9 9 0 0 1 9-9H{}a9 9 0 0 1 9 9V{HEAD}z\" fill=\"var(--h)\" stroke=\"var(--e)\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" class=\"f\">$ <tspan class=\"b\" style=\"fill:var(--t)\">{title}</tspan></text>\n",
        one(width),
        one(height),
        one(width - 1.0),
        one(height - 1.0),
        one(width - 9.5),
    );
    for (row, versions) in rows.iter().enumerate() {
        let y = HEAD + MARGIN + (row as f64 + 0.5) * LINE;
        versions.iter().for_each(|version| draw_version(&mut svg, y, version));
    }
    svg + "</svg>\n"
}

/// Draws what stood in a row: from its time on, or as long as it stood there.
fn draw_version(svg: &mut String, y: f64, version: &Version) {
    // Writing to a string cannot fail.
    let _ = match version.until {
        None => write!(svg, "<g class=\"l\" style=\"animation-duration:{}\">", seconds(version.from)),
        Some(until) => write!(
            svg,
            "<g class=\"p\" style=\"animation-duration:{};animation-delay:{}\">",
            seconds(until.saturating_sub(version.from)),
            seconds(version.from)
        ),
    };
    version.spans.iter().for_each(|span| draw_span(svg, y, span));
    svg.push_str("</g>\n");
}

fn draw_span(svg: &mut String, y: f64, span: &Span) {
    let x = MARGIN + span.column as f64 * LETTER;
    // Columns stand below each other whatever font there is.
    let length = span.text.chars().count() as f64 * LETTER;
    let class = class(span.style);
    let text = escaped(&span.text);
    let _ =
        write!(svg, "<text x=\"{}\" y=\"{y}\" textLength=\"{}\"{class}>{text}</text>", one(x), one(length));
}

fn class(style: Style) -> String {
    let color = style.color.map(|color| format!("c{color}"));
    let names = [style.bold.then(|| "b".to_owned()), style.faint.then(|| "f".to_owned()), color];
    let names: Vec<String> = names.into_iter().flatten().collect();
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

/// Writes a measure with at most one digit behind the point.
fn one(measure: f64) -> String {
    let text = format!("{measure:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn seconds(time: Duration) -> String {
    format!("{:.2}s", time.as_secs_f64())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Screen;

    fn drawn(chunks: &[(u64, &str)]) -> String {
        let mut screen = Screen::default();
        chunks.iter().for_each(|(at, text)| screen.write(Duration::from_millis(*at), text.as_bytes()));
        draw("demo <1>", 40, &screen.rows())
    }

    #[test]
    fn a_recorded_stream_becomes_a_picture() {
        let svg = drawn(&[
            (0, "\x1b[1mtitle\x1b[0m\r\n"),
            (100, "\x1b[2m  1.00s  » words\x1b[0m"),
            (900, "\r\x1b[2K\x1b[2m  2.00s  \x1b[0m\x1b[32m✓\x1b[0m a < b\r\n"),
        ]);
        let (head, body) = svg.split_once("</style>\n").expect("a style");
        assert_eq!(
            head.lines().next(),
            Some(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 372 103\" role=\"img\" aria-label=\"demo &lt;1&gt;\">"
            )
        );
        let expected = "\
<rect x=\".5\" y=\".5\" width=\"371\" height=\"102\" rx=\"9\" fill=\"var(--b)\" stroke=\"var(--e)\"/>
<path d=\"M.5 38V9.5a9 9 0 0 1 9-9H362.5a9 9 0 0 1 9 9V38z\" fill=\"var(--h)\" stroke=\"var(--e)\"/>
<text x=\"18\" y=\"24\" class=\"f\">$ <tspan class=\"b\" style=\"fill:var(--t)\">demo &lt;1&gt;</tspan></text>
<g class=\"l\" style=\"animation-duration:0.00s\"><text x=\"18\" y=\"65.5\" textLength=\"42\" class=\"b\">title</text></g>
<g class=\"p\" style=\"animation-duration:0.80s;animation-delay:0.10s\"><text x=\"34.8\" y=\"84.5\" textLength=\"117.6\" class=\"f\">1.00s  » words</text></g>
<g class=\"l\" style=\"animation-duration:0.90s\"><text x=\"34.8\" y=\"84.5\" textLength=\"42\" class=\"f\">2.00s</text><text x=\"93.6\" y=\"84.5\" textLength=\"8.4\" class=\"c2\">✓</text><text x=\"110.4\" y=\"84.5\" textLength=\"42\">a &lt; b</text></g>
</svg>
";
        assert_eq!(body, expected);
    }

    #[test]
    fn the_picture_loads_nothing_and_runs_nothing() {
        let svg = drawn(&[(0, "x")]);
        assert!(!svg.contains("<script") && !svg.contains("url(") && !svg.contains("href"), "{svg}");
        assert_eq!(svg.matches("http").count(), 1, "the name of the form alone");
    }
}
