//! iceoryx2's publish-subscribe as a channel: a message is written where its reader reads it.
//!
//! Only with the feature `iceoryx2`. Its files are in a directory and, in `/dev/shm`, under a prefix of their own, so
//! that they can be removed together with whatever they belong to, whoever was killed: [`Place::remove`].
//!
//! What a publisher has sent goes when it ends in order, unless the subscriber has looked since. Whoever was killed has
//! not ended in order, and leaves it. [`Sender::abandon`] is for those who end in order and leave it, too.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::sample::Sample;
use iceoryx2::sample_mut::SampleMut;
use rustix::io::Errno;

use super::ChannelError;

type Port = iceoryx2::service::port_factory::publish_subscribe::PortFactory<ipc_threadsafe::Service, [u8], Head>;
type Publisher = iceoryx2::port::publisher::Publisher<ipc_threadsafe::Service, [u8], Head>;
type Subscriber = iceoryx2::port::subscriber::Subscriber<ipc_threadsafe::Service, [u8], Head>;

/// A tag of two numbers, and the length of the message, in bytes.
type Head = [u64; 3];

/// How many senders of a service can be there, those included that were killed and not removed yet; and receivers.
const ENDS_MAX: usize = 3;

/// For how long another process that removes what the dead left is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where iceoryx2 keeps what belongs together.
#[derive(Clone, Debug)]
pub struct Place {
    directory: PathBuf,
    prefix: String,
}

/// A channel for messages from one sender at a time to one receiver at a time.
#[derive(Clone, Debug)]
pub struct Service {
    /// Where it is.
    pub place: Place,
    /// Its name there.
    pub name: String,
    /// Bytes of the longest message.
    pub longest: usize,
    /// How many can be under way.
    pub messages: usize,
}

/// Sends.
#[derive(Debug)]
pub struct Sender {
    publisher: Publisher,
    longest: usize,
    // Goes last: ports belong to it.
    node: Node<ipc_threadsafe::Service>,
}

/// A message that is being written.
pub struct Draft(SampleMut<ipc_threadsafe::Service, [u8], Head>);

/// Receives.
#[derive(Debug)]
pub struct Receiver {
    subscriber: Subscriber,
    _node: Node<ipc_threadsafe::Service>,
}

/// A message that was received; its memory is the sender's again when it is dropped.
pub struct Message(Sample<ipc_threadsafe::Service, [u8], Head>);

impl Place {
    /// Beside the file `beside`, for what is known by `identity`, a random number.
    pub fn new(beside: &std::path::Path, identity: u64) -> Place {
        let prefix = format!("laxity-iox-{identity:016x}-");
        Place { directory: beside.with_file_name(format!("laxity-iox.{identity:016x}")), prefix }
    }

    /// Removes what is there. Nobody may use it any more, nor begin to.
    pub fn remove(&self) {
        // What others have removed, or may not be removed, cannot be helped.
        let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&self.prefix));
        ours.for_each(|entry| drop(fs::remove_file(entry.path())));
        let _ = fs::remove_dir_all(&self.directory);
    }

    fn config(&self) -> io::Result<Config> {
        let mut config = Config::default();
        let directory = self.directory.to_string_lossy();
        let root = Path::new(directory.as_bytes()).map_err(failure)?;
        config.global.set_root_path(&root);
        config.global.prefix = FileName::new(self.prefix.as_bytes()).map_err(failure)?;
        // With its senders it would remove what they have sent.
        config.global.node.cleanup_dead_nodes_on_creation = false;
        config.global.node.cleanup_dead_nodes_on_destruction = false;
        config.global.service.cleanup_dead_nodes_on_open = false;
        Ok(config)
    }

    fn node(&self) -> io::Result<Node<ipc_threadsafe::Service>> {
        // It would write to standard error what it returns as errors. `IOX2_LOG_LEVEL=error` brings that back.
        set_log_level_from_env_or(LogLevel::Fatal);
        let config = self.config()?;
        let builder = NodeBuilder::new().config(&config).signal_handling_mode(SignalHandlingMode::Disabled);
        builder.create().map_err(failure)
    }
}

