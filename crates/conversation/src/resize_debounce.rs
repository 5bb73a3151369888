//! Debounced drawing: while the width of the window changes nothing is drawn: some terminals wrap anew at once what stands
//! there, but tell of a width only every quarter of a second, and what is written for one that is gone stands there twice, or is
//! written over.

use std::io::{self, Write};
use std::time::Duration;

use rekindle_display::live::Piece;

use crate::painter::{Painter, Panel};

/// A width that has not changed for so long is taken for the one that the terminal has.
const STEADY: Duration = Duration::from_millis(300);

/// Longest time for which anything is held back, however long somebody drags the window's edge: longer than anybody does. What is drawn
/// before the edge rests may be damaged.
const MAX_HELD: Duration = Duration::from_secs(10);

/// A change of the width: when it began, and when the width was seen to be another last.
#[derive(Debug, Clone, Copy)]
struct Change {
    began: Duration,
    last: Duration,
}

/// A painter that waits until the width of the window is steady, and what it is to show next.
pub(crate) struct DebouncedPainter<W> {
    painter: Painter<W>,
    /// Columns, as they were seen last.
    width: usize,
    change: Option<Change>,
    /// What is to be shown, in order.
    kept: Vec<Piece>,
}

impl<W: Write> DebouncedPainter<W> {
    pub(crate) fn new(out: W, colours: bool, width: usize) -> DebouncedPainter<W> {
        DebouncedPainter { painter: Painter::new(out, colours, width), width, change: None, kept: Vec::new() }
    }

    /// Shows a piece as soon as something is drawn.
    pub(crate) fn show(&mut self, piece: Piece) {
        self.kept.push(piece);
    }

    /// Returns for how long nothing is drawn because the width changes, if it does.
    pub(crate) fn held(&self, now: Duration) -> Option<Duration> {
        let Change { began, last } = self.change?;
        let until = (last + STEADY).min(began + MAX_HELD);
        until.checked_sub(now).filter(|left| !left.is_zero())
    }

    /// Draws what is to be shown and the panel below it, unless the width changes.
    pub(crate) fn draw(
        &mut self,
        width: usize,
        now: Duration,
        panel: impl FnOnce() -> Panel,
    ) -> io::Result<()> {
        if width != self.width {
            self.width = width;
            let began = self.change.map_or(now, |change| change.began);
            self.change = Some(Change { began, last: now });
        }
        if self.held(now).is_some() {
            return Ok(());
        }
        self.change = None;
        self.paint(width);
        self.painter.draw(&panel())
    }

    /// Leaves the conversation on the screen, and nothing else.
    pub(crate) fn finish(&mut self, width: usize) -> io::Result<()> {
        self.paint(width);
        self.painter.finish()
    }

    fn paint(&mut self, width: usize) {
        // Before anything is written: what stands there has been wrapped anew already.
        self.painter.resize(width);
        for piece in self.kept.drain(..) {
            self.painter.show(&piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use rekindle_terminal::output::PLAIN;
    use rekindle_testkit::screen::Screen;

    use super::*;

    /// What a window writes to.
    #[derive(Clone)]
    struct Terminal(Rc<RefCell<Screen>>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn panel() -> Panel {
        let row = |text: &str| vec![(PLAIN, text.to_owned())];
        Panel { rows: vec![row("status"), row("> ab")], cursor: (1, 4) }
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Words come while the edge of the window is dragged, a step each 20 ms; the terminal tells of every twelfth step, and of the last.
    #[test]
    fn every_word_stands_once_in_a_window_that_is_dragged() {
        let drags: [Vec<usize>; 3] = [
            (50..80).rev().collect(),
            (30..78).rev().step_by(2).chain((30..70).step_by(3)).collect(),
            [20, 90, 33, 71, 25].into_iter().cycle().take(60).collect(),
        ];
        for drag in drags {
            let screen = Rc::new(RefCell::new(Screen::new(80, 60)));
            let mut window = DebouncedPainter::new(Terminal(Rc::clone(&screen)), true, 80);
            let (mut told, mut expected) = (80, Vec::new());
            for step in 0..200 {
                if let Some(at) = usize::checked_sub(step, 40) {
                    let width = drag[at.min(drag.len() - 1)];
                    if at < drag.len() {
                        screen.borrow_mut().resize(width, 60);
                    }
                    if at % 12 == 0 {
                        told = width;
                    }
                }
                if step % 2 == 0 {
                    expected.push(format!("w{step}"));
                    window.show(Piece::Answer(format!("w{step} ")));
                }
                window.draw(told, ms(20 * step as u64), panel).expect("memory");
            }
            let text = screen.borrow().text();
            let seen: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(seen, [expected, vec!["status".into(), ">".into(), "ab".into()]].concat(), "{text}");
        }
    }

    #[test]
    fn nothing_is_drawn_while_the_width_changes_and_nothing_is_held_back_for_long() {
        let screen = Rc::new(RefCell::new(Screen::new(80, 60)));
        let mut window = DebouncedPainter::new(Terminal(Rc::clone(&screen)), true, 80);
        let mut at = |width, now, word: &str| {
            window.show(Piece::Line((PLAIN, word.into())));
            window.draw(width, ms(now), panel).expect("memory");
            (screen.borrow().text().contains(word), window.held(ms(now)))
        };
        assert_eq!(at(80, 0, "first"), (true, None));
        assert_eq!(at(70, 100, "second"), (false, Some(STEADY)));
        assert_eq!(at(70, 300, "third"), (false, Some(ms(100))));
        assert_eq!(at(60, 390, "fourth"), (false, Some(STEADY)));
        assert_eq!(at(60, 690, "fifth"), (true, None));
        // It never rests.
        for now in (1000..11_000).step_by(100) {
            let left = ms(11_000 - now).min(STEADY);
            assert_eq!(at(40 + (now / 100 % 7) as usize, now, "kept"), (false, Some(left)), "{now}");
        }
        assert_eq!(at(20, 11_000, "shown"), (true, None));
        assert_eq!(at(25, 11_100, "again"), (false, Some(STEADY)));
        window.finish(25).expect("memory");
        assert!(screen.borrow().text().contains("again"), "whoever leaves has seen all of it");
    }
}
