//! iceoryx2 beside graphs: its events, which suspend, and its publish-subscribe, polled.
//!
//! Its files are in a directory of their own and, in `/dev/shm`, under a prefix of their own: see [`Place`]. Ports are made by the threads that use them: those that
//! threads may share are slower.

use std::error::Error;
use std::path::PathBuf;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;

use super::{Cpus, Side, turns};

/// Round trips of events: each side suspends until the other notifies it.
pub fn event_trips(cpus: &[Cpus; 2], trips: usize) -> Result<Option<[f64; 2]>, Box<dyn Error>> {
    let place = Place::new()?;
    Ok(Some(cpus.map(|cpus| turns(cpus, trips, |side| Events::open(&place, side).expect("iceoryx2 makes its ports")))))
}

/// Round trips of messages of 8 bytes: each side looks until there is one.
pub fn publish_trip(cpus: Cpus, trips: usize) -> Result<Option<f64>, Box<dyn Error>> {
    let place = Place::new()?;
    Ok(Some(turns(cpus, trips, |side| Messages::open(&place, side).expect("iceoryx2 makes its ports"))))
}

/// Where iceoryx2 has its files; dropped when all ports are. Nothing of them is left then.
struct Place {
    directory: PathBuf,
    /// With which names of shared memory begin.
    prefix: String,
    config: Config,
}

impl Place {
    fn new() -> Result<Self, Box<dyn Error>> {
        let name = format!("laxity-bench-{}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&directory)?;
        let mut config = Config::default();
        config.global.set_root_path(&Path::new(directory.to_string_lossy().as_bytes())?);
        let prefix = format!("{name}-");
        config.global.prefix = FileName::new(prefix.as_bytes())?;
        Ok(Place { directory, prefix, config })
    }

    fn node(&self) -> Result<Node<ipc::Service>, Box<dyn Error>> {
        let builder = NodeBuilder::new().config(&self.config).signal_handling_mode(SignalHandlingMode::Disabled);
        Ok(builder.create()?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // iceoryx2 keeps a segment for each prefix for ever, with the number of nodes there have been.
        let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&self.prefix));
        // A benchmark cannot report it if one of these fails.
        ours.for_each(|entry| drop(std::fs::remove_file(entry.path())));
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The service by which the other side tells `side` that it is its turn.
fn name(side: usize) -> Result<ServiceName, Box<dyn Error>> {
    Ok(format!("turn of {side}").as_str().try_into()?)
}

struct Events {
    own: Listener<ipc::Service>,
    other: Notifier<ipc::Service>,
}

impl Events {
    fn open(place: &Place, side: usize) -> Result<Self, Box<dyn Error>> {
        let node = place.node()?;
        let service = |side| Ok::<_, Box<dyn Error>>(node.service_builder(&name(side)?).event().open_or_create()?);
        let own = service(side)?.listener_builder().create()?;
        let other = service(1 - side)?.notifier_builder().create()?;
        Ok(Events { own, other })
    }
}

impl Side for Events {
    fn give(&mut self) {
        self.other.notify().expect("the other side listens");
    }

    fn take(&mut self) {
        let mut events = 0;
        while events == 0 {
            self.own.blocking_wait(|_| events += 1).expect("the other side notifies");
        }
    }
}

struct Messages {
    own: Subscriber<ipc::Service, u64, ()>,
    other: Publisher<ipc::Service, u64, ()>,
    number: u64,
}

impl Messages {
    fn open(place: &Place, side: usize) -> Result<Self, Box<dyn Error>> {
        let node = place.node()?;
        let service = |side| {
            let builder = node.service_builder(&name(side)?).publish_subscribe::<u64>();
            Ok::<_, Box<dyn Error>>(builder.open_or_create()?)
        };
        let own = service(side)?.subscriber_builder().create()?;
        let other = service(1 - side)?.publisher_builder().create()?;
        Ok(Messages { own, other, number: 0 })
    }
}

impl Side for Messages {
    fn give(&mut self) {
        let sample = self.other.loan_uninit().expect("the other side gave back what it took");
        sample.write_payload(self.number + 1).send().expect("the other side subscribes");
    }

    fn take(&mut self) {
        loop {
            if let Some(sample) = self.own.receive().expect("the other side publishes") {
                self.number = *sample;
                return;
            }
            std::hint::spin_loop();
        }
    }
}