impl Service {
    /// Sees whether the memory of a sender can be there at all.
    ///
    /// # Errors
    /// [`ChannelError::Limit`].
    pub fn check_room(&self) -> Result<(), ChannelError> {
        // What a sender has in its draft, and what each receiver has not received or not given back.
        let places = self.messages as u64 * (1 + 2 * ENDS_MAX as u64);
        let needed = places.saturating_mul(self.longest as u64);
        let granted =
            rustix::fs::statvfs("/dev/shm").map_or(u64::MAX, |system| system.f_blocks.saturating_mul(system.f_frsize));
        if needed > granted {
            let (unit, setting) = ("bytes of shared memory", "the size of /dev/shm");
            return Err(ChannelError::Limit { needed, granted, unit, setting });
        }
        Ok(())
    }

    /// Begins to send.
    ///
    /// # Errors
    /// As all of iceoryx2, `ECOMM`.
    pub fn sender(&self) -> io::Result<Sender> {
        let node = self.place.node()?;
        let publisher = self.with_room(&node, |service| {
            let builder = service.publisher_builder().initial_max_slice_len(self.longest.max(1));
            let builder =
                builder.max_loaned_samples(self.messages).backpressure_strategy(BackpressureStrategy::DiscardData);
            builder.create().map_err(failure)
        })?;
        Ok(Sender { publisher, longest: self.longest, node })
    }

    /// Begins to receive: what is sent from now on, by senders who have connected since.
    ///
    /// # Errors
    /// As all of iceoryx2, `ECOMM`.
    pub fn receiver(&self) -> io::Result<Receiver> {
        let node = self.place.node()?;
        let subscriber = self.with_room(&node, |service| service.subscriber_builder().create().map_err(failure))?;
        Ok(Receiver { subscriber, _node: node })
    }

    /// Makes an end. If there are too many, those of the dead are removed first, with all that they have sent.
    fn with_room<T>(
        &self,
        node: &Node<ipc_threadsafe::Service>,
        make: impl Fn(&Port) -> io::Result<T>,
    ) -> io::Result<T> {
        let service = self.open(node)?;
        make(&service).or_else(|_| {
            node.blocking_cleanup_dead_nodes(PATIENCE);
            make(&service)
        })
    }

    fn open(&self, node: &Node<ipc_threadsafe::Service>) -> io::Result<Port> {
        let name = ServiceName::new(&self.name).map_err(failure)?;
        let builder = node.service_builder(&name).publish_subscribe::<[u8]>().user_header::<Head>();
        let builder = builder.max_publishers(ENDS_MAX).max_subscribers(ENDS_MAX).max_nodes(4 * ENDS_MAX);
        // Nothing is overwritten: who sends knows that there is room.
        let builder = builder.enable_safe_overflow(false).history_size(0);
        let builder = builder.subscriber_max_buffer_size(self.messages).subscriber_max_borrowed_samples(self.messages);
        builder.open_or_create().map_err(failure)
    }
}

impl Sender {
    /// Connects to the receivers that there are.
    ///
    /// # Errors
    /// If that fails.
    pub fn connect(&self) -> io::Result<()> {
        self.publisher.update_connections().map_err(failure)
    }

    /// A message to be written, all zero, as long as can be; `None` if as many as can be under way are.
    pub fn draft(&self) -> Option<Draft> {
        self.publisher.loan_slice(self.longest).ok().map(Draft)
    }

    /// Ends without order: what was sent stays, until its [`Place`] is removed, and so does the memory of this process
    /// that it takes.
    pub fn abandon(self) {
        let Sender { publisher, node, .. } = self;
        std::mem::forget(publisher);
        std::mem::forget(node);
    }
}

impl Draft {
    /// The message.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.0.payload_mut()
    }

    /// Sends the first `length` bytes of it with two numbers; answers whether somebody receives it.
    pub fn send(mut self, tag: [u64; 2], length: usize) -> bool {
        *self.0.user_header_mut() = [tag[0], tag[1], length as u64];
        self.0.send().is_ok_and(|receivers| receivers > 0)
    }
}

