//! What an executable needs from the machine it runs on: a dynamic linker, or nothing.

/// Where the table of program headers is told, how long one is, how many there are: as ELF of 64 bits, little-endian, has it.
const TABLE_AT: usize = 32;
const ENTRY_LEN: usize = 54;
const ENTRIES: usize = 56;

/// The kind of program header that names a dynamic linker; where in it the name's place and length are told.
const PT_INTERP: u32 = 3;
const NAME_AT: usize = 8;
const NAME_LEN: usize = 32;

/// Returns the dynamic linker that an executable asks for; nothing if it is linked statically.
pub(crate) fn interpreter(file: &[u8]) -> Result<Option<String>, &'static str> {
    const CUT: &str = "the executable is cut short";
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Err("this is no executable for Linux on 64 bits");
    }
    let table = number::<8>(file, TABLE_AT).ok_or(CUT)?;
    let len = number::<2>(file, ENTRY_LEN).ok_or(CUT)?;
    for n in 0..number::<2>(file, ENTRIES).ok_or(CUT)? {
        let header = n.checked_mul(len).and_then(|behind| table.checked_add(behind)).ok_or(CUT)?;
        let header = file.get(header..).ok_or(CUT)?;
        if number::<4>(header, 0).ok_or(CUT)? as u32 == PT_INTERP {
            let at = number::<8>(header, NAME_AT).ok_or(CUT)?;
            let len = number::<8>(header, NAME_LEN).ok_or(CUT)?;
            let name = file.get(at..).and_then(|rest| rest.get(..len)).ok_or(CUT)?;
            return Ok(Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()));
        }
    }
    Ok(None)
}

/// Reads a number of so many bytes.
fn number<const LEN: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let mut number = [0; 8];
    number[..LEN].copy_from_slice(bytes.get(at..)?.get(..LEN)?);
    usize::try_from(u64::from_le_bytes(number)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_test_is_read_and_what_is_no_executable_is_refused() {
        let own = std::fs::read(std::env::current_exe().expect("a test")).expect("its file");
        let needs = interpreter(&own).expect("an executable");
        assert_eq!(needs.is_some(), cfg!(target_env = "gnu"), "{needs:?}");
        assert!(needs.is_none_or(|linker| linker.starts_with("/lib")));
        assert!(interpreter(b"#!/bin/sh\n").is_err() && interpreter(b"").is_err());
        for len in [6, 40, 60, 64, 100] {
            assert_eq!(
                interpreter(&own[..len]).map_err(|told| told.contains("cut short")),
                Err(true),
                "{len}"
            );
        }
    }
}
