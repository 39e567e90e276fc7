//! The cloud that a structure is in.

use std::fmt;
use std::str::FromStr;

/// The cloud providers that are known.
///
/// ```
/// use setpoint_composite::settings::CloudProvider;
///
/// assert_eq!("onprem".parse(), Ok(CloudProvider::OnPrem));
/// assert_eq!(CloudProvider::Gke.to_string(), "GKE");
/// assert!("Mars".parse::<CloudProvider>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloudProvider {
    /// Azure.
    Aks,
    /// Google.
    Gke,
    /// Amazon.
    Eks,
    /// None of them.
    #[default]
    OnPrem,
}

/// A cloud provider that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no cloud provider: it is one of AKS, GKE, EKS and OnPrem")]
pub struct UnknownProvider(pub String);

impl CloudProvider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Aks, Self::Gke, Self::Eks, Self::OnPrem];

    /// How it is written in the payload.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aks => "AKS",
            Self::Gke => "GKE",
            Self::Eks => "EKS",
            Self::OnPrem => "OnPrem",
        }
    }
}

impl fmt::Display for CloudProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CloudProvider {
    type Err = UnknownProvider;

    /// Reads it in whatever case; blank is the default.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let known = Self::ALL.into_iter().find(|provider| provider.as_str().eq_ignore_ascii_case(text));
        known.ok_or_else(|| UnknownProvider(text.to_owned()))
    }
}