impl Receiver {
    /// The oldest message that has come and was not received.
    ///
    /// # Errors
    /// If what was sent cannot be reached; one may try again.
    pub fn receive(&self) -> io::Result<Option<Message>> {
        self.subscriber.receive().map(|sample| sample.map(Message)).map_err(failure)
    }
}

impl Message {
    /// The two numbers it was sent with.
    pub fn tag(&self) -> [u64; 2] {
        let [first, second, _] = *self.0.user_header();
        [first, second]
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        let [.., length] = *self.0.user_header();
        let all = self.0.payload();
        // A process that is wrong may have written anything there.
        &all[..all.len().min(usize::try_from(length).unwrap_or(usize::MAX))]
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").finish_non_exhaustive()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("tag", &self.tag()).field("length", &self.bytes().len()).finish()
    }
}

/// Its errors have names, and whoever uses channels of Linux expects a number. It logs the reason itself, if asked to.
fn failure<E>(_: E) -> io::Error {
    Errno::COMM.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its files go with it, also those of /dev/shm.
    struct Temporary(Place);

    impl Temporary {
        fn new(name: &str) -> Self {
            let identity = u64::from(std::process::id()) << 8 | name.len() as u64;
            Temporary(Place::new(&std::env::temp_dir().join(name), identity))
        }

        fn service(&self, messages: usize) -> Service {
            Service { place: self.0.clone(), name: "edge".to_owned(), longest: 8, messages }
        }

        fn has_files(&self) -> bool {
            let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
            let count = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&self.0.prefix)).count();
            count > 0 || self.0.directory.exists()
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            self.0.remove();
        }
    }

    fn send(sender: &Sender, token: u64, bytes: &[u8]) -> bool {
        let mut draft = sender.draft().expect("there is room");
        draft.bytes()[..bytes.len()].copy_from_slice(bytes);
        draft.send([token, 7], bytes.len())
    }

    #[test]
    fn messages_come_with_their_numbers_and_lengths_and_nothing_stays() {
        let place = Temporary::new("a");
        let service = place.service(3);
        let (receiver, sender) = (service.receiver().expect("it can be"), service.sender().expect("it can be"));
        sender.connect().expect("there is a receiver");
        assert!(send(&sender, 1, b"one") && send(&sender, 2, b""));
        for (token, bytes) in [(1, &b"one"[..]), (2, b"")] {
            let message = receiver.receive().expect("reachable").expect("it was sent");
            assert_eq!((message.tag(), message.bytes()), ([token, 7], bytes));
        }
        assert!(receiver.receive().expect("reachable").is_none());
        drop((receiver, sender));
        place.0.remove();
        assert!(!place.has_files());
    }

    #[test]
    fn what_nobody_receives_is_said_and_what_was_abandoned_comes() {
        let place = Temporary::new("bb");
        let service = place.service(2);
        let sender = service.sender().expect("it can be");
        assert!(!send(&sender, 1, b"lost"), "nobody receives");
        let receiver = service.receiver().expect("it can be");
        sender.connect().expect("there is a receiver");
        assert!(send(&sender, 2, b"kept"));
        sender.abandon();
        let message = receiver.receive().expect("reachable").expect("it was sent");
        assert_eq!((message.tag(), message.bytes()), ([2, 7], &b"kept"[..]));
    }

    #[test]
    fn no_more_than_fits_is_under_way() {
        let place = Temporary::new("ccc");
        let service = place.service(2);
        let (receiver, sender) = (service.receiver().expect("it can be"), service.sender().expect("it can be"));
        sender.connect().expect("there is a receiver");
        assert!(send(&sender, 0, b"0") && send(&sender, 1, b"1"));
        assert!(!send(&sender, 2, b"2"), "there is no room");
        assert_eq!(receiver.receive().expect("reachable").map(|message| message.tag()), Some([0, 7]));
        assert!(send(&sender, 3, b"3"));
    }
}
