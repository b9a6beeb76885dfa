//! A token that keeps its client: for those who keep both in one place, which a borrow cannot be.

use std::mem::{ManuallyDrop, forget};
use std::ops::Deref;
use std::rc::Rc;

use laxity_model::ReplicaId;

use crate::client::{Client, LockError, TokenRequest};
use crate::config::TOKEN;
use crate::token::Token;

/// A [`Token`] that keeps its client, let go when dropped.
#[derive(Debug)]
#[must_use = "the token is let go at once"]
pub struct OwnedToken {
    client: Rc<Client>,
    replica: ReplicaId,
}

impl OwnedToken {
    /// Waits for what `request` says.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn request(client: &Rc<Client>, request: TokenRequest) -> Result<OwnedToken, LockError> {
        let token = client.request(request)?;
        let replica = token.replica();
        // From here on it is this one that lets go.
        forget(token);
        Ok(OwnedToken { client: client.clone(), replica })
    }

    /// The token, to lock engines with. It is not let go when the result is dropped.
    pub fn token(&self) -> impl Deref<Target = Token<'_>> {
        ManuallyDrop::new(Token::new(&self.client, self.replica))
    }
}

impl Drop for OwnedToken {
    fn drop(&mut self) {
        self.client.release(TOKEN, self.replica);
    }
}
