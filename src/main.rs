//! The `refrain` command.

use std::process::ExitCode;

/// Returns freed memory to the system, which glibc's allocator keeps after loading an encoder.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    refrain::cli::run()
}
