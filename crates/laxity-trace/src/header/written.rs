//! How a header's values of other crates are written.

/// A scheduler as two fields: `scheduler`, as it is written in workloads (`G-EDF/CEm`), and `coarse_lock`.
pub mod scheduler {
    use laxity_model::Scheduler;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    struct Fields {
        scheduler: String,
        coarse_lock: bool,
    }

    pub fn serialize<S: Serializer>(scheduler: &Scheduler, serializer: S) -> Result<S::Ok, S::Error> {
        Fields { scheduler: scheduler.to_string(), coarse_lock: scheduler.coarse_lock }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Scheduler, D::Error> {
        let Fields { scheduler, coarse_lock } = Fields::deserialize(deserializer)?;
        let scheduler: Scheduler = scheduler.parse().map_err(D::Error::custom)?;
        Ok(Scheduler { coarse_lock, ..scheduler })
    }
}

/// Interrupt handling by its name; klmirqd with its number of threads.
pub mod handling {
    use laxity_model::{InterruptHandling, ThreadPriority};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Name {
        Linux,
        PreemptRtLow,
        PreemptRtHigh,
        Pai,
        Klmirqd { threads: Option<u32> },
    }

    pub fn serialize<S: Serializer>(handling: &InterruptHandling, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match *handling {
            InterruptHandling::Linux => Name::Linux,
            InterruptHandling::PreemptRt(ThreadPriority::Low) => Name::PreemptRtLow,
            InterruptHandling::PreemptRt(ThreadPriority::High) => Name::PreemptRtHigh,
            InterruptHandling::ProcessAware => Name::Pai,
            InterruptHandling::Klmirqd { threads } => Name::Klmirqd { threads },
        };
        name.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<InterruptHandling, D::Error> {
        Ok(match Name::deserialize(deserializer)? {
            Name::Linux => InterruptHandling::Linux,
            Name::PreemptRtLow => InterruptHandling::PreemptRt(ThreadPriority::Low),
            Name::PreemptRtHigh => InterruptHandling::PreemptRt(ThreadPriority::High),
            Name::Pai => InterruptHandling::ProcessAware,
            Name::Klmirqd { threads } => InterruptHandling::Klmirqd { threads },
        })
    }
}

/// An engine by its number in [`Engine::ALL`](laxity_model::Engine::ALL).
pub mod engine {
    use laxity_model::Engine;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(engine.index() as u8)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Engine, D::Error> {
        let number = u8::deserialize(deserializer)?;
        let engine = Engine::ALL.get(usize::from(number)).copied();
        engine.ok_or_else(|| D::Error::custom(format_args!("engine {number} of 0 to 2")))
    }
}
