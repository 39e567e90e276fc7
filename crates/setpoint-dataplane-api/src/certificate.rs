//! The properties of a certificate in a file.

use jiff::Timestamp;
use serde_json::{Map, Value as Json};
use x509_parser::pem::Pem;
use x509_parser::prelude::{GeneralName, X509Certificate, X509Name};

/// Reads the first certificate of a file that holds its key, too. Returns its properties.
pub(crate) fn described(bytes: &[u8]) -> Result<Map<String, Json>, &'static str> {
    const BROKEN: &str = "failed to parse certificate";
    let blocks: Vec<Pem> = Pem::iter_from_buffer(bytes).filter_map(Result::ok).collect();
    let block = blocks.iter().find(|block| block.label == "CERTIFICATE").ok_or(BROKEN)?;
    let certificate = block.parse_x509().map_err(|_| BROKEN)?;
    if !blocks.iter().any(|block| block.label.ends_with("PRIVATE KEY")) {
        return Err("file should contain both certificate and private key");
    }
    let mut properties = Map::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            properties.insert(name.to_owned(), Json::from(value));
        }
    };
    add("subject", common_name(certificate.subject()));
    add("domains", hosts(&certificate));
    add("issuers", common_name(certificate.issuer()));
    add("serial", certificate.tbs_certificate.serial.to_string());
    add("not_before", written(certificate.validity().not_before.timestamp()));
    add("not_after", written(certificate.validity().not_after.timestamp()));
    Ok(properties)
}

fn common_name(name: &X509Name<'_>) -> String {
    name.iter_common_name().next().and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned()
}

/// The hosts that it is for, by its alternative names.
fn hosts(certificate: &X509Certificate<'_>) -> String {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
    let hosts = names.iter().filter_map(|name| match name {
        GeneralName::DNSName(host) => Some(*host),
        _ => None,
    });
    hosts.collect::<Vec<_>>().join(", ")
}

/// A time as the API writes it.
fn written(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or_default().to_string();
    format!("{}.000Z", time.trim_end_matches('Z'))
}
