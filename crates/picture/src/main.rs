//! `rekindle-picture FILE COMMAND…`: runs a command at a terminal and writes what it showed, as it showed it, into a file as an SVG.
//! `cargo xtask picture` makes the picture in README.md with it.

mod recording;
mod screen;
mod svg;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::recording::record;
use crate::screen::Screen;

/// The terminal's width: what fits beside a page's margins and can still be read.
const COLUMNS: u16 = 92;

/// A picture that is larger than this would slow down the page that shows it.
const MOST_BYTES: usize = 100_000;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match draw(&arguments) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn draw(arguments: &[OsString]) -> Result<String, String> {
    let [file, program, rest @ ..] = arguments else {
        return Err("Usage: rekindle-picture FILE COMMAND [ARGUMENT]...".to_owned());
    };
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let words = rest.iter().map(|word| word.to_string_lossy().into_owned());
    let title = std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ");
    let chunks = record(program, rest, COLUMNS).map_err(|error| format!("{title}: {error}"))?;
    let mut screen = Screen::default();
    for (at, bytes) in &chunks {
        screen.write(*at, bytes);
    }
    let svg = svg::draw(&title, usize::from(COLUMNS), &screen.rows());
    if svg.len() > MOST_BYTES {
        return Err(format!("the picture has {} bytes, more than {MOST_BYTES}", svg.len()));
    }
    let file = Path::new(file);
    std::fs::write(file, &svg).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(format!("{}: {} bytes, {} rows", file.display(), svg.len(), screen.rows().len()))
}
