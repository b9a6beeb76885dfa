//! The two ends of an edge through iceoryx2: messages are written where they are read.
//!
//! Who listens is settled as for a stream: the consumer subscribes and says so in shared memory, the producer connects
//! before it begins a job, and the slot of a token says to which subscriber a message went. What went to one of a former
//! consumer is lost.
//!
//! iceoryx2 takes what a publisher has sent away when that ends in order. Here a producer may end and leave what it
//! produced: then its publisher is kept, and when the process leaves the graph it is abandoned, as if killed.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_sys::channel::iceoryx::{Draft, Message, Receiver, Sender, Service};

use super::{Sent, Slots};
use crate::owner::State;
use crate::shared::Shared;

/// An edge, for this process.
#[derive(Debug)]
pub(super) struct Line {
    service: Service,
    /// Of a node that was released, with messages that its consumer has not taken.
    left: Mutex<Option<Sender>>,
}

/// The producer's end.
#[derive(Debug)]
pub(super) struct Outlet {
    line: Arc<Line>,
    sender: Option<Sender>,
    /// The consumer's subscriber, and the claim that made it.
    connected: Option<(u32, u64)>,
    /// That of this claim.
    epoch: u32,
    /// The messages of a job, where they will be read.
    drafts: Vec<Option<Draft>>,
}

/// The consumer's end.
#[derive(Debug)]
pub(super) struct Inlet {
    receiver: Receiver,
    /// Which of the edge's subscribers this is.
    number: u32,
    /// What came and is of use.
    messages: Vec<Message>,
}

impl Line {
    pub fn new(service: Service) -> Line {
        Line { service, left: Mutex::new(None) }
    }

    fn left(&self) -> std::sync::MutexGuard<'_, Option<Sender>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(sender) = self.left().take() {
            sender.abandon();
        }
    }
}

impl Outlet {
    /// For `produce` messages a job.
    pub fn new(line: &Arc<Line>, epoch: u32, produce: usize) -> Outlet {
        let drafts = (0..produce).map(|_| None).collect();
        Outlet { line: line.clone(), sender: line.left().take(), connected: None, epoch, drafts }
    }

    /// Whether it is connected to who has the consumer's node now; connects if that has subscribed.
    pub fn connect(&mut self, shared: &Shared, consumer: usize, slots: Slots) -> io::Result<bool> {
        let owner = shared.owner(consumer);
        let listener = listener(shared, slots);
        if self.connected == Some((listener, owner.word())) {
            return Ok(true);
        }
        self.connected = None;
        if owner.state != State::Claimed || listener == 0 {
            return Ok(false);
        }
        let sender = match self.sender.take() {
            Some(sender) => sender,
            None => self.line.service.sender()?,
        };
        self.sender.insert(sender).connect()?;
        self.connected = Some((listener, owner.word()));
        Ok(true)
    }

    /// Message `number` of a job, if there is a place for it: there is, when it is connected.
    pub fn draft(&mut self, number: usize) -> Option<&mut Draft> {
        let draft = &mut self.drafts[number];
        if draft.is_none() {
            *draft = self.sender.as_ref().and_then(Sender::draft);
        }
        draft.as_mut()
    }

    /// Sends the first `length` bytes of message `number`; answers whether that was so, and to whom.
    pub fn send(&mut self, number: usize, token: u64, length: usize) -> (bool, u32, u32) {
        let draft = self.drafts[number].take();
        let was_sent = draft.is_some_and(|draft| draft.send([token, self.epoch.into()], length));
        (was_sent, self.epoch, self.connected.map_or(0, |(listener, _)| listener))
    }

    /// The node is about to be released. What its consumer has not taken stays.
    pub fn close(&mut self, is_anything_under_way: bool) {
        self.drafts.clear();
        let sender = self.sender.take();
        if is_anything_under_way {
            *self.line.left() = sender;
        }
    }
}

impl Inlet {
    /// Subscribes, and tells the producer.
    pub fn open(shared: &Shared, edge: usize, line: &Line, slots: Slots) -> io::Result<Inlet> {
        let receiver = line.service.receiver()?;
        let number = shared.segment.u32(slots.layout.listeners).fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        shared.segment.u64(slots.layout.listening).store(u64::from(number) << 32, Ordering::Release);
        shared.rouse(shared.spec.plan().edges()[edge].producer);
        Ok(Inlet { receiver, number, messages: Vec::new() })
    }

    /// Takes the message of `token` that was `sent`; answers whether it has come. Those before `first` are of no use
    /// any more.
    pub fn take(&mut self, token: u64, sent: Sent, first: u64) -> bool {
        if sent.listener != self.number {
            return false;
        }
        let wanted = [token, sent.epoch.into()];
        self.messages.retain(|message| message.tag()[0] >= first);
        loop {
            if let Some(message) = self.messages.iter().find(|message| message.tag() == wanted) {
                let is_whole = message.bytes().len() == sent.length as usize;
                // Others of this token are of jobs that their producers did not complete.
                self.messages.retain(|message| message.tag()[0] != token || message.tag() == wanted);
                return is_whole;
            }
            // What was sent is there at once.
            let Ok(Some(message)) = self.receiver.receive() else { return false };
            if message.tag()[0] >= first {
                self.messages.push(message);
            }
        }
    }

    /// The message of `token`, which was taken.
    pub fn message(&self, token: u64) -> Option<&[u8]> {
        self.messages.iter().find(|message| message.tag()[0] == token).map(Message::bytes)
    }
}

/// Which subscriber the consumer has, if any.
fn listener(shared: &Shared, slots: Slots) -> u32 {
    (shared.segment.u64(slots.layout.listening).load(Ordering::Acquire) >> 32) as u32
}
