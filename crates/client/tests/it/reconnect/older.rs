//! The same for threads whose history Codex keeps in its older form, as those of older versions.

use super::*;

async fn older(replies: Vec<Reply>) -> Scene {
    Scene { older: true, ..Scene::new(replies).await }
}

#[tokio::test]
async fn a_text_goes_on_where_it_was_torn() {
    let scene = older(vec![Reply::new(halves("one ", "two three"))]).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    scene.proxy.cut();
    scene.proxy.wait_for(2).await;
    scene.model.open("half");
    assert_eq!(sketch(&heard.rest().await), HELLO);
}

#[tokio::test]
async fn what_was_said_meanwhile_is_told_once() {
    let scene = older(vec![Reply::new(halves("one ", "two three"))]).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    scene.proxy.bar();
    scene.model.open("half");
    scene.idle(heard.turn.thread_id()).await;
    scene.proxy.open();
    let told = heard.rest().await;
    assert_eq!(sketch(&told), HELLO);
    assert_eq!(told.generated().usage.unwrap().input_tokens.total, Some(100));
}

#[tokio::test]
async fn wherever_the_wire_is_cut_the_turn_is_the_same() {
    let scene = older(busy()).await;
    let (whole, parts) = torn(&scene, None).await;
    for after in (1..parts).step_by(4) {
        let (told, _) = torn(&scene, Some(after)).await;
        assert_eq!(told, whole, "cut after {after} of {parts} parts");
    }
}

/// Codex's older form forgets commands when their turn is over.
#[tokio::test]
async fn a_command_that_ended_unheard_is_told_as_incomplete() {
    let command = "until [ -e go ]; do sleep 0.05; done; echo gone";
    let scene = older(vec![Reply::new([Step::exec(command, "c1")]), Reply::text("fine")]).await;
    let mut request = TurnRequest::new(scene.thread().await, "go");
    request.settings.approval_policy = Some(json!("never"));
    let mut heard = scene.turn_of(request).await;
    heard.until(|part| matches!(part, Part::ToolCall(_))).await;
    scene.proxy.bar();
    std::fs::write(scene.codex.project().join("go"), "").unwrap();
    scene.idle(heard.turn.thread_id()).await;
    scene.proxy.open();
    let want = r#"codex.user-message call c1 text(fine) result c1 "incomplete" Stop"#;
    assert_eq!(sketch(&heard.rest().await), want);
}
