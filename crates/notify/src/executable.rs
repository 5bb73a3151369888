//! Executables looked for as a shell would find them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::machine::Machine;

/// Tells whether an executable is there: by its path, or by its name in one of the directories of `PATH`.
pub(crate) fn is_executable(machine: &dyn Machine, program: &str) -> bool {
    let is_file_to_run = |path: &Path| {
        let about = path.metadata();
        about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_file_to_run(Path::new(program));
    }
    let path = machine.variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_file_to_run(&directory.join(program)))
}
