//! What is taken up, refused and said, look by look.

use super::*;
use crate::config::{Config, parse};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// When these tests begin: 1990, in the time of everything that is made here.
const BEGUN: UnixMs = UnixMs(631_152_000_000);

/// Files, and the time of day.
struct Files(RefCell<HashMap<&'static str, String>>, Cell<UnixMs>);

impl Env for Files {
    fn var(&self, _: &str) -> Option<String> {
        Some("secret".to_owned())
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        let files = self.0.borrow();
        let found = path.to_str().and_then(|path| files.get(path));
        found.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn now(&self) -> UnixMs {
        self.1.get()
    }
}

fn papers() -> (String, String) {
    until(4096)
}

/// Until a year begins.
fn until(year: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut chain = CertificateParams::new(vec!["gateway.test".to_owned()]).unwrap();
    chain.not_after = date_time_ymd(year, 1, 1);
    (chain.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

const FILE: &str = r#"
state_dir = "state"
[listen]
tls = { cert_file = "cert.pem", key_file = "key.pem" }
[[provider]]
name = "p"
kind = "openai"
base_url = "http://127.0.0.1:9000/v1"
credentials = [{ name = "main", key = "${KEY}" }]
"#;

fn put(files: &Files, (cert, key): (String, String)) {
    files.0.borrow_mut().extend([("/cert.pem", cert), ("/key.pem", key)]);
}

#[test]
fn a_good_certificate_is_taken_up_and_a_bad_one_changes_nothing_and_is_told_once() {
    let files = Files(RefCell::default(), Cell::new(BEGUN));
    put(&files, papers());
    let config: Config = parse("/tollgate.toml", FILE, &files).unwrap();
    let mut followed = Followed::new(config.listen_tls.unwrap(), files.now());
    let nothing = |(taken, said): (Option<Papers>, Vec<Said>)| taken.is_none() && said.is_empty();
    let refused = |(taken, said): (Option<Papers>, Vec<Said>)| {
        taken.is_none() && matches!(&said[..], [Said::Refused(_)])
    };
    assert!(nothing(followed.look(&files)), "nothing has changed");

    let fresh = papers();
    put(&files, fresh.clone());
    let (taken, said) = followed.look(&files);
    assert!(taken.is_some());
    assert_eq!(said, [Said::Taken("/cert.pem is shown from now on".to_owned())]);
    assert!(nothing(followed.look(&files)));

    // The key of another, as between two writes of who renews them; then no file at all.
    files.0.borrow_mut().insert("/key.pem", papers().1);
    let (taken, said) = followed.look(&files);
    assert!(taken.is_none());
    let [Said::Refused(why)] = &said[..] else { panic!("{said:?}") };
    assert!(why.starts_with("key_file /key.pem: the key is not that"), "{why}");
    assert!(why.ends_with("; the old certificate stays"), "{why}");
    assert!(nothing(followed.look(&files)), "told once");
    files.0.borrow_mut().remove("/cert.pem");
    assert!(refused(followed.look(&files)));

    put(&files, fresh);
    assert!(nothing(followed.look(&files)), "what is shown is back");
    files.0.borrow_mut().insert("/key.pem", String::new());
    assert!(refused(followed.look(&files)), "told again");
}

#[test]
fn a_certificate_that_has_ended_is_told_once_and_taken_up_all_the_same() {
    let files = Files(RefCell::default(), Cell::new(BEGUN));
    put(&files, until(2000));
    let config: Config = parse("/tollgate.toml", FILE, &files).unwrap();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let mut followed = Followed::new(config.listen_tls.unwrap(), files.now());
    // It ends while it is shown.
    files.1.set(UnixMs(1_000_000_000_000));
    let doubted =
        [Said::Doubted("cert_file /cert.pem: has ended, 2000-01-01T00:00:00Z".to_owned())];
    assert_eq!(followed.look(&files).1, doubted);
    assert_eq!(followed.look(&files).1, []);
    // Another one that has ended, and one that has not.
    put(&files, until(2000));
    let (taken, said) = followed.look(&files);
    assert!(taken.is_some());
    assert_eq!(said[1..], doubted);
    put(&files, papers());
    assert_eq!(followed.look(&files).1.len(), 1);
    assert_eq!(followed.look(&files).1, []);
    // A node that begins with one that has ended says so by its configuration.
    put(&files, until(2000));
    let config: Config = parse("/tollgate.toml", FILE, &files).unwrap();
    let told: Vec<&str> = config.warnings.iter().map(|warning| &*warning.text).collect();
    assert_eq!(told, ["cert_file /cert.pem: has ended, 2000-01-01T00:00:00Z"]);
    assert_eq!(Followed::new(config.listen_tls.unwrap(), files.now()).look(&files).1, []);
}
