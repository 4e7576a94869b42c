//! Loops in the widest vectors that the processor has.
//!
//! The program is built for any processor of its kind. A loop that is worth it is compiled several times, and the one for the processor
//! at hand is taken. All of them do the same operations in the same order, so that they give the same bits.

/// A function that is compiled for several kinds of processors. Its loops are plain ones: an iterator's methods that are not inlined are
/// compiled for any processor.
macro_rules! widest {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        $visibility fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn anywhere($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn avx512($($argument: $type),*) $(-> $result)? {
                    anywhere($($argument),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    anywhere($($argument),*)
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has what the function needs.
                    return unsafe { avx512($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2($($argument),*) };
                }
            }
            anywhere($($argument),*)
        }
    };
}

pub(crate) use widest;
