//! Templates of files.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};

use super::diagnostic::did_you_mean;

/// The largest file a template may give.
const LARGEST: usize = 16 * 1024 * 1024;
/// How many steps a template may take: enough for a file of the largest size, and over within moments.
const FUEL: u64 = 2_000_000;
/// How long it may write: a step may be a long one, such as sorting a list.
const LONGEST: Duration = Duration::from_secs(10);

/// Renders templates.
#[derive(Debug)]
pub(crate) struct Templates {
    environment: Environment<'static>,
}

/// Why a template gives nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// A value that it needs, and that is declared empty.
    pub(crate) empty: Option<String>,
    /// The line within the template, from 1.
    pub(crate) line: Option<usize>,
}

impl Templates {
    pub(crate) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
        if let Ok(syntax) = syntax {
            environment.set_syntax(syntax);
        }
        environment.set_fuel(Some(FUEL));
        Self { environment }
    }

    /// Renders a template with a map of values.
    pub(crate) fn render(&self, text: &str, all: &serde_json::Value) -> Result<String, TemplateError> {
        let failed = |error: &minijinja::Error| TemplateError {
            message: words(error),
            hint: None,
            empty: None,
            line: error.line(),
        };
        let template = self.environment.template_from_str(text).map_err(|error| failed(&error))?;
        let given = given(all);
        let values = given.as_ref();
        let until = Instant::now() + LONGEST;
        let mut out = Limited { bytes: Vec::with_capacity(text.len()), until };
        let rendered = template.render_captured_to(Value::from(Serde(values)), &mut out).map(drop);
        match rendered {
            Ok(()) => String::from_utf8(out.bytes).map_err(|_| TemplateError {
                message: "the template gives no text".to_owned(),
                hint: None,
                empty: None,
                line: None,
            }),
            Err(error) if error.kind() == ErrorKind::UndefinedError => {
                let mut unknown: Vec<String> = template.undeclared_variables(false).into_iter().collect();
                unknown.retain(|name| {
                    values.get(name).is_none() && self.environment.globals().all(|(global, _)| global != name)
                });
                unknown.sort();
                let known = values.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str));
                let mut error = failed(&error);
                // What nobody declares is mended first.
                let is_declared = |name: &&String| all.get(name.as_str()).is_some();
                if let Some(first) = unknown.iter().find(|name| !is_declared(name)) {
                    error.hint = did_you_mean(first, known)
                        .or_else(|| Some(format!("add `{first}` to the `values` of the file or of the set")));
                } else {
                    error.empty = unknown.first().cloned();
                }
                if !unknown.is_empty() {
                    error.message =
                        format!("the template needs values that nobody gives: {}", unknown.join(", "));
                }
                Err(error)
            }
            Err(error) if error.kind() == ErrorKind::OutOfFuel => Err(TemplateError {
                message: "the template does too much".to_owned(),
                hint: Some("does it loop over something very large?".to_owned()),
                empty: None,
                line: None,
            }),
            Err(error) if error.kind() == ErrorKind::WriteFailure && Instant::now() >= until => {
                Err(TemplateError {
                    message: format!("the template takes longer than {} s", LONGEST.as_secs()),
                    hint: Some("does it loop over something very large?".to_owned()),
                    empty: None,
                    line: None,
                })
            }
            Err(error) if error.kind() == ErrorKind::WriteFailure => Err(TemplateError {
                message: format!("the template gives more than {LARGEST} bytes"),
                hint: None,
                empty: None,
                line: None,
            }),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// The values that are given: one that is declared empty is not, and a template that needs it gives nothing.
fn given(values: &serde_json::Value) -> Cow<'_, serde_json::Value> {
    match values {
        serde_json::Value::Object(map) if map.values().any(serde_json::Value::is_null) => {
            let given = map.iter().filter(|(_, value)| !value.is_null());
            Cow::Owned(given.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        _ => Cow::Borrowed(values),
    }
}

fn words(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
    format!("the template is wrong: {detail}")
}

/// Takes no more than a file may hold, and for no longer than a template may take.
struct Limited {
    bytes: Vec<u8>,
    until: Instant,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > LARGEST {
            return Err(io::Error::other("too large"));
        }
        if Instant::now() >= self.until {
            return Err(io::Error::other("too slow"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_filled_with_values_and_nothing_is_escaped() {
        let templates = Templates::new();
        let rendered =
            templates.render("{% for x in xs %}<{{ x }}>\n{% endfor %}", &json!({"xs": [1, "a&b"]}));
        assert_eq!(rendered.as_deref(), Ok("<1>\n<a&b>\n"));
    }

    #[test]
    fn a_value_that_is_missing_is_named() {
        let error = Templates::new().render("a\n{{ prot }}", &json!({"port": 1})).unwrap_err();
        assert_eq!(error.message, "the template needs values that nobody gives: prot");
        assert_eq!((error.hint.as_deref(), error.line), (Some("did you mean `port`?"), Some(2)));
        assert_eq!(
            Templates::new().render("{% if x is defined %}{{ x }}{% endif %}", &json!({})).as_deref(),
            Ok("")
        );
    }

    #[test]
    fn a_template_is_bounded_in_what_it_does_and_gives() {
        let large = json!({"text": "x".repeat(1024 * 1024)});
        let error =
            Templates::new().render("{% for i in range(100) %}{{ text }}{% endfor %}", &large).unwrap_err();
        assert!(error.message.contains("more than"), "{error:?}");
        let nested =
            "{% for i in range(9999) %}{% for j in range(9999) %}{{ i * j }}{% endfor %}{% endfor %}";
        let error = Templates::new().render(nested, &json!({})).unwrap_err();
        assert!(error.message.contains("too much") || error.message.contains("more than"), "{error:?}");
        // Also one that writes nothing.
        let silent = "{% for i in range(2000) %}{% for j in range(2000) %}{% endfor %}{% endfor %}";
        let error = Templates::new().render(silent, &json!({})).unwrap_err();
        assert!(error.message.contains("too much"), "{error:?}");
        // What fills a large file is not too much.
        let full = "{% for i in range(99999) %}{{ i }} {{ line }}\n{% endfor %}";
        let rendered = Templates::new().render(full, &json!({"line": "x".repeat(100)})).unwrap();
        assert!(rendered.len() > 10_000_000);
    }
}
