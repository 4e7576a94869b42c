//! A small map that keeps the order in which names were added.
//!
//! A record names what matters first, and every viewer shows it in that order; a sorted or hashed map would lose it. Records have
//! a handful of names, so that a linear search is the fastest one.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Index;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

/// Room for the fields of a usual record, so that one allocation serves.
const FIRST_CAPACITY: usize = 8;

/// Named values in the order added.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields<V> {
    entries: Vec<(SmolStr, V)>,
}

impl<V> Fields<V> {
    /// An empty map.
    pub fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Sets a value; an existing name keeps its place.
    #[inline]
    pub fn insert(&mut self, name: impl Into<SmolStr>, value: V) {
        let name = name.into();
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = value,
            None => {
                if self.entries.capacity() == 0 {
                    self.entries.reserve(FIRST_CAPACITY);
                }
                self.entries.push((name, value));
            }
        }
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The same names with other values.
    pub(crate) fn map<W>(self, new: impl Fn(V) -> W) -> Fields<W> {
        Fields { entries: self.entries.into_iter().map(|(name, value)| (name, new(value))).collect() }
    }

    /// All names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<V> Default for Fields<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// # Panics
/// If there is no such name; [`Fields::get`] returns `None` instead.
impl<V> Index<&str> for Fields<V> {
    type Output = V;

    fn index(&self, name: &str) -> &V {
        self.get(name).unwrap_or_else(|| panic!("no field `{name}`"))
    }
}

impl<V: Serialize> Serialize for Fields<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Fields<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for FieldsVisitor<V> {
            type Value = Fields<V>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<V>, A::Error> {
                let mut fields = Fields::new();
                while let Some((name, value)) = map.next_entry::<SmolStr, V>()? {
                    fields.insert(name, value);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(FieldsVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_json_and_a_second_insert() {
        let mut fields = Fields::new();
        fields.insert("trials", 1);
        fields.insert("best", 2);
        fields.insert("trials", 3);
        let json = serde_json::to_string(&fields).unwrap();
        assert_eq!(json, r#"{"trials":3,"best":2}"#);
        let back: Fields<i32> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, fields);
        assert_eq!((back["best"], back.get("busy"), back.len()), (2, None, 2));
    }
}
