//! The ONNX Runtime library, loaded once for the process.
//!
//! Done here and not left to the first session, because then a missing library is a panic.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

use crate::cache::embedder::LoadError;

/// Names the library when set, whatever the configuration says.
const PATH_VARIABLE: &str = "ORT_DYLIB_PATH";

static ENVIRONMENT: Mutex<Option<Environment>> = Mutex::new(None);

/// The process's ONNX Runtime, from the library at `configured` unless it is loaded already or
/// `ORT_DYLIB_PATH` names another. A failure may be tried again.
pub(super) fn environment(configured: &Path) -> Result<Environment, LoadError> {
    let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = &*environment {
        return Ok(environment.clone());
    }
    let path = std::env::var_os(PATH_VARIABLE)
        .filter(|path| !path.is_empty())
        .map_or_else(|| configured.to_owned(), PathBuf::from);
    let loaded = load(&path)?;
    *environment = Some(loaded.clone());
    Ok(loaded)
}

fn load(path: &Path) -> Result<Environment, LoadError> {
    let fail = |error: &dyn std::error::Error| LoadError::Runtime {
        path: path.to_owned(),
        reason: super::in_one_line(error).into(),
    };
    let environment = ort::init_from(path)
        .map_err(|error| fail(&error))?
        .with_name("refrain")
        .with_telemetry(false)
        .with_logger(Arc::new(|level, _, _, location, message| log(level, location, message)))
        .build()
        .map_err(|error| fail(&error))?;
    environment.set_log_level(LogLevel::Warning);
    Ok(environment)
}

/// What ONNX Runtime warns of is for its developers; what fails comes back as an error too.
fn log(level: LogLevel, location: &str, message: &str) {
    if level == LogLevel::Fatal {
        tracing::error!(location, message, "ONNX Runtime");
    } else {
        tracing::debug!(location, message, "ONNX Runtime");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_none_is_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let garbage = folder.path().join("libonnxruntime.so");
        std::fs::write(&garbage, "no library").unwrap();
        for path in [garbage, folder.path().join("gone.so")] {
            let message = load(&path).unwrap_err().to_string();
            assert!(message.contains(path.to_str().unwrap()), "{message}");
            assert!(message.contains("models/fetch") && message.contains("embedder.runtime"), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
