//! Which task of its process a task waits for, where another thread decides that: of locks that are granted in an order of
//! their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use laxity_sys::shared_page::SharedPage;

use super::Task;
use crate::layout::{CHANGED, Entry, WAITS_FOR_NONE};

/// Says for all tasks of a process which of them they wait for. One thread at a time says so, of whichever task.
#[derive(Clone, Debug)]
pub struct Waits {
    page: Arc<SharedPage>,
}

impl Task {
    /// By which any thread of the process says what its tasks wait for.
    pub fn waits(&self) -> Waits {
        Waits { page: Arc::clone(&self.page) }
    }
}

impl Waits {
    /// From now on the task at `place` waits for what the one at `holder` has, which has at least its priority while the thread
    /// of the former sleeps; `None`: it waits, and no task inherits from it.
    ///
    /// It may sleep already, or not yet. The scheduler takes note of that when a thread of the process sleeps or wakes next for the sake of
    /// a lock, or yields: see [`Waits::are_unheard`].
    pub fn say(&self, place: u32, holder: Option<u32>) {
        self.word(place).store(holder.unwrap_or(WAITS_FOR_NONE), Ordering::Relaxed);
        // After the word: a scheduler that sees this sees the word.
        self.page.u32(CHANGED).fetch_or(1 << (place - 1), Ordering::SeqCst);
    }

    /// The task at `place` has what it waited for. Its thread, if it sleeps, is to be woken: by that the scheduler knows.
    pub fn end(&self, place: u32) {
        self.word(place).store(0, Ordering::Release);
    }

    /// Whether the scheduler has not seen yet what was said: then [`std::thread::yield_now`] makes it look.
    pub fn are_unheard(&self) -> bool {
        self.page.u32(CHANGED).load(Ordering::Relaxed) != 0
    }

    fn word(&self, place: u32) -> &AtomicU32 {
        let entry = Entry::new(place as usize - 1).expect("a place is that of an entry");
        self.page.u32(entry.waits_for())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use laxity_testing::Directory;

    use super::*;
    use crate::layout::{ENTRIES, PAGE};

    #[test]
    fn what_a_task_waits_for_is_in_its_entry_and_the_page_says_of_which_entries_that_changed() {
        let folder = Directory::new("kernel-waits");
        let path = folder.path().join("page");
        std::fs::write(&path, vec![0; PAGE]).expect("a file");
        let file = File::options().read(true).write(true).open(path).expect("it is there");
        let page = Arc::new(SharedPage::map(file, PAGE).expect("mapped"));
        let entries = [0, 7, ENTRIES - 1].map(|number| Entry::new(number).expect("a page has it"));
        let [holder, second, last] = entries.map(|entry| Task::of_page(&page, entry).place());
        let waits = Task::of_page(&page, entries[0]).waits();
        let says = || entries.map(|entry| page.u32(entry.waits_for()).load(Ordering::Relaxed));
        assert!(!waits.are_unheard());
        waits.say(second, Some(holder));
        waits.say(last, None);
        // As in bpf/tasks.h: entries are counted from 1, and there is one less than LAXITY_ENTRIES.
        assert_eq!(says(), [0, 1, 32]);
        assert_eq!(page.u32(CHANGED).swap(0, Ordering::Relaxed), 1 << 7 | 1 << 30);
        waits.end(second);
        assert_eq!(says(), [0, 0, 32]);
        assert!(!waits.are_unheard(), "its wake-up says so");
    }
}
