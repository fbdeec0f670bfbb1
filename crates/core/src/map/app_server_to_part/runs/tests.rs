//! Laws of retried text: whatever the attempts said, the last one is what was said, once.

use proptest::prelude::*;

use super::*;
use crate::content::Gather;
use crate::spec::{Spec, codex_of};

/// One attempt at an item: its pieces, in order.
type Attempt = Vec<String>;

/// Few letters, so that attempts often share a beginning; one of them has two bytes.
fn attempt() -> impl Strategy<Value = Attempt> {
    prop::collection::vec("[abü]{0,3}", 0..5)
}

/// An attempt that goes on from where another one may have been.
fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let free = prop::collection::vec(attempt(), 1..5);
    // Cuts of one text: each attempt gets further or less far, and the last one all the way.
    let same = ("[abü]{0,12}", prop::collection::vec((0..13_usize, 1..4_usize), 0..4)).prop_map(
        |(text, cuts)| {
            let letters: Vec<char> = text.chars().collect();
            let piece = |length: usize, size: usize| -> Attempt {
                let said = &letters[..length.min(letters.len())];
                said.chunks(size).map(|chunk| chunk.iter().collect()).collect()
            };
            let mut attempts: Vec<Attempt> =
                cuts.into_iter().map(|(length, size)| piece(length, size)).collect();
            attempts.push(piece(letters.len(), 2));
            attempts
        },
    );
    prop_oneof![free, same]
}

fn channel() -> impl Strategy<Value = Channel> {
    let channels = [Channel::Message, Channel::Plan, Channel::Summary(0), Channel::Raw(0)];
    prop::sample::select(channels.to_vec())
}

/// Plays attempts; all but the last are cut off, and the last completes or `streams` only at its
/// completion.
fn play(attempts: &[Attempt], channel: Channel, announce: bool, streams: bool) -> Vec<Part> {
    let (mut runs, mut parts) = (Runs::new(serde_json::Map::new()), Vec::new());
    let (last, cut) = attempts.split_last().unwrap();
    for (number, attempt) in cut.iter().enumerate() {
        let item = ItemId::new(format!("m{number}"));
        if announce {
            runs.begin(&item, channel, &mut parts);
        }
        for piece in attempt {
            runs.delta(Some(&item), channel, piece, &mut parts);
        }
        runs.abandon();
    }
    let item = ItemId::new("last");
    // Codex announces every message, so that even an empty one has a run.
    runs.begin(&item, channel, &mut parts);
    for piece in last.iter().filter(|_| streams) {
        runs.delta(Some(&item), channel, piece, &mut parts);
    }
    runs.complete(&item, channel, &last.concat(), json!({}), &mut parts);
    // A completion that comes twice says nothing new.
    let told = parts.len();
    runs.complete(&item, channel, &last.concat(), json!({}), &mut parts);
    assert_eq!(parts.len(), told, "completed twice");
    runs.discard_abandoned(&mut parts);
    runs.close(&mut parts);
    parts
}

/// What the folded answer says.
fn gathered(parts: &[Part]) -> String {
    let mut gather = Gather::new(Spec::V4);
    parts.iter().for_each(|part| gather.push(part));
    let content = gather.finish().content;
    content.iter().filter_map(|piece| piece["text"].as_str()).collect()
}

/// What was streamed in runs that stand.
fn streamed(parts: &[Part]) -> String {
    let ends = parts.iter().filter_map(|part| match part {
        Part::TextEnd { id, provider_metadata, .. } => Some((id, provider_metadata)),
        Part::ReasoningEnd(run) => Some((&run.id, &run.provider_metadata)),
        _ => None,
    });
    let discarded: Vec<&PartId> = ends
        .filter(|(_, metadata)| {
            codex_of(metadata.as_ref()).is_some_and(|details| details.contains_key("discarded"))
        })
        .map(|(id, _)| id)
        .collect();
    let deltas = parts.iter().filter_map(|part| match part {
        Part::TextDelta(delta) | Part::ReasoningDelta(delta) => Some(delta),
        _ => None,
    });
    deltas.filter(|delta| !discarded.contains(&&delta.id)).map(|d| d.delta.as_str()).collect()
}

