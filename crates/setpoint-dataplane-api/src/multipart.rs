//! The file of a form: the part that is called `file_upload`.

use crate::answer::Problem;
use crate::request::Request;

/// A file that was sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Reads the file of a form.
pub(crate) fn upload(request: &Request) -> Result<Upload, Problem> {
    let kinds: &[&str] = if request.dialect.is_new() {
        &["multipart/form-data"]
    } else {
        &["multipart/form-data", "application/json"]
    };
    request.expects(kinds)?;
    let kind = request.header("content-type").unwrap_or_default();
    let boundary = kind.split(';').find_map(|part| part.trim().strip_prefix("boundary="));
    let boundary = boundary.map(|boundary| boundary.trim_matches('"')).unwrap_or_default();
    find(&request.body, boundary).ok_or_else(|| {
        Problem::new(
            400,
            if request.dialect.is_new() {
                "http: no such file"
            } else {
                "No file_upload form param specified"
            },
        )
    })
}

fn find(body: &[u8], boundary: &str) -> Option<Upload> {
    if boundary.is_empty() {
        return None;
    }
    let delimiter = format!("--{boundary}");
    let mut starts = positions(body, delimiter.as_bytes());
    let end = starts.pop()?;
    let ends = starts.iter().skip(1).copied().chain([end]).collect::<Vec<_>>();
    for (start, end) in starts.into_iter().zip(ends) {
        let part = body.get(start + delimiter.len()..end)?;
        let part = part.strip_prefix(b"\r\n").unwrap_or(part);
        let split = positions(part, b"\r\n\r\n").first().copied()?;
        let head = String::from_utf8_lossy(part.get(..split)?).into_owned();
        let content = part.get(split + 4..)?;
        let content = content.strip_suffix(b"\r\n").unwrap_or(content);
        let disposition =
            head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition:"));
        let value = |name: &str| {
            let (_, rest) = disposition?.split_once(&format!("; {name}=\""))?;
            rest.split('"').next().map(str::to_owned)
        };
        if value("name").as_deref() == Some("file_upload") {
            return Some(Upload { name: value("filename")?, bytes: content.to_vec() });
        }
    }
    None
}

fn positions(text: &[u8], part: &[u8]) -> Vec<usize> {
    text.windows(part.len()).enumerate().filter(|(_, window)| *window == part).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_form_is_found_among_its_parts() {
        let part = |name: &str, content: &str| {
            format!(
                "--B\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f.map\"\r\nContent-Type: x\r\n\r\n{content}\r\n"
            )
        };
        let body = format!("{}{}--B--\r\n", part("other", "no"), part("file_upload", "a b\n\r\n\r\nc"));
        let found = find(body.as_bytes(), "B").unwrap();
        assert_eq!((found.name.as_str(), found.bytes.as_slice()), ("f.map", &b"a b\n\r\n\r\nc"[..]));
        assert_eq!(find(format!("{}--B--", part("other", "no")).as_bytes(), "B"), None);
        assert_eq!(find(b"", "B"), None);
        assert_eq!(find(b"--B", "B"), None);
    }
}
