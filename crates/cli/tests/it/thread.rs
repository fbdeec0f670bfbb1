//! Going on with a thread, by its id, its beginning or as the last; and with a copy of it.

use bindery_testkit::model::Reply;
use serde_json::Value;

use crate::stage::Stage;

/// Runs a first turn and gives its thread.
async fn begun(stage: &Stage) -> String {
    let ran = stage.start(&["run", "--format", "parts", "the first"]);
    let output = ran.wait_with_output().await.unwrap();
    let last = String::from_utf8(output.stdout).unwrap();
    let finish: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    finish["providerMetadata"]["codex"]["threadId"].as_str().unwrap().to_owned()
}

fn numbered() -> Stage {
    Stage::free(vec![Reply::text("one"), Reply::text("two"), Reply::text("three")])
}

#[tokio::test]
async fn a_thread_goes_on_by_its_id_and_as_the_last() {
    let stage = numbered();
    let thread = begun(&stage).await;
    assert_eq!(stage.run(&["run", "--resume", &thread, "the second"]).await.out, "two\n");
    assert_eq!(stage.run(&["run", "--resume", "last", "the third"]).await.out, "three\n");
    let heard = stage.heard();
    let all = ["user: the first", "assistant: one", "user: the second", "assistant: two"];
    assert_eq!(heard[1], all[..3]);
    assert_eq!(heard[2], [&all[..], &["user: the third"]].concat());
    let key = |body: &Value| body["prompt_cache_key"].clone();
    let keys: Vec<Value> = stage.model.bodies().iter().map(key).collect();
    assert_eq!(keys, [keys[0].clone(), keys[0].clone(), keys[0].clone()]);
}

#[tokio::test]
async fn the_beginning_of_an_id_is_enough_where_it_is_the_only_one() {
    let stage = numbered();
    let thread = begun(&stage).await;
    assert_eq!(stage.run(&["run", "--resume", &thread[..13], "the second"]).await.out, "two\n");
    begun(&stage).await;
    // Ids begin with the time, so two threads of one test begin alike.
    let several = stage.run(&["run", "--resume", &thread[..2], "which?"]).await;
    insta::assert_snapshot!(several, @"
    exit: 2
    stdout:

    stderr:
    error: 2 threads begin with `01`
      hint: did you mean `[id]` (the first)?
    ");
    assert_eq!(stage.model.count(), 3);
}

#[tokio::test]
async fn a_fork_leaves_the_thread_as_it_is() {
    let stage = numbered();
    let thread = begun(&stage).await;
    let fork = stage.run(&["run", "--resume", &thread, "--fork", "aside"]).await;
    assert_eq!((fork.code, fork.out.as_str()), (Some(0), "two\n"));
    assert_eq!(stage.run(&["run", "--resume", &thread, "the second"]).await.out, "three\n");
    let heard = stage.heard();
    assert_eq!(heard[1], ["user: the first", "assistant: one", "user: aside"]);
    assert_eq!(heard[2], ["user: the first", "assistant: one", "user: the second"]);
}

#[tokio::test]
async fn a_thread_that_is_not_there_is_said_with_what_to_do() {
    let stage = numbered();
    insta::assert_snapshot!(stage.run(&["run", "--resume", "0000", "hi"]).await, @"
    exit: 2
    stdout:

    stderr:
    error: no thread `0000`
      hint: the closing line of a turn tells its thread; `--resume last` takes the newest
    ");
    insta::assert_snapshot!(stage.run(&["run", "--resume", "last", "hi"]).await, @"
    exit: 2
    stdout:

    stderr:
    error: no thread was run in `[project]` yet
      hint: leave `--resume last` out, or name the folder with `--cwd`
    ");
    let whole = "00000000-0000-7000-8000-000000000000";
    insta::assert_snapshot!(stage.run(&["run", "--resume", whole, "hi"]).await, @"
    exit: 2
    stdout:

    stderr:
    error: no thread `[id]`
      hint: the closing line of a turn tells its thread; `--resume last` takes the newest
    ");
    insta::assert_snapshot!(stage.run(&["run", "--fork", "hi"]).await, @"
    exit: 2
    stdout:

    stderr:
    error: the following required arguments were not provided:
      --resume <ID|last>

    Usage: bindery run --resume <ID|last> --fork <PROMPT>

    For more information, try '--help'.
    ");
    assert_eq!(stage.model.count(), 0);
}

#[tokio::test]
async fn an_ephemeral_thread_cannot_be_found_again() {
    let stage = numbered();
    assert_eq!(stage.run(&["run", "--ephemeral", "once"]).await.code, Some(0));
    assert_eq!(stage.run(&["run", "--resume", "last", "again"]).await.code, Some(2));
}
