//! A provider of the configuration as the plain settings that a wire needs.

use crate::config::{Config, Placement, WireApi};
use crate::model::{self, Provider, Wire};
use crate::tls;

/// The settings of the provider in force, keys and all.
pub(super) fn plain(config: &Config) -> Provider {
    let entry = &config.provider;
    let wire = match entry.wire_api {
        WireApi::Responses => Wire::Responses,
        WireApi::Chat => Wire::Chat,
        WireApi::Demo => Wire::Demo,
    };
    let mut provider = Provider::new(wire, entry.base_url.clone());
    provider.headers = entry.headers(&config.home).into_iter().collect();
    match (entry.key(&config.home), &entry.key_header) {
        (Some(key), Some(header)) => provider.headers.push((header.clone(), key)),
        (key, _) => provider.key = key,
    }
    provider.authority = tls::authority(&config.home);
    provider.query = entry.query_params.clone().into_iter().collect();
    provider.request_max_retries = entry.request_max_retries;
    provider.stream_max_retries = entry.stream_max_retries;
    provider.idle_timeout = entry.idle_timeout();
    provider.placement = match config.entry.placement_on(entry.wire_api) {
        Placement::Instructions => model::Placement::Instructions,
        Placement::Developer => model::Placement::Developer,
        Placement::System => model::Placement::System,
    };
    provider.chat = config.catalogue.chat_profiles(entry);
    provider.images = config.entry.images;
    provider.service_tier = config.service_tier.clone();
    provider
}
