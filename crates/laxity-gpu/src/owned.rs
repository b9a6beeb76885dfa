//! A token that keeps its client, for values that own both, where a borrow cannot be.

use std::mem::{ManuallyDrop, forget};
use std::ops::Deref;
use std::rc::Rc;

use laxity_model::ReplicaId;

use crate::client::Client;
use crate::config::TOKEN;
use crate::request::{LockError, TokenRequest};
use crate::token::Token;

/// A [`Token`] that keeps its client, released when dropped.
#[derive(Debug)]
#[must_use = "the token is released at once"]
pub struct OwnedToken {
    client: Rc<Client>,
    replica: ReplicaId,
}

impl OwnedToken {
    /// Waits for the token that `request` describes.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn request(client: &Rc<Client>, request: TokenRequest) -> Result<OwnedToken, LockError> {
        let token = client.request(request)?;
        let replica = token.replica();
        // From here on the result releases it.
        forget(token);
        Ok(OwnedToken { client: client.clone(), replica })
    }

    /// The token, to lock engines with. The drop of the result does not release it.
    pub fn token(&self) -> impl Deref<Target = Token<'_>> {
        ManuallyDrop::new(Token::new(&self.client, self.replica))
    }
}

impl Drop for OwnedToken {
    fn drop(&mut self) {
        self.client.release(TOKEN, self.replica);
    }
}