/// Starts and ends pair up, and nothing is said outside of them.
fn is_well_formed(parts: &[Part]) -> bool {
    let (mut open, mut used) = (BTreeSet::new(), BTreeSet::new());
    parts.iter().all(|part| match part {
        Part::TextStart(run) | Part::ReasoningStart(run) => {
            open.insert(run.id.clone()) && used.insert(run.id.clone())
        }
        Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
            open.contains(&delta.id) && !delta.delta.is_empty()
        }
        Part::TextEnd { id, .. } => open.remove(id),
        Part::ReasoningEnd(run) => open.remove(&run.id),
        _ => false,
    }) && open.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_last_attempt_is_what_was_said(
        attempts in attempts(),
        announce in any::<bool>(),
        streams in any::<bool>(),
        channel in channel(),
    ) {
        let parts = play(&attempts, channel, announce, streams);
        let wanted = attempts.last().unwrap().concat();
        prop_assert_eq!(gathered(&parts), &wanted[..]);
        prop_assert_eq!(streamed(&parts), wanted);
        prop_assert!(is_well_formed(&parts), "{:?}", parts);
    }

    #[test]
    fn an_attempt_that_goes_on_is_one_run(text in "[abü]{1,12}", at in 0..13_usize) {
        let head: String = text.chars().take(at).collect();
        let parts = play(&[vec![head], vec![text.clone()]], Channel::Message, true, true);
        let starts = parts.iter().filter(|part| matches!(part, Part::TextStart(_))).count();
        prop_assert_eq!((starts, streamed(&parts)), (1, text));
    }
}

#[test]
fn a_summary_taken_over_from_an_abandoned_attempt_is_given_once() {
    let (mut runs, mut parts) = (Runs::new(serde_json::Map::new()), Vec::new());
    let (old, new) = (ItemId::new("r1"), ItemId::new("r2"));
    runs.delta(Some(&old), Channel::Summary(0), "Thin", &mut parts);
    runs.abandon();
    runs.delta(Some(&new), Channel::Summary(0), "Think", &mut parts);
    runs.next_summary(Some(&new), 1, &mut parts);
    runs.delta(Some(&new), Channel::Summary(1), "Act", &mut parts);
    for (index, text) in [(0, "Think"), (1, "Act")] {
        runs.complete(&new, Channel::Summary(index), text, json!({}), &mut parts);
    }
    assert_eq!(gathered(&parts), "ThinkAct");
    assert!(is_well_formed(&parts), "{parts:?}");
}

#[test]
fn an_item_that_completes_after_it_was_given_up_stands() {
    let (mut runs, mut parts) = (Runs::new(serde_json::Map::new()), Vec::new());
    let item = ItemId::new("m1");
    runs.delta(Some(&item), Channel::Message, "Hel", &mut parts);
    runs.abandon();
    runs.complete(&item, Channel::Message, "Hello", json!({}), &mut parts);
    runs.discard_abandoned(&mut parts);
    assert_eq!((gathered(&parts).as_str(), streamed(&parts).as_str()), ("Hello", "Hello"));
}

#[test]
fn what_was_steered_away_stays_away() {
    let (mut runs, mut parts) = (Runs::new(serde_json::Map::new()), Vec::new());
    let item = ItemId::new("m1");
    runs.delta(Some(&item), Channel::Message, "to the left", &mut parts);
    runs.discard_open(&mut parts);
    runs.complete(&item, Channel::Message, "to the left", json!({}), &mut parts);
    assert_eq!(gathered(&parts), "");
    assert!(is_well_formed(&parts), "{parts:?}");
}
