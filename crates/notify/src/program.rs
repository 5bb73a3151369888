//! Programs looked for as a shell would find them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::machine::Machine;

/// Tells whether there is a program of this name: a path, or a name in one of the directories of `PATH`.
pub(crate) fn is_there(machine: &dyn Machine, program: &str) -> bool {
    let is_program = |path: &Path| {
        let about = path.metadata();
        about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    let path = machine.variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_program(&directory.join(program)))
}
