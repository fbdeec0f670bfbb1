//! Recordings of the app-server as lines of exec.
