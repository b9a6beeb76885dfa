//! What a trace's header says of the tasks that are bandwidth servers.

use laxity_model::{Nanos, ServerKind, TaskId};
use serde::{Deserialize, Serialize};

/// A task that is a bandwidth server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// The task.
    pub task: TaskId,
    /// What happens when its budget is used up.
    #[serde(with = "server_kind")]
    pub kind: ServerKind,
    /// CPU time in a period.
    #[serde(rename = "budget_ns")]
    pub budget: Nanos,
    /// Its period.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
}

/// The rules of a server by their name.
mod server_kind {
    use laxity_model::ServerKind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    const KINDS: [ServerKind; 3] = [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic];

    pub fn serialize<S: Serializer>(kind: &ServerKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ServerKind, D::Error> {
        let name = String::deserialize(deserializer)?;
        let kind = KINDS.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| D::Error::custom(format_args!("{name:?} is no kind of server")))
    }
}
