//! Channels of Linux hold what was agreed on, keep packets apart, and say what is too much.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;

use laxity_model::Nanos;
use laxity_sys::channel::fifo::{self, Fifo, PACKET_MAX};
use laxity_sys::channel::queue::{self, Queue};
use laxity_sys::channel::stream::{self, Listener, Received, Stream};
use laxity_sys::channel::{ChannelError, wait_readable};
use laxity_sys::clock;

/// A name for a pipe, which goes with it.
struct Name(PathBuf);

impl Name {
    fn new(test: &str) -> Name {
        Name(PathBuf::from(format!("/dev/shm/laxity-test-{}-{test}", std::process::id())))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_pipe_holds_its_packets_and_keeps_them_apart() {
    let name = Name::new("packets");
    let [producer, consumer] = [(), ()].map(|()| Fifo::open_or_create(&name.0, 32).expect("a pipe"));
    let lengths = [1, 4096, 17, 4095];
    for packet in 0..32 {
        let length = lengths[packet % lengths.len()];
        assert!(producer.send(&vec![packet as u8; length]).expect("a pipe"), "packet {packet} fits");
    }
    assert!(!producer.send(&[0]).expect("a pipe"), "one more does not");
    let mut buffer = [0; PACKET_MAX];
    for packet in 0..32 {
        let length = consumer.receive(&mut buffer).expect("a pipe").expect("a packet");
        assert_eq!(length, lengths[packet % lengths.len()]);
        assert!(buffer[..length].iter().all(|&byte| byte == packet as u8));
    }
    assert_eq!(consumer.receive(&mut buffer).expect("a pipe"), None, "and no end of file");
}

#[test]
fn a_pipe_keeps_its_packets_while_a_process_has_it_open() {
    let name = Name::new("kept");
    let keeper = Fifo::open_or_create(&name.0, 1).expect("a pipe");
    Fifo::open_or_create(&name.0, 1).expect("the same").send(b"kept").expect("there is room");
    let mut buffer = [0; PACKET_MAX];
    assert_eq!(keeper.receive(&mut buffer).expect("a pipe"), Some(4));
    fifo::unlink(&name.0);
    assert!(!name.0.exists());
}

#[test]
fn what_is_no_pipe_is_neither_used_nor_removed() {
    let name = Name::new("foreign");
    fs::write(&name.0, "important").expect("writable");
    assert!(matches!(Fifo::open_or_create(&name.0, 1), Err(ChannelError::Foreign { .. })));
    fifo::unlink(&name.0);
    assert_eq!(fs::read_to_string(&name.0).expect("still there"), "important");
}

#[test]
fn a_queue_holds_its_packets_and_keeps_them_apart() {
    let name = format!("/laxity-test-{}", std::process::id());
    let queue = match Queue::open_or_create(&name, 4, 100) {
        Err(ChannelError::System { error, .. }) => {
            return laxity_testing::skip(format_args!("no message queues: {error}"));
        }
        queue => queue.expect("a queue"),
    };
    let other = Queue::open_or_create(&name, 7, 7).expect("the same");
    assert_eq!(other.longest(), 100, "it is as it was made");
    for packet in 0..4u8 {
        assert!(queue.send(&vec![packet; 25 * usize::from(packet) + 1]).expect("a queue"));
    }
    assert!(!queue.send(&[9]).expect("a queue"), "one more does not fit");
    let mut buffer = [0; 100];
    for packet in 0..4u8 {
        let length = other.receive(&mut buffer).expect("a queue").expect("a packet");
        assert_eq!(&buffer[..length], &vec![packet; 25 * usize::from(packet) + 1]);
    }
    assert_eq!(other.receive(&mut buffer).expect("a queue"), None);
    queue::unlink(&name);
    queue::unlink(&name);
}

#[test]
fn what_exceeds_the_limits_of_linux_is_said_with_both_numbers() {
    let name = Name::new("limits");
    let error = Fifo::open_or_create(&name.0, 1 << 40).expect_err("Linux does not grant that");
    let (needed, granted) = (page() << 40, 1 << 30);
    let text = format!("needs {needed} bytes of a pipe and Linux grants {granted}; ask for fewer or shorter messages");
    assert_eq!(error.to_string(), text, "nothing can be raised");
    let error = Queue::open_or_create("/laxity-test-limits", 100_000, 100).expect_err("Linux does not grant that");
    assert!(error.to_string().starts_with("needs 100000 messages of a queue and Linux grants "), "{error}");
    let error = stream::check_buffer(loopback(), u64::MAX).expect_err("Linux does not grant that");
    assert!(error.to_string().contains("net.core.wmem_max"), "{error}");
}

/// A packet takes a page.
fn page() -> u64 {
    rustix::param::page_size() as u64
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// The receiver may be busy: what was agreed on waits in Linux, in small pieces or in large ones.
#[test]
fn a_connection_holds_what_was_agreed_on_before_it_is_received() {
    for (length, count) in [(40, 4000), (200_000, 1), (50_000, 4)] {
        let total = length * count;
        stream::check_buffer(loopback(), total as u64).expect("Linux grants 208 KiB unless told otherwise");
        let listener = Listener::bind(loopback()).expect("a port");
        let address = SocketAddr::new(loopback().ip(), listener.port().expect("a port"));
        // Connected before it is accepted.
        let mut producer = Stream::connect(address, total as u64, Nanos::from_secs(1)).expect("a socket listens");
        for message in 0..count {
            let bytes = vec![message as u8; length];
            assert!(producer.send(&[&bytes[..8], &bytes[8..]]).expect("connected"), "{message} of {count} x {length}");
        }
        drop(producer);
        assert!(wait_readable(&[listener.as_fd()], clock::now().saturating_add(Nanos::from_secs(20))));
        let mut consumer = listener.accept().expect("descriptors are left").expect("it was connected");
        let (mut buffer, mut received) = (vec![0; 65536], 0);
        loop {
            match consumer.receive(&mut buffer) {
                Received::Bytes(bytes) => {
                    let expected = |at: usize| ((received + at) / length) as u8;
                    assert!((0..bytes).all(|at| buffer[at] == expected(at)));
                    received += bytes;
                }
                Received::Nothing => {
                    let deadline = clock::now().saturating_add(Nanos::from_secs(20));
                    assert!(wait_readable(&[consumer.as_fd()], deadline), "{received} of {total} bytes came");
                }
                Received::End => break,
            }
        }
        assert_eq!(received, total);
    }
}

#[test]
fn a_connection_without_a_listener_is_refused_at_once() {
    let listener = Listener::bind(loopback()).expect("a port");
    let address = SocketAddr::new(loopback().ip(), listener.port().expect("a port"));
    drop(listener);
    let error = Stream::connect(address, 1, Nanos::ZERO).expect_err("no socket listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}
