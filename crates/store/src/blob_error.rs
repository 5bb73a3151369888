//! Why a blob cannot be kept or given, and the limits that these errors speak of.

use std::path::PathBuf;

use rekindle_domain::blob_id::BlobId;

use crate::error::PathError;

/// Largest payload of a record: one line of an agent at its limit.
pub const MAX_BLOB: usize = 64 << 20;

/// Largest content of a file of a workspace. It is only ever streamed, so that this is a limit of disk and time, not of memory.
pub const MAX_CONTENT: u64 = 256 << 20;

/// Why a blob cannot be kept or given.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// It is larger than any payload we keep.
    #[error("a payload of {0} bytes is larger than the limit of {MAX_BLOB}")]
    TooLarge(usize),
    /// A file's content is larger than any we keep.
    #[error("a file is larger than the limit of {MAX_CONTENT} bytes; exclude it")]
    ContentTooLarge,
    /// The bytes that were to be kept could not be read.
    #[error("the content to be stored cannot be read")]
    Source(#[source] std::io::Error),
    /// Whoever was to take the bytes could not.
    #[error("the blob cannot be written to its destination")]
    Sink(#[source] std::io::Error),
    /// It is not there.
    #[error("blob {0} is missing")]
    Missing(BlobId),
    /// Its bytes are not what its name says.
    #[error("blob {id} in {path} is damaged: {detail}")]
    Damaged {
        /// Its name.
        id: BlobId,
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A write of the same batch failed before, so nothing of the batch can be kept.
    #[error("an earlier write of this batch failed ({0}); nothing of the batch was stored")]
    BatchFailed(String),
    /// Its file cannot be used.
    #[error(transparent)]
    Io(#[from] PathError),
}
