//! Build script: N-API link set-up for the addon build, nothing for the pure core build.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "node-api")]
    {
        napi_build::setup();
        // Node unmaps an addon when the last thread that loaded it ends. Our runtime threads outlive a worker
        // thread, so the code they run must stay mapped.
        #[expect(clippy::disallowed_methods, reason = "cargo tells a build script its target this way")]
        let target_os = std::env::var("CARGO_CFG_TARGET_OS");
        if target_os.as_deref() == Ok("linux") {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        }
    }
}
