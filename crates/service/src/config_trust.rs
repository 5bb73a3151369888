//! Trust in project files: whoever asks for a run has its file looked up in the home's list, or says that it is trusted from now on.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::config_trust::TrustedConfig;
use rekindle_domain::time::Timestamp;
use rekindle_store::disk::Disk;
use rekindle_store::layout::Layout;
use rekindle_store::trusted_configs::{self, TrustError};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use crate::error::{Result, ServiceError};

/// A project file that is about to be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigInUse<'a> {
    /// The project's directory, without links on the way to it.
    pub(crate) root: &'a str,
    /// BLAKE3 of the file.
    pub(crate) hash: BlobId,
    /// What whoever asks says is trusted from now on.
    pub(crate) said: Option<BlobId>,
    /// Who asks.
    pub(crate) by: &'a str,
}

/// Lets a file be used that somebody has trusted in its directory, or that is trusted from now on: then that is on disk. Any other is
/// refused; nothing has happened then. May block.
pub(crate) fn require(
    disk: &dyn Disk,
    layout: &Layout,
    config: ConfigInUse<'_>,
    now: Timestamp,
) -> Result<()> {
    let ConfigInUse { root, hash, said, by } = config;
    match said {
        Some(said) if said != hash => {
            let message =
                format!("the trusted hash is {said}, but the project file of {root} has the hash {hash}");
            Err(untrusted(message).hint(Hint::TrustConfig { hash: Box::new(hash) }))
        }
        Some(_) => {
            let new = TrustedConfig { root: root.to_owned(), hash, at: now, by: by.to_owned() };
            trusted_configs::trust(disk, layout, new).map_err(unusable)
        }
        None => {
            let list = trusted_configs::read(disk, layout).map_err(unusable)?;
            if list.is_trusted(root, hash) {
                return Ok(());
            }
            let changed =
                if list.knows(root) { ", because it has changed since it was last trusted" } else { "" };
            let message = format!("the project file of {root} is not trusted{changed}; its hash is {hash}");
            Err(untrusted(message).hint(Hint::TrustConfig { hash: Box::new(hash) }))
        }
    }
}

fn untrusted(message: String) -> ServiceError {
    ServiceError::new(Code::ConfigUntrusted, message)
}

/// Says that the list is of no use: nothing is trusted then, and whoever said so again would not be heard.
fn unusable(error: TrustError) -> ServiceError {
    ServiceError::caused_by(Code::Storage, error).hint(Hint::ExamineHome)
}

#[cfg(test)]
mod tests {
    use rekindle_testkit::sim::{Fault, FaultKind, OpKind, SimDisk};

    use super::*;

    fn home() -> (SimDisk, Layout) {
        let disk = SimDisk::new(1);
        disk.create_dir(std::path::Path::new("/home")).expect("a directory");
        (disk, Layout::new("/home"))
    }

    fn asked(home: &(SimDisk, Layout), root: &str, text: &str, said: Option<&str>) -> Result<()> {
        let hash = |text: &str| BlobId::of(text.as_bytes());
        let config = ConfigInUse { root, hash: hash(text), said: said.map(hash), by: "user:ada" };
        require(&home.0, &home.1, config, Timestamp::from_millis(0))
    }

    fn refused(home: &(SimDisk, Layout), root: &str, text: &str, said: Option<&str>) -> ServiceError {
        let refused = asked(home, root, text, said).expect_err("it is not trusted");
        assert_eq!(refused.code, Code::ConfigUntrusted);
        refused
    }

    #[test]
    fn a_file_is_used_once_somebody_has_said_so_of_its_bytes_in_its_directory() {
        let home = home();
        let first = refused(&home, "/repo", "one", None);
        assert_eq!(first.hint, Some(Hint::TrustConfig { hash: Box::new(BlobId::of(b"one")) }));
        assert!(!first.message.contains("has changed"));
        refused(&home, "/repo", "one", Some("two"));
        refused(&home, "/repo", "one", None);
        asked(&home, "/repo", "one", Some("one")).expect("it is said");
        asked(&home, "/repo", "one", None).expect("it was said");
        refused(&home, "/other", "one", None);
        assert!(refused(&home, "/repo", "two", None).message.contains("has changed"));
        let list = trusted_configs::read(&home.0, &home.1).expect("a list");
        assert_eq!((list.trusted.len(), list.trusted[0].by.as_str()), (1, "user:ada"));
    }

    #[test]
    fn what_cannot_be_read_or_written_trusts_nothing() {
        let home = home();
        home.0.inject(Fault::once(FaultKind::NoSpace, 0).on(&[OpKind::Write]));
        let failed = asked(&home, "/repo", "one", Some("one")).expect_err("it is not on disk");
        assert_eq!(failed.code, Code::Storage);
        home.0.clear_faults();
        refused(&home, "/repo", "one", None);
        asked(&home, "/repo", "one", Some("one")).expect("it is said");
        home.0.write_file(home.1.trusted_configs(), b"{");
        for said in [None, Some("one")] {
            let damaged = asked(&home, "/repo", "one", said).expect_err("it cannot be read");
            assert_eq!((damaged.code, damaged.hint), (Code::Storage, Some(Hint::ExamineHome)));
        }
    }
}
