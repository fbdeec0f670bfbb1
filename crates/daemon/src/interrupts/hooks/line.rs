//! Who is called next: one call at a time for each receiver, and no tenant before its turn.

use std::collections::{HashMap, HashSet};

use crate::store::Delivery;

/// Calls made at a time.
pub(super) const AT_ONCE: usize = 64;

/// Of one tenant.
pub(super) const OF_TENANT: usize = 8;

/// Whom a delivery is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    tenant: String,
    url: String,
}

impl Receiver {
    pub(super) fn of(delivery: &Delivery) -> Self {
        Self { tenant: delivery.tenant.clone(), url: delivery.url.clone() }
    }
}

/// Who is being called.
#[derive(Debug, Default)]
pub(super) struct Busy {
    receivers: HashSet<Receiver>,
}

impl Busy {
    pub(super) fn begin(&mut self, delivery: &Delivery) {
        self.receivers.insert(Receiver::of(delivery));
    }

    pub(super) fn end(&mut self, receiver: &Receiver) {
        self.receivers.remove(receiver);
    }

    /// Which of these to call now: always one of the tenant with the fewest calls.
    pub(super) fn choose(&self, due: Vec<Delivery>) -> Vec<Delivery> {
        let mut calls: HashMap<String, usize> = HashMap::new();
        for receiver in &self.receivers {
            *calls.entry(receiver.tenant.clone()).or_default() += 1;
        }
        let is_free = |delivery: &Delivery| !self.receivers.contains(&Receiver::of(delivery));
        let mut waiting: Vec<Delivery> = due.into_iter().filter(is_free).collect();
        let mut chosen = Vec::new();
        while self.receivers.len() + chosen.len() < AT_ONCE {
            let of = |delivery: &Delivery| calls.get(&delivery.tenant).copied().unwrap_or(0);
            let fewest = waiting.iter().enumerate().min_by_key(|(_, delivery)| of(delivery));
            let Some((place, first)) = fewest.filter(|(_, first)| of(first) < OF_TENANT) else {
                break;
            };
            *calls.entry(first.tenant.clone()).or_default() += 1;
            chosen.push(waiting.remove(place));
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(tenant: &str, receivers: usize) -> Vec<Delivery> {
        let delivery = |number| Delivery {
            id: format!("{tenant}{number}"),
            tenant: tenant.to_owned(),
            url: format!("http://{number}"),
            event: String::new(),
            body: String::new(),
            attempts: 0,
            due: 0,
            why: None,
            given_up: None,
        };
        (0..receivers).map(delivery).collect()
    }

    fn of(chosen: &[Delivery], tenant: &str) -> usize {
        chosen.iter().filter(|delivery| delivery.tenant == tenant).count()
    }

    #[test]
    fn a_tenant_with_many_receivers_gets_its_share_and_no_more() {
        let mut all = due("many", 100);
        all.extend(due("few", 2));
        let chosen = Busy::default().choose(all);
        assert_eq!((of(&chosen, "many"), of(&chosen, "few")), (OF_TENANT, 2));
    }

    #[test]
    fn a_receiver_is_called_once_at_a_time() {
        let mut busy = Busy::default();
        let all = due("a", 2);
        busy.begin(&all[0]);
        assert_eq!(busy.choose(all.clone()), all[1..]);
        busy.end(&Receiver::of(&all[0]));
        assert_eq!(busy.choose(all.clone()), all);
    }

    #[test]
    fn places_that_get_free_go_to_those_who_have_fewest() {
        let tenants: Vec<String> = (0..AT_ONCE / OF_TENANT).map(|n| format!("t{n}")).collect();
        let mut busy = Busy::default();
        let all: Vec<_> = tenants.iter().flat_map(|tenant| due(tenant, OF_TENANT)).collect();
        all.iter().for_each(|delivery| busy.begin(delivery));
        let mut more = due("t0", 2 * OF_TENANT);
        more.extend(due("late", 1));
        assert_eq!(busy.choose(more.clone()), [], "all places are taken");
        busy.end(&Receiver::of(&all[0]));
        assert_eq!(of(&busy.choose(more), "late"), 1);
    }
}
