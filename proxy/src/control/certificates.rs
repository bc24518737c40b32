//! New certificates of the listener, taken up while it listens: whoever renews them writes the
//! files and need not know of us. Connections under way keep what they have; a file that is of no
//! use is told and changes nothing. One that ends while it is shown is told too.
//!
//! The files are read every [`LOOK`], and at once when asked to, and compared by content: a time of
//! change says nothing of a link that leads elsewhere. They are read on a thread beside the control
//! thread, for a file system may be gone and a read of it last for ever: after [`READ_MAX`] that is
//! told, and nothing else is read until this read has ended.

use super::signals::Hangup;
use crate::config::{Env, ListenTls, Papers};
use crate::exchange::time::UnixMs;
use std::time::Duration;

/// How often the files are read: small ones, from the page cache.
pub const LOOK: Duration = Duration::from_secs(10);

/// How long a look at the files may take before that is told: small files on a slow network are
/// faster.
pub const READ_MAX: Duration = Duration::from_secs(10);

/// What there is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A new certificate is shown from now on.
    Taken(String),
    /// What was found is of no use: the old one stays.
    Refused(String),
    /// Clients will mind what is shown: it has ended, or has not begun.
    Doubted(String),
}

/// What the files held when they were last looked at.
pub struct Followed {
    listen: ListenTls,
    /// The last fault that was told: it is told once.
    told: Option<String>,
    /// What was told last of the certificate that is shown.
    doubted: Option<String>,
}

impl Followed {
    /// Nothing has changed since the start, which has told what was to be told at this time.
    pub fn new(listen: ListenTls, now: UnixMs) -> Followed {
        let doubted = listen.doubt(now);
        Followed { listen, told: None, doubted }
    }

    /// Reads the files. What has changed, if it is of use; what there is to say.
    pub fn look(&mut self, env: &dyn Env) -> (Option<Papers>, Vec<Said>) {
        let (fresh, said) = self.changed(env);
        let doubt = self.listen.doubt(env.now());
        // Of a fresh one it is told even if it was told of the one before.
        let again = fresh.is_some() || doubt != self.doubted;
        self.doubted.clone_from(&doubt);
        let doubt = doubt.filter(|_| again).map(Said::Doubted);
        (fresh, said.into_iter().chain(doubt).collect())
    }

    fn changed(&mut self, env: &dyn Env) -> (Option<Papers>, Option<Said>) {
        match self.listen.read(env) {
            Ok(Papers { digest, .. }) if digest == self.listen.papers.digest => {
                self.told = None;
                (None, None)
            }
            Ok(papers) => {
                self.told = None;
                self.listen.papers = papers.clone();
                let said = format!("{} is shown from now on", self.listen.cert_file.display());
                (Some(papers), Some(Said::Taken(said)))
            }
            Err(why) if self.told.as_ref() == Some(&why) => (None, None),
            Err(why) => {
                self.told = Some(why.clone());
                (None, Some(Said::Refused(format!("{why}; the old certificate stays"))))
            }
        }
    }
}

/// Looks for as long as the process lives.
pub async fn follow(
    listen: ListenTls,
    mut hangup: Hangup,
    env: impl Env + Copy + Send + 'static,
    publish: impl Fn(&Papers),
    tell: impl Fn(Said),
) {
    let shown = listen.cert_file.display().to_string();
    let mut followed = Followed::new(listen, env.now());
    loop {
        tokio::select! {
            () = hangup.next() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        let mut reading = tokio::task::spawn_blocking(move || {
            let found = followed.look(&env);
            (followed, found)
        });
        let read = match tokio::time::timeout(READ_MAX, &mut reading).await {
            Ok(read) => read,
            Err(_) => {
                let seconds = READ_MAX.as_secs();
                tell(Said::Refused(format!(
                    "{shown}: not read within {seconds} s; the old certificate stays"
                )));
                reading.await
            }
        };
        // A defect of ours, told where it happened: the certificate stays what it is.
        let Ok((back, (fresh, said))) = read else { return };
        followed = back;
        fresh.iter().for_each(&publish);
        said.into_iter().for_each(&tell);
    }
}

#[cfg(test)]
mod tests;
