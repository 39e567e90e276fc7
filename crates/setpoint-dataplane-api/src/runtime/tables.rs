//! Stick tables, as HAProxy holds them.

use serde_json::{Map, Value as Json, json};
use setpoint_haproxy::edit::SectionKey;
use setpoint_haproxy::model::Value;
use setpoint_haproxy::text::SectionKind;
use setpoint_instance::cli::Request as CliRequest;

use super::{asked, lines, run_command};
use crate::Api;
use crate::answer::{Answer, Problem};
use crate::request::Request;
use crate::table::Verb;

/// What HAProxy says of a table that it has not.
const NO_TABLE: &str = "No such table";

/// The status for what HAProxy says against a command: whoever sent it can do something about it.
fn refusal(why: &str) -> u16 {
    if why.contains(NO_TABLE) { 404 } else { 400 }
}

/// What a table stores, out of `gpc0,http_req_rate(10s)`.
fn fields(store: &str) -> Vec<Json> {
    let fields = store.split(',').filter(|field| !field.is_empty()).map(|field| {
        let (name, period) = field.split_once('(').unwrap_or((field, ""));
        match milliseconds(period.trim_end_matches(')')) {
            Some(period) => json!({ "field": name, "type": "rate", "period": period }),
            None => json!({ "field": name, "type": "counter" }),
        }
    });
    fields.collect()
}

fn milliseconds(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "" | "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok().map(|number| number * factor)
}

impl Api {
    /// What the configuration says that a table stores.
    fn stored(&self, table: &str) -> Vec<Json> {
        let store = self.instance.read(|configuration| {
            [SectionKind::Backend, SectionKind::Frontend, SectionKind::Listen].into_iter().find_map(|kind| {
                let key = SectionKey::named(kind, table);
                let model = configuration.editor(&key).section(&key).ok()?;
                model.object.as_ref()?.get("stick_table.store").and_then(Value::as_str).map(str::to_owned)
            })
        });
        fields(&store.unwrap_or_default())
    }

    pub(super) async fn stick_table(&self, verb: Verb, name: &str) -> Result<Answer, Problem> {
        let answer = asked(&self.instance.worker(), &CliRequest::new("show table"), |_| 500).await?;
        let mut tables = Vec::new();
        for line in answer.lines().filter_map(|line| line.strip_prefix("# table: ")) {
            let mut parts = line.split(", ");
            let own = parts.next().unwrap_or_default();
            let mut table = json!({ "name": own, "fields": self.stored(own) });
            let Some(properties) = table.as_object_mut() else { continue };
            for (name, value) in parts.filter_map(|part| part.split_once(':')) {
                let value = value.trim();
                match value.parse::<i64>() {
                    Ok(number) if matches!(name, "size" | "used") => {
                        properties.insert(name.to_owned(), Json::from(number))
                    }
                    _ if name == "type" => properties.insert(name.to_owned(), Json::from(value)),
                    _ => None,
                };
            }
            tables.push(table);
        }
        if verb == Verb::List {
            return Ok(Answer::json(200, Json::Array(tables)));
        }
        let found = tables.into_iter().find(|table| table["name"] == name);
        found
            .map(|table| Answer::json(200, table))
            .ok_or_else(|| Problem::new(404, format!("Stick table {name} not found")))
    }

    pub(super) async fn stick_table_entry(
        &self,
        verb: Verb,
        table: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        if verb == Verb::Create {
            let body = request.json()?;
            let Some(key) = super::text(&body, "key") else {
                return Err(Problem::new(422, "key in body is required"));
            };
            let mut command = CliRequest::new("set table").word(table)?.word("key")?.word(key)?;
            for (name, value) in body.get("data_type").and_then(Json::as_object).into_iter().flatten() {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                command = command.word(&format!("data.{name}"))?.word(&value)?;
            }
            run_command(&worker, &command, refusal).await?;
            return Ok(Answer::empty(204));
        }
        let mut command = CliRequest::new("show table").word(table)?;
        if let Some(key) = request.query("key").filter(|key| !key.is_empty()) {
            command = command.word("key")?.word(key)?;
        } else if let Some(filter) = request.query("filter").filter(|filter| !filter.is_empty()) {
            for one in filter.split(',') {
                for (at, word) in one.split_ascii_whitespace().enumerate() {
                    let word = if at == 0 { format!("data.{word}") } else { word.to_owned() };
                    command = command.word(&word)?;
                }
            }
        }
        let answer = asked(&worker, &command, refusal).await?;
        if answer.contains(NO_TABLE) {
            return Err(Problem::new(404, format!("Stick table {table} not found")));
        }
        let skipped = request.number("offset")?.and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0);
        let count =
            request.number("count")?.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        let entries = lines(&answer).filter_map(entry).skip(skipped).take(count.unwrap_or(usize::MAX));
        Ok(Answer::json(200, entries.collect()))
    }
}

/// An entry: `0x…: key=k use=0 exp=99 gpc0=5 http_req_rate(10000)=0`.
fn entry(line: &str) -> Option<Json> {
    let (id, rest) = line.split_once(": ")?;
    let mut json = Map::new();
    json.insert("id".to_owned(), Json::from(id));
    for (name, value) in rest.split_ascii_whitespace().filter_map(|word| word.split_once('=')) {
        let name = name.split('(').next().unwrap_or_default();
        let value = match (name, value.parse::<i64>()) {
            ("shard", _) | ("use", Ok(0)) => continue,
            ("use", _) => Json::Bool(true),
            ("key", _) | (_, Err(_)) => Json::from(value),
            (_, Ok(number)) => Json::from(number),
        };
        json.insert(name.to_owned(), value);
    }
    Some(Json::Object(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_table_stores_is_read_with_its_periods() {
        let read = fields("gpc0,http_req_rate(10s)");
        assert_eq!(
            read,
            [
                json!({ "field": "gpc0", "type": "counter" }),
                json!({ "field": "http_req_rate", "period": 10000, "type": "rate" })
            ]
        );
    }

    #[test]
    fn an_entry_is_read() {
        let read = entry("0x55: key=k1 use=0 exp=99 shard=0 gpc0=5 http_req_rate(10000)=0").unwrap();
        assert_eq!(read, json!({ "id": "0x55", "key": "k1", "exp": 99, "gpc0": 5, "http_req_rate": 0 }));
    }
}
