//! String enums: each variant is one word, on disk, in the interface and for people.

/// Makes enums of words, each written as it is called.
macro_rules! string_enums {
    ($($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:tt,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: [$name; [$($word,)*].len()] = [$($name::$variant,)*];

            /// Returns the word.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
    )*};
}

pub(crate) use string_enums;
