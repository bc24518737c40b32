//! What is taken up, refused and said, look by look.

use super::*;
use crate::config::{Config, parse};
use rcgen::{CertificateParams, KeyPair};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::Path;

struct Files(RefCell<HashMap<&'static str, String>>);

impl Env for Files {
    fn var(&self, _: &str) -> Option<String> {
        Some("secret".to_owned())
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        let files = self.0.borrow();
        let found = path.to_str().and_then(|path| files.get(path));
        found.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn papers() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let chain = CertificateParams::new(vec!["gateway.test".to_owned()]).unwrap();
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
    let files = Files(RefCell::default());
    put(&files, papers());
    let config: Config = parse("/tollgate.toml", FILE, &files).unwrap();
    let mut followed = Followed::new(config.listen_tls.unwrap());
    assert!(matches!(followed.look(&files), (None, None)), "nothing has changed");

    let fresh = papers();
    put(&files, fresh.clone());
    let (taken, said) = followed.look(&files);
    assert!(taken.is_some());
    assert_eq!(said, Some(Said::Taken("/cert.pem is shown from now on".to_owned())));
    assert!(matches!(followed.look(&files), (None, None)));

    // The key of another, as between two writes of who renews them; then no file at all.
    files.0.borrow_mut().insert("/key.pem", papers().1);
    let (taken, said) = followed.look(&files);
    assert!(taken.is_none());
    let Some(Said::Refused(why)) = said else { panic!("{said:?}") };
    assert!(why.starts_with("key_file /key.pem: the key is not that"), "{why}");
    assert!(why.ends_with("; the old certificate stays"), "{why}");
    assert!(matches!(followed.look(&files), (None, None)), "told once");
    files.0.borrow_mut().remove("/cert.pem");
    assert!(matches!(followed.look(&files), (None, Some(Said::Refused(_)))));

    put(&files, fresh);
    assert!(matches!(followed.look(&files), (None, None)), "what is shown is back");
    files.0.borrow_mut().insert("/key.pem", String::new());
    assert!(matches!(followed.look(&files), (None, Some(Said::Refused(_)))), "told again");
}
