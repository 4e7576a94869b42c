//! Structs that the host writes and kernels read: one description on the host, compared with the twin in the kernel's text.
//!
//! [`kernel_structs!`](crate::kernel_structs) declares them and lists their layouts; [`Source::comparing`] puts the comparison behind a text.
//! The compiler makes it, so it costs nothing when a kernel runs, it also holds for a module from the cache, and a machine without a GPU makes
//! it too. A difference is a [`GpuError::Compile`](crate::GpuError::Compile) that names the struct and the field.

use std::fmt::Write;

use crate::module::Source;

/// How a struct lies in memory on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructLayout {
    /// Its name, here and in the kernel's text.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// Its fields in their order, each with its first byte.
    pub fields: &'static [(&'static str, usize)],
}

impl StructLayout {
    /// The comparison of the size and of every field, as text for the compiler. Fields called `unused` fill gaps that the twin may leave to
    /// the compiler.
    fn write_comparison(&self, out: &mut String) {
        let Self { name, size, fields } = self;
        let _ = writeln!(
            out,
            "static_assert(sizeof({name}) == {size}, \"struct {name} has {size} bytes on the host\");"
        );
        for (field, at) in fields.iter().filter(|(field, _)| *field != "unused") {
            let _ = writeln!(
                out,
                "static_assert(OFFSET_OF({name}, {field}) == {at}, \"field {name}.{field} is at byte {at} on the host\");"
            );
        }
    }
}

impl Source {
    /// The same text, which only compiles if its structs lie in memory as these do on the host. The structs are looked for in `namespace`, or
    /// outside of all if that is empty.
    #[must_use]
    pub fn comparing(mut self, namespace: &str, layouts: &[&[StructLayout]]) -> Self {
        let mut comparison = String::new();
        layouts.iter().copied().flatten().for_each(|layout| layout.write_comparison(&mut comparison));
        let (begin, end) = if namespace.is_empty() {
            (String::new(), "")
        } else {
            (format!("namespace {namespace} {{\n"), "}\n")
        };
        self.text.push_str(&format!("#line 1 \"layout of structs\"\n{begin}{comparison}{end}"));
        self
    }
}

/// Declares structs that kernels read, and a list of their layouts for [`Source::comparing`].
///
/// ```
/// tidemill_gpu::kernel_structs! {
///     /// All of them.
///     pub const LAYOUTS;
///
///     /// Twin of `Scale` in the kernel's text.
///     pub struct Scale {
///         /// What each value is multiplied by.
///         pub factor: f64,
///         n: u32,
///         unused: u32,
///     }
/// }
/// assert_eq!(LAYOUTS[0].fields, [("factor", 0), ("n", 8), ("unused", 12)]);
/// ```
#[macro_export]
macro_rules! kernel_structs {
    (
        $(#[$list_meta:meta])* $list_vis:vis const $list:ident;
        $($(#[$meta:meta])* $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
        })*
    ) => {
        $($(#[$meta])*
        #[derive(Clone, Copy, ::bytemuck::Pod, ::bytemuck::Zeroable)]
        #[repr(C)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),*
        })*

        $(#[$list_meta])*
        $list_vis const $list: &[$crate::StructLayout] = &[$($crate::StructLayout {
            name: stringify!($name),
            size: ::std::mem::size_of::<$name>(),
            fields: &[$((stringify!($field), ::std::mem::offset_of!($name, $field))),*],
        }),*];
    };
}
