//! The message of the API server about an error.

/// Returns an error of the API server in its own words.
///
/// ```
/// let error = kube::Error::LinesCodecMaxLineLengthExceeded;
/// assert_eq!(setpoint_kube::message_of(&error), error.to_string());
/// ```
pub fn message_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}
