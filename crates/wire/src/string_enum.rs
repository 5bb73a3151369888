//! String enums: each variant is one word of the interface.

/// Makes enums of words. A word that a newer daemon says and this version does not know is read as `Unknown`: whoever
/// shows a session need not understand all of it. No daemon writes that, and the OpenAPI document does not have it.
macro_rules! string_enums {
    ($($(#[$about:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:tt,)* })*) => {$(
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema
        )]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
            /// A word that this version does not know.
            #[serde(rename = "unknown", other)]
            #[schemars(skip)]
            Unknown,
        }

        impl $name {
            /// Returns the word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                    $name::Unknown => "unknown",
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    )*};
}

pub(crate) use string_enums;
