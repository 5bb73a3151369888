//! Lost sessions: those of which nothing is left but their entry in the list. A list that its writer left the home behind
//! knows all there were, and whoever removes a session in order is another owner.

use std::collections::HashSet;
use std::io;

use rekindle_domain::id::{BootId, SessionId};
use serde_json::json;

use crate::aside::is_aside;
use crate::disk::{Disk, replace};
use crate::home_files::HomeFiles;
use crate::index::Index;
use crate::layout::Layout;
use crate::survey::Listing;

/// What a note says of such a session.
const GONE: &str = "its log is missing; it existed when the last daemon stopped";

/// Returns the sessions of a list that nobody else knows of, if the last who owned the home left it behind that list.
pub(crate) fn lost(
    disk: &dyn Disk,
    layout: &Layout,
    index: &Index,
    last_owner: Option<BootId>,
    is_known: impl Fn(SessionId) -> bool,
) -> Vec<SessionId> {
    if last_owner.is_none() || index.left_by != last_owner {
        return Vec::new();
    }
    index.sessions().filter(|id| !is_known(*id) && !is_aside(disk, layout, *id)).collect()
}

/// Leaves a note of each lost session, before the list that knows it is written anew: it is served as damaged from now on, until
/// its log is restored or somebody removes it.
///
/// Tells whether there were any.
pub(crate) fn write_lost_notes(
    home: &HomeFiles,
    (listing, index): (&Listing, &Index),
    last_owner: Option<BootId>,
    recovered: &HashSet<SessionId>,
) -> io::Result<bool> {
    let known = |id: SessionId| {
        listing.sessions.binary_search(&id).is_ok()
            || listing.snapshots.contains(&id)
            || recovered.contains(&id)
    };
    let lost = lost(&*home.disk, home, index, last_owner, known);
    for session in &lost {
        let note = json!({"version": 1, "id": session, "offset": 0, "detail": GONE});
        replace(&*home.disk, &home.damage_note(*session), note.to_string().as_bytes())?;
    }
    Ok(!lost.is_empty())
}
