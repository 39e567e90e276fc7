//! Templates: Jinja, held to limits, and unable to print what HAProxy would read as something else.
//!
//! ```text
//!  snippets ─┐
//!            ├─compile─▶ Templates ──render(name, context)──▶ text, or an error with template, line and excerpt
//!  outputs ──┘               │
//!                  each output has a Format: how a printed value is written there
//! ```

mod error;
mod format;
mod functions;
mod limits;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

pub use error::TemplateError;
pub use format::Format;
pub use limits::Limits;

/// The text of a template, by its name.
pub type Sources = BTreeMap<String, String>;

/// Compiled templates.
///
/// ```
/// use minijinja::context;
/// use setpoint_controller::template::{Format, Limits, Templates};
///
/// let sources = [
///     ("server".to_owned(), "server {{ name }} {{ address }}:{{ port }}".to_owned()),
///     ("haproxy.cfg".to_owned(), "backend web\n  {% include 'server' %}\n".to_owned()),
/// ];
/// let templates = Templates::compile(&sources.into(), Limits::default()).unwrap();
/// let text = templates.render("haproxy.cfg", Format::Haproxy, context! { name => "s1 check", address => "::1", port => 80 });
/// assert_eq!(text.unwrap(), "backend web\n  server s1\\ check ::1:80\n");
/// ```
#[derive(Debug)]
pub struct Templates {
    sources: Arc<Sources>,
    /// One for each format: a snippet is written as the output that includes it.
    environments: BTreeMap<Format, Environment<'static>>,
    limits: Limits,
}

impl Templates {
    /// Compiles templates; returns all that is wrong with them.
    pub fn compile(sources: &Sources, limits: Limits) -> Result<Self, Vec<TemplateError>> {
        let mut environment = environment(&limits);
        let mut errors = Vec::new();
        for (name, source) in sources {
            if let Err(error) = environment.add_template_owned(name.clone(), source.clone()) {
                errors.push(TemplateError::new(&error, name, sources));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let for_format = |format: Format| {
            let mut environment = environment.clone();
            environment.set_formatter(move |out, _, value| format.write(out, value));
            (format, environment)
        };
        let environments = Format::ALL.into_iter().map(for_format).collect();
        Ok(Self { sources: Arc::new(sources.clone()), environments, limits })
    }

    /// Renders a template, within the limits.
    pub fn render(&self, name: &str, format: Format, context: Value) -> Result<String, TemplateError> {
        let failed = |error: &minijinja::Error| TemplateError::new(error, name, &self.sources);
        let Some(environment) = self.environments.get(&format) else {
            return Err(TemplateError::unknown(name));
        };
        let template = environment.get_template(name).map_err(|error| failed(&error))?;
        let mut output = self.limits.writer();
        let rendered = template.render_captured_to(context, &mut output).map(drop);
        if let Some(exceeded) = output.exceeded() {
            return Err(TemplateError::exceeded(name, exceeded));
        }
        rendered.map_err(|error| failed(&error))?;
        output.into_text().ok_or_else(|| TemplateError::no_text(name))
    }

    /// The names of all templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }
}

/// What all templates share.
fn environment(limits: &Limits) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // What macros and blocks give was formatted when it was printed, and is not once more.
    environment.set_auto_escape_callback(|_| AutoEscape::Custom("setpoint".into()));
    // The end of a line is one also behind a tag: without it, what is included could run into the next line.
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    if let Ok(syntax) = syntax {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(limits.fuel));
    environment.set_debug(true);
    functions::add(&mut environment);
    environment
}
