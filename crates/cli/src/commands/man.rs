//! `rekindle man`: the manual pages, made from what `--help` says. For whoever packages Rekindle.

use std::path::PathBuf;

use clap::CommandFactory;
use rekindle_client::failure::{Exit, Failure};

/// Write the manual pages, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle man --out ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The directory for the pages; it is created if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let write = || {
        std::fs::create_dir_all(&args.out)?;
        clap_mangen::generate_to(crate::Cli::command(), &args.out)
    };
    write().map_err(|error: std::io::Error| {
        let error = anyhow::Error::new(error).context(format!("cannot write into {}", args.out.display()));
        Failure::failed("man_unwritable", error).hint("name another directory with --out")
    })?;
    anstream::eprintln!("the pages are in {}; man -M or $MANPATH finds them there", args.out.display());
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;

    /// Adds the name of a command's page, and those of the commands below it that help lists.
    fn pages(command: &Command, name: &str, found: &mut BTreeSet<String>) {
        found.insert(format!("{name}.1"));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            pages(below, &format!("{name}-{}", below.get_name()), found);
        }
    }

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let directory = tempfile::tempdir().expect("a directory");
        let out = directory.path().join("man1");
        run(&Args { out: out.clone() }).expect("written");
        let mut expected = BTreeSet::new();
        pages(&crate::Cli::command(), "rekindle", &mut expected);
        let written: BTreeSet<String> = std::fs::read_dir(&out)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        assert_eq!(written, expected);
        assert!(expected.len() > 50 && expected.contains("rekindle-task-add.1"), "{}", expected.len());
        let page = std::fs::read_to_string(out.join("rekindle-search.1")).expect("a page");
        assert!(page.contains("Search what was said") && page.contains("Examples"), "{page}");
    }

    #[test]
    fn every_command_shows_how_it_is_used() {
        fn each(command: &Command, name: &str, lacking: &mut Vec<String>) {
            let examples = command.get_after_help().or(command.get_after_long_help());
            if !examples.is_some_and(|text| text.to_string().contains("Examples:")) {
                lacking.push(name.to_owned());
            }
            for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
                each(below, &format!("{name} {}", below.get_name()), lacking);
            }
        }
        let mut lacking = Vec::new();
        each(&crate::Cli::command(), "rekindle", &mut lacking);
        assert_eq!(lacking, Vec::<String>::new(), "commands whose help has no example");
    }
}
