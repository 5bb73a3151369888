//! Sealed bundles: only whoever knows the passphrase can read them. They have the format of `age`, so that its tools open them too.
//! Everything passes through in pieces, each of which is known to be genuine before anything of it is used.

use std::io::{self, Read, Seek, SeekFrom, Write};

use age::secrecy::SecretString;
use age::stream::{StreamReader, StreamWriter};
use age::{DecryptError, Decryptor, Encryptor, scrypt};

use super::BundleError;

/// How a file in this format begins, if a passphrase opens it.
const BEGINNING: &[u8] = b"age-encryption.org/v1\n-> scrypt ";

/// How every file in this format begins.
const VERSIONLESS: &[u8] = b"age-encryption.org/";

/// The header of a file that one passphrase opens is far shorter.
const MAX_HEADER: u64 = 1024;

/// How often the passphrase is stirred, as a power of two: about a second, and 256 MiB. What `age` itself takes.
const WORK: u8 = 18;

/// More is refused: it would take seconds and a gigabyte before anything is known of the file.
const MOST_WORK: u8 = 20;

/// A passphrase; never shown.
#[derive(Debug, Clone)]
pub struct Passphrase(SecretString);

impl Passphrase {
    /// Returns a passphrase, unless it is empty.
    pub fn new(text: String) -> Option<Passphrase> {
        (!text.is_empty()).then(|| Passphrase(text.into()))
    }
}

/// What is written to it is sealed; it has to be finished.
pub struct Sealing<W: Write>(StreamWriter<W>);

impl<W: Write> Sealing<W> {
    /// Begins a sealed bundle.
    pub fn new(sink: W, passphrase: &Passphrase) -> Result<Sealing<W>, BundleError> {
        Sealing::with_work(sink, passphrase, WORK)
    }

    pub(super) fn with_work(sink: W, passphrase: &Passphrase, work: u8) -> Result<Sealing<W>, BundleError> {
        let mut recipient = scrypt::Recipient::new(passphrase.0.clone());
        recipient.set_work_factor(work);
        let encryptor = Encryptor::with_recipients(std::iter::once(&recipient as &dyn age::Recipient));
        let encryptor = encryptor.map_err(|error| BundleError::unwritten(io::Error::other(error)))?;
        encryptor.wrap_output(sink).map(Sealing).map_err(BundleError::unwritten)
    }

    /// Writes the end, without which nobody opens it, and returns where it was written to.
    pub fn finish(self) -> Result<W, BundleError> {
        self.0.finish().map_err(BundleError::unwritten)
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Tells whether a file is sealed; leaves it at its beginning.
pub fn is_sealed(file: &mut (impl Read + Seek)) -> Result<bool, BundleError> {
    let mut beginning = Vec::new();
    let read = file.by_ref().take(VERSIONLESS.len() as u64).read_to_end(&mut beginning);
    read.and_then(|_| file.seek(SeekFrom::Start(0))).map_err(BundleError::unread)?;
    Ok(beginning == VERSIONLESS)
}

/// Opens a sealed bundle: what is read from it is what was sealed.
pub fn open_sealed<R: Read + Seek>(
    mut file: R,
    passphrase: &Passphrase,
) -> Result<StreamReader<R>, BundleError> {
    let mut header = Vec::new();
    let read = file.by_ref().take(MAX_HEADER).read_to_end(&mut header);
    read.and_then(|_| file.seek(SeekFrom::Start(0))).map_err(BundleError::unread)?;
    // Looked at before it is parsed, so that a header without an end is not read to its end.
    let has_end = header.windows(5).any(|bytes| bytes == b"\n--- ");
    if !header.starts_with(BEGINNING) || !has_end {
        return Err(BundleError::NotABundle("it is not sealed with a passphrase alone, or it is cut off"));
    }
    let mut identity = scrypt::Identity::new(passphrase.0.clone());
    identity.set_max_work_factor(MOST_WORK);
    let opened = Decryptor::new(file).and_then(|decryptor| {
        let identities = std::iter::once(&identity as &dyn age::Identity);
        decryptor.decrypt(identities)
    });
    opened.map_err(|error| match error {
        DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed | DecryptError::NoMatchingKeys => {
            BundleError::WrongPassphrase
        }
        DecryptError::ExcessiveWork { .. } => {
            BundleError::NotABundle("its passphrase takes more work to check than is allowed for a bundle")
        }
        DecryptError::Io(error) => BundleError::unread(error),
        _ => BundleError::Damaged("the header of the seal cannot be read".into()),
    })
}
