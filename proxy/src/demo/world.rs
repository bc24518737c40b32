//! What the demo runs: a stand-in provider, a gateway in front of it, and a key made up for this
//! run. Nothing is read from the machine, and what is written to it goes with the demo.

use super::Failure;
use crate::config::{self, Config, Env};
use crate::server::{Keep, Node, Options};
use loadtest::standin::{self, Standin};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shards of the demo: two show that there are several.
const SHARDS: usize = 2;

/// What the gateway sends as the provider's credential; the stand-in takes anything.
const CREDENTIAL: &str = "sk-stand-in";

/// How long a stream of the demo may be silent before the client is sent a sign of life: short, so
/// that nobody has to wait for one.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(200);

/// Random bytes of a key: 160 bits.
const KEY_BYTES: usize = 20;

/// The demo's running parts.
pub(super) struct World {
    pub(super) standin: Standin,
    pub(super) node: Node,
    pub(super) config: Config,
    pub(super) key: String,
    /// Everything durable of it; goes with the demo.
    pub(super) home: Home,
}

impl World {
    pub(super) fn start() -> Result<World, Failure> {
        let standin = Standin::start(standin::Config::default())
            .map_err(|error| Failure::new(format!("the stand-in did not start: {error}")))?;
        let key = mint_key().map_err(Failure::start)?;
        let home = Home::make().map_err(Failure::start)?;
        let text = configuration(standin.addr(), &key, &home);
        let config = config::parse("demo.toml", &text, &Fixed)
            .map_err(|errors| Failure::new(errors.to_string()))?;
        let node = Node::start(&config, &Options { keep_records: Keep::All, pin: false })
            .map_err(Failure::start)?;
        Ok(World { standin, node, config, key, home })
    }
}

/// A folder of the demo's own, removed in the end.
pub(super) struct Home(PathBuf);

impl Home {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn make() -> io::Result<Home> {
        let mut bytes = [0; 8];
        let random = ring::rand::SystemRandom::new();
        ring::rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| io::ErrorKind::Other)?;
        let name = format!("tollgate-demo-{:016x}", u64::from_le_bytes(bytes));
        let folder = std::env::temp_dir().join(name);
        // Nobody else's: a folder that is there already is an error.
        std::fs::create_dir(&folder)?;
        Ok(Home(folder))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for what is temporary.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Two providers of names that the price list knows, so that the receipts have real prices, and one
/// that has enough to do. Models that are scripts have the fall-back price, which is that of
/// gpt-4o-mini.
fn configuration(standin: SocketAddr, key: &str, home: &Home) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "state_dir = \"{}\"\n[ledger]\nsegment_bytes = \"1MiB\"\n\
         [listen]\ndata = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [shards]\ncount = {SHARDS}\n\
         [deadlines]\nheartbeat = \"{}ms\"\n[retry]\nattempts = 1\n\
         [price]\nfallback = {{ input = 150_000, output = 600_000 }}\n\
         [[provider]]\nname = \"openai\"\nkind = \"openai\"\nbase_url = \"http://{standin}/v1\"\n\
         credentials = [{{ name = \"main\", key = \"${{STANDIN_KEY}}\" }}]\n\
         models = [\"gpt-*\"]\n\
         [[provider]]\nname = \"anthropic\"\nkind = \"anthropic\"\n\
         base_url = \"http://{standin}\"\n\
         credentials = [{{ name = \"main\", key = \"${{STANDIN_KEY}}\" }}]\n\
         models = [\"claude-*\"]\n\
         [[provider]]\nname = \"crowded\"\nkind = \"openai\"\nbase_url = \"http://{standin}/v1\"\n\
         credentials = [{{ name = \"main\", key = \"${{STANDIN_KEY}}\" }}]\n\
         [[model]]\nname = \"steady\"\n\
         candidates = [{{ provider = \"crowded\", model = \"stream-err-first\", priority = 1 }}, \
         {{ provider = \"openai\", model = \"gpt-4o-mini\", priority = 2 }}]\n\
         [alias]\nfast = \"openai/gpt-4o-mini\"\n\
         [[key]]\nname = \"demo\"\nsha256 = \"{digest}\"\n",
        home.0.display(),
        HEARTBEAT.as_millis(),
    )
}

/// `tg-` and 32 letters and digits of base 32.
fn mint_key() -> io::Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; KEY_BYTES];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| io::ErrorKind::Other)?;
    let mut key = String::from("tg-");
    for five in bytes.chunks_exact(5) {
        let bits = five.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let letter = |at: u32| char::from(LETTERS[(bits >> (5 * at) & 31) as usize]);
        key.extend((0..8).rev().map(letter));
    }
    Ok(key)
}

/// An environment of one variable and no files.
struct Fixed;

impl Env for Fixed {
    fn var(&self, name: &str) -> Option<String> {
        (name == "STANDIN_KEY").then(|| CREDENTIAL.to_owned())
    }

    fn read_file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_shape_of_keys_and_differ() {
        let (one, other) = (mint_key().unwrap(), mint_key().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 35);
        let letters = one.strip_prefix("tg-").unwrap();
        assert!(letters.bytes().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b)));
    }
}
