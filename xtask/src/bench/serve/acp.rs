//! An agent of the Agent Client Protocol that answers at once: this program, started again with
//! another word. What it says is in the prompt: a number of pieces.

use std::io::{BufRead as _, Write};

use serde_json::{Value, json};

use crate::bench::turn::model::PIECE;

/// Is that agent: lines of JSON-RPC on its pipes, until its input ends.
pub fn serve() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        answer(&request, &mut out)?;
    }
    Ok(())
}

fn answer(request: &Value, out: &mut impl Write) -> anyhow::Result<()> {
    let result = match request["method"].as_str() {
        Some("initialize") => json!({ "protocolVersion": 1, "agentCapabilities": {} }),
        Some("session/new") => json!({ "sessionId": "one" }),
        Some("session/prompt") => {
            let text = request["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
            (0..text.parse::<usize>()?).try_for_each(|piece| say(piece, out))?;
            json!({ "stopReason": "end_turn" })
        }
        _ => json!({}),
    };
    if !request["id"].is_null() {
        let id = &request["id"];
        writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
    }
    Ok(out.flush()?)
}

fn say(piece: usize, out: &mut impl Write) -> anyhow::Result<()> {
    let content = json!({ "type": "text", "text": format!("{PIECE}{piece} ") });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    let params = json!({ "sessionId": "one", "update": update });
    let message = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
    Ok(writeln!(out, "{message}")?)
}
