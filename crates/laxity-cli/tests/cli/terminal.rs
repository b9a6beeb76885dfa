//! A terminal to run the command in, and what it would show.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::pty::{OpenptyResult, Winsize, openpty};

/// Columns and rows.
pub const WIDTH: usize = 100;
const HEIGHT: usize = 30;

/// A command that runs in a terminal.
pub struct Terminal {
    child: Child,
    master: File,
    /// What was read so far.
    written: Vec<u8>,
}

impl Terminal {
    /// Starts `command`.
    pub fn start(mut command: Command) -> Terminal {
        let size = Winsize { ws_row: HEIGHT as u16, ws_col: WIDTH as u16, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(&size, None).expect("a terminal");
        let handle = || Stdio::from(slave.try_clone().expect("a handle"));
        // Only the child keeps handles: the command's own, and ours, close with this function.
        let child = command.stdin(handle()).stdout(handle()).stderr(handle()).spawn().expect("runs");
        Terminal { child, master: File::from(master), written: Vec::new() }
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has written `text`.
    pub fn read_until(&mut self, text: &str) {
        let mut part = [0; 4096];
        while !String::from_utf8_lossy(&self.written).contains(text) {
            let length = self.master.read(&mut part).expect("it writes that before it ends");
            self.written.extend_from_slice(&part[..length]);
        }
    }

    /// Presses a key: Ctrl-C is `\x03`, of which the terminal makes a signal to its foreground, if it has one (`setsid --ctty`).
    pub fn press(&mut self, key: char) {
        write!(self.master, "{key}").expect("a terminal takes keys");
    }

    /// All it wrote until its end, escape sequences included.
    pub fn finish(self) -> String {
        self.ended().0
    }

    /// The same, and how it ended.
    pub fn ended(mut self) -> (String, ExitStatus) {
        // When the last handle is closed, Linux answers with an error.
        let _ = self.master.read_to_end(&mut self.written);
        let status = self.child.wait().expect("ends");
        (String::from_utf8(self.written).expect("UTF-8"), status)
    }
}

/// The lines that the terminal shows in the end, without blanks at their ends and without empty lines below them. It
/// knows what is used here: colours, which it ignores, moving the cursor up and down, and clearing a line.
pub fn screen(written: &str) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column) = (0_usize, 0_usize);
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                assert_eq!(letters.next(), Some('['), "all sequences that are used begin so");
                let mut count = String::new();
                let end = letters.by_ref().find(|letter| {
                    count.push(*letter);
                    letter.is_ascii_alphabetic()
                });
                count.pop();
                let count = count.parse::<usize>().unwrap_or(1);
                match end {
                    Some('A') => row = row.saturating_sub(count),
                    Some('B') => row += count,
                    Some('K') => lines[row].clear(),
                    Some('m') => {}
                    other => panic!("a sequence that is not known here: {other:?}"),
                }
            }
            letter => {
                // A full line is left only when there is more to show.
                if column == WIDTH {
                    (row, column) = (row + 1, 0);
                }
                lines.resize(lines.len().max(row + 1), Vec::new());
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    let mut lines: Vec<String> =
        lines.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[test]
fn a_screen_is_what_is_left_after_all_movements() {
    assert_eq!(screen("one\r\ntwo\r\n\u{1b}[2A\u{1b}[2K\u{1b}[31m1\u{1b}[0m"), ["1", "two"]);
    let full = "x".repeat(WIDTH);
    assert_eq!(screen(&format!("{full}y\u{1b}[1A\rz")), [format!("z{}", &full[1..]), "y".to_owned()]);
}
