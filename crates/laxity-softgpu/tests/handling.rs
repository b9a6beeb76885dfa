//! The owners that the handling thread and the callback thread work for.

mod support;

use std::sync::{Arc, Mutex};

use laxity_model::Nanos;
use laxity_softgpu::{Handling, HandlingThread, Options, SoftGpu, Wait};
use laxity_sys::scheduling;

use support::{config, name, options};

#[derive(Debug, Default)]
struct Notes(Mutex<Vec<(HandlingThread, u32, Option<String>)>>);

impl Handling for Notes {
    fn serve(&self, thread: HandlingThread, stream: &str) {
        let note = (thread, scheduling::current_thread(), Some(stream.to_owned()));
        self.0.lock().expect("no panic").push(note);
    }

    fn done(&self, thread: HandlingThread) {
        self.0.lock().expect("no panic").push((thread, scheduling::current_thread(), None));
    }
}

/// As klmirqd's threads have the priority of the owner (paper 003, section 5.3), they must know it before they begin.
#[test]
fn handling_threads_are_told_the_owner_before_they_serve_it_and_when_they_are_done() {
    let notes = Arc::new(Notes::default());
    let options = Options { handling: notes.clone(), ..options() };
    let gpu = SoftGpu::open_with(&name("handling"), config(), &options).expect("a soft GPU");
    for name in ["detector", "tracker"] {
        let stream = gpu.stream(name).expect("a stream");
        stream.launch_timed(Nanos(1)).expect("issued");
        stream.add_callback(|| ()).expect("added");
        stream.synchronize(Wait::Blocking).expect("done");
    }
    let [interrupts, callbacks] = gpu.handling_threads();
    assert!(interrupts != 0 && callbacks != 0 && interrupts != callbacks);
    // The threads have ended, and every note is written.
    drop(gpu);
    let notes = notes.0.lock().expect("no panic");
    for (thread, number) in [(HandlingThread::Interrupts, interrupts), (HandlingThread::Callbacks, callbacks)] {
        let its: Vec<_> =
            notes.iter().filter(|note| note.0 == thread).map(|note| (note.1, note.2.as_deref())).collect();
        let all = [Some("detector"), None, Some("tracker"), None].map(|stream| (number, stream));
        assert_eq!(its, all, "{thread:?}");
    }
}
