//! The properties of objects, as the rows of their kinds name them.

use rustc_hash::FxHashMap;

use super::grammar::{Item, Piece, Type};
use super::{FieldInfo, Row, collect_fields};
use crate::model::Field;

/// The properties of an object: what JSON may say of it.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    pub(crate) slots: FxHashMap<&'static str, Slot>,
}

impl Shape {
    /// Returns the type of an element of a list that is a bare value.
    fn own_type(&self) -> Option<Type> {
        match self.slots.get(".")? {
            Slot::Value(_, ty) => Some(ty.clone()),
            Slot::Values(..) | Slot::Objects(..) | Slot::Json(_) => Some(Type::Word),
        }
    }

    /// Returns whether the property at a path is a list.
    pub(crate) fn is_list(&self, path: &str) -> bool {
        matches!(self.slots.get(path), Some(Slot::Values(..) | Slot::Objects(..)))
    }

    /// Returns whether there are properties below a path.
    pub(crate) fn has_structure(&self, path: &str) -> bool {
        let is_below = |slot: &str| slot.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.slots.keys().any(|slot| is_below(slot))
    }
}

/// A property.
#[derive(Debug)]
pub(crate) enum Slot {
    /// A value of its own.
    Value(Field, Type),
    /// A list of values of a type.
    Values(Field, Type),
    /// A list of objects.
    Objects(Field, Shape),
    /// A free structure.
    Json(Field),
}

/// Adds what a row says of an object to its shape.
pub(super) fn collect_shape(row: &Row, fields: &[FieldInfo], shape: &mut Shape) {
    let metadata = row.attributes.metadata.map(|field| (path_of(fields, field), Slot::Json(field)));
    let Some(list) = row.attributes.list else {
        shape.slots.extend(metadata);
        return collect_slots(&row.items, fields, shape);
    };
    let slot =
        shape.slots.entry(path_of(fields, list)).or_insert_with(|| Slot::Objects(list, Shape::default()));
    if let Slot::Objects(_, element) = slot {
        collect_slots(&row.items, fields, element);
        element.slots.extend(metadata);
        if let Some(ty) = element.own_type() {
            *slot = Slot::Values(list, ty);
        }
    }
}

/// Makes the property of a list from what its elements have.
fn list_slot(list: Field, element: Shape) -> Slot {
    match element.own_type() {
        Some(ty) => Slot::Values(list, ty),
        None => Slot::Objects(list, element),
    }
}

/// Adds the fields of some items to a shape.
fn collect_slots(items: &[Item], fields: &[FieldInfo], shape: &mut Shape) {
    let text = |shape: &mut Shape, field: Field| {
        shape.slots.entry(path_of(fields, field)).or_insert(Slot::Value(field, Type::Word));
    };
    for item in items {
        match item {
            Item::Literal(_) => {}
            Item::Constant { field, .. } => text(shape, *field),
            Item::Pattern { constant, pieces } => {
                if let Some((field, _)) = constant {
                    text(shape, *field);
                }
                for piece in pieces {
                    if let Piece::Value { field, ty, .. } = piece {
                        shape.slots.insert(path_of(fields, *field), Slot::Value(*field, ty.clone()));
                    }
                }
            }
            Item::Value { field, ty, .. } => {
                let slot = match ty {
                    Type::Words | Type::Commas => Slot::Values(*field, Type::Word),
                    Type::Ints => Slot::Values(*field, Type::Int),
                    Type::Pairs => Slot::Json(*field),
                    ty => Slot::Value(*field, ty.clone()),
                };
                shape.slots.insert(path_of(fields, *field), slot);
            }
            Item::Address { address, port, range_end, .. } => {
                text(shape, *address);
                for field in port.iter().chain(range_end) {
                    shape.slots.insert(path_of(fields, *field), Slot::Value(*field, Type::Int));
                }
            }
            Item::Optional(items) => collect_slots(items, fields, shape),
            Item::Options(options) => {
                for entry in &options.entries {
                    let Some(list) = entry.attributes.list else {
                        collect_slots(&entry.items, fields, shape);
                        continue;
                    };
                    let mut element = Shape::default();
                    collect_slots(&entry.items, fields, &mut element);
                    shape.slots.insert(path_of(fields, list), list_slot(list, element));
                }
            }
            Item::Repeat { field, items } => {
                let mut element = Shape::default();
                collect_slots(items, fields, &mut element);
                shape.slots.insert(path_of(fields, *field), list_slot(*field, element));
            }
            Item::Condition { cond, test, .. } => {
                text(shape, *cond);
                text(shape, *test);
            }
        }
    }
}

/// Returns whether some items set a field.
pub(super) fn mentions(items: &[Item], field: Field) -> bool {
    let mut fields = Vec::new();
    collect_fields(items, &mut fields);
    fields.contains(&field)
}

/// Returns the path of a field while the table is still being read.
pub(super) fn path_of(fields: &[FieldInfo], field: Field) -> &'static str {
    fields.get(usize::from(field.0)).map_or("", |info| info.path)
}
